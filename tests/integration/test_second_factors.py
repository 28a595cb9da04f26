"""A second factor: set up, asked for at every door, used once, lost and removed."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import call_command
from django.test import Client

from controlplane.login.codes import MAX_WRONG_CODES, note_first_code
from controlplane.login.reauthentication import CONFIRMED_AT_KEY
from controlplane.teams.models import ApiToken, AuditEntry, Membership, User
from controlplane.teams.roles import Scope
from tests.support.django_cast import PASSWORD, Cast, browsing_as, serving, speaking_as
from tests.support.second_factors import code_of, code_of_key, enrolled, log_in, recovery_codes

REST = "/api/v1/auth/login/"
TEAMS = "/api/v1/teams/"
pytestmark = pytest.mark.usefixtures("empty_cache")


def rest_login(**given: str) -> Any:
    body = {"username": "viewer", "password": PASSWORD, **given}
    return Client().post(REST, body, content_type="application/json")


def inside(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def test_an_app_is_set_up_and_asked_for(cast: Cast) -> None:
    client = log_in("viewer")
    shown = client.get("/account/app/").content.decode()
    key = re.search(r'id="app-key">(\w+)<', shown)
    assert key is not None
    now = code_of_key(key[1])
    assert client.post("/account/app/", {"code": "abcdef"}).status_code == 400
    assert client.post("/account/app/", {"code": now}).headers["Location"] == "/account/codes/"
    stored = Authenticator.objects.get(type="totp").data["secret"]
    assert key[1] not in stored, "it is sealed"
    assert len(re.findall(r"^\d{10}$", client.get("/account/codes/").content.decode(), re.MULTILINE)) >= 9

    added = AuditEntry.objects.get(action="add_second_factor")
    assert (added.username, added.target_id, added.detail) == ("viewer", "viewer", {"kind": "totp"})

    other = Client()
    answer = other.post("/login/", {"username": "viewer", "password": PASSWORD, "next": "/tasks/"})
    assert answer.headers["Location"] == "/login/second-factor/"
    assert not inside(other)
    assert other.post("/login/second-factor/", {"code": now}).status_code == 200, "the code that set it up is used"
    assert not inside(other)
    answer = other.post("/login/second-factor/", {"code": code_of(cast.users["viewer"], ahead=1)})
    assert answer.headers["Location"] == "/tasks/"
    assert inside(other)


def test_a_code_opens_one_door_once(cast: Cast) -> None:
    enrolled(cast.users["viewer"])
    code = code_of(cast.users["viewer"])
    assert rest_login(code=code).status_code == 200
    assert rest_login(code=code).status_code == 401
    browser = log_in("viewer")
    assert browser.post("/login/second-factor/", {"code": code}).status_code == 200
    assert not inside(browser)


def test_a_recovery_code_is_good_once(cast: Cast) -> None:
    enrolled(cast.users["viewer"])
    first, second = recovery_codes(cast.users["viewer"])[:2]
    assert [rest_login(code=first).status_code for _ in range(2)] == [200, 401]
    browser = log_in("viewer")
    spaced = f"{second[:5]} {second[5:]}"
    assert browser.post("/login/second-factor/", {"code": spaced}).status_code == 302
    assert inside(browser)


def test_rest_is_no_way_round(cast: Cast) -> None:
    enrolled(cast.users["viewer"])
    for given in ({}, {"code": ""}, {"code": "000000"}, {"code": "x\x00"}):
        answer = rest_login(**given)
        assert answer.status_code in (400, 401), given
        if answer.status_code == 401:
            assert answer.json()["type"] == "urn:headgate:problem:second-factor-required"
    assert rest_login(password="wrong", code=code_of(cast.users["viewer"])).json()["type"].endswith("not-authenticated")
    assert not ApiToken.objects.filter(user=cast.users["viewer"]).exists()
    assert rest_login(code=code_of(cast.users["viewer"])).status_code == 200
    assert rest_login(username="operator").status_code == 200, "who has none needs none"


def test_basic_authentication_takes_the_code_in_a_header(cast: Cast) -> None:
    enrolled(cast.users["viewer"])
    given = {"Authorization": "Basic " + base64.b64encode(f"viewer:{PASSWORD}".encode()).decode()}
    assert Client().post(REST, headers=given).status_code == 401
    headers = {**given, "X-Headgate-Code": code_of(cast.users["viewer"])}
    assert Client().post(REST, headers=headers).status_code == 200


def test_few_codes_may_be_wrong_whatever_the_address_and_without_the_cache(cast: Cast, settings: Any) -> None:
    enrolled(cast.users["viewer"])
    settings.PROXIES = 1
    for n in range(MAX_WRONG_CODES):
        browser = log_in("viewer")
        tried = browser.post("/login/second-factor/", {"code": "000000"}, headers={"X-Forwarded-For": f"10.0.0.{n}"})
        assert "The code is wrong" in tried.content.decode()
    browser = log_in("viewer")
    right = {"code": code_of(cast.users["viewer"])}
    assert "Too many wrong codes" in browser.post("/login/second-factor/", right).content.decode()
    assert rest_login(**right).status_code == 401


def test_a_login_that_was_begun_with_the_old_password_never_ends(cast: Cast) -> None:
    enrolled(cast.users["viewer"])
    thief = log_in("viewer")
    user = User.objects.get(username="viewer")
    user.set_password("another correct horse battery")
    user.save()
    assert thief.post("/login/second-factor/", {"code": code_of(user)}).status_code == 302
    assert not inside(thief)
    assert thief.get("/login/second-factor/").headers["Location"] == "/login/", "there is nothing left to end"


def test_a_factor_that_is_gone_ends_the_question(cast: Cast) -> None:
    enrolled(cast.users["viewer"])
    begun = log_in("viewer")
    old = code_of(cast.users["viewer"])
    Authenticator.objects.all().delete()
    answer = begun.post("/login/second-factor/", {"code": old})
    assert answer.headers["Location"] == "/login/"
    assert not inside(begun)


def test_changing_factors_needs_a_fresh_login(cast: Cast) -> None:
    """A session that was left open must not take the second factor away."""
    enrolled(cast.users["viewer"])
    left_open = Client()
    left_open.force_login(cast.users["viewer"])
    number = Authenticator.objects.get(type="totp").pk
    for answer in (
        left_open.post(f"/account/factors/{number}/remove/"),
        left_open.get("/account/codes/"),
        left_open.get("/account/app/"),
    ):
        assert answer.headers["Location"].startswith("/login/again/")
    assert left_open.post("/login/again/", {"secret": "wrong"}).status_code == 400
    again = left_open.post("/login/again/", {"secret": PASSWORD, "next": "https://evil.example/"})
    assert again.headers["Location"] == "/account/"
    assert left_open.post(f"/account/factors/{number}/remove/").headers["Location"] == "/account/"
    assert not Authenticator.objects.exists(), "the recovery codes went with it"
    assert inside(log_in("viewer"))


def test_a_login_is_fresh_for_ten_minutes(cast: Cast) -> None:
    enrolled(cast.users["viewer"])
    client = log_in("viewer")
    client.post("/login/second-factor/", {"code": code_of(cast.users["viewer"])})
    assert client.get("/account/codes/").status_code == 200
    session = client.session
    session[CONFIRMED_AT_KEY] -= 600
    session.save()
    assert client.get("/account/codes/").headers["Location"].startswith("/login/again/")


def test_ones_factors_are_ones_own(cast: Cast) -> None:
    enrolled(cast.users["viewer"])
    number = Authenticator.objects.get(type="totp").pk
    assert log_in("owner").post(f"/account/factors/{number}/remove/").status_code == 404
    assert Authenticator.objects.filter(pk=number).exists()


def test_a_site_admin_removes_a_lost_factor_and_what_it_opened(clients: dict[str, Client], cast: Cast) -> None:
    enrolled(cast.users["viewer"])
    session = log_in("viewer")
    session.post("/login/second-factor/", {"code": code_of(cast.users["viewer"])})
    assert inside(session)
    address = "/api/v1/users/viewer/second-factors/"
    assert clients["owner"].delete(address).status_code == 403
    assert clients["superuser"].delete("/api/v1/users/nobody/second-factors/").status_code == 404
    assert clients["superuser"].delete("/api/v1/users/superuser/second-factors/").status_code == 409, (
        "on one's own page"
    )
    admin = browsing_as(cast, "superuser")
    assert "Remove second factors" in admin.get("/people/viewer/").content.decode()
    assert browsing_as(cast, "owner").post("/people/viewer/second-factors/").status_code == 403
    assert admin.post("/people/viewer/second-factors/").status_code == 302
    [entry] = AuditEntry.objects.filter(team=None, action="remove_second_factors")
    assert (entry.username, entry.target_id) == ("superuser", "viewer")
    assert clients["superuser"].delete(address).json() == {"removed": 0}
    assert not inside(session)
    assert clients["viewer"].get(TEAMS).status_code == 401
    assert rest_login().status_code == 200


def test_another_secret_key_opens_them_and_seals_them_anew(cast: Cast, settings: Any) -> None:
    enrolled(cast.users["viewer"])
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key, of at least as many characters as the first one has"
    assert rest_login(code=code_of(cast.users["viewer"])).status_code == 200
    call_command("rotate_secrets")
    settings.SECRET_KEY_FALLBACKS = []
    assert rest_login(code=recovery_codes(cast.users["viewer"])[0]).status_code == 200


def test_rest_lists_them_without_their_secrets(cast: Cast) -> None:
    enrolled(cast.users["viewer"])
    answer = speaking_as(cast, "viewer").get("/api/v1/account/second-factors/")
    assert [(f["kind"], f["left"]) for f in answer.json()["results"]] == [("totp", None), ("recovery_codes", 10)]
    assert "secret" not in answer.content.decode() and recovery_codes(cast.users["viewer"])[0] not in str(answer.json())


def test_the_first_code_is_used(cast: Cast) -> None:
    enrolled(cast.users["viewer"])
    code = code_of(cast.users["viewer"])
    note_first_code(Authenticator.objects.get(type="totp"), code)
    assert rest_login(code=code).status_code == 401


def led(answer: Any) -> bool:
    """Whether it leads to where a second factor is set up."""
    return answer.status_code == 302 and answer.headers["Location"] == "/account/app/"


def test_who_must_have_one_is_led_to_it_and_can_do_nothing_else(cast: Cast, settings: Any) -> None:
    client, token = log_in("viewer"), speaking_as(cast, "viewer")
    settings.REQUIRE_SECOND_FACTOR = "all"
    assert [led(client.get(path)) for path in ("/", "/account/", "/datasources/flights/", "/teams/alpha/")] == [
        True
    ] * 4
    assert led(client.post("/account/tokens/", {"days": "7"}))
    assert led(client.get("/join/no-such-secret/"))
    assert client.get("/-/live/?t=team").status_code == 204
    assert not ApiToken.objects.filter(user=cast.users["viewer"]).exclude(name="test").exists()
    refused = client.get(TEAMS)
    assert (refused.status_code, refused.json()["type"]) == (403, "urn:headgate:problem:second-factor-required")
    assert client.get("/druid/indexer/v1/supervisor").status_code == 403
    assert rest_login().status_code == 401, "a password is no way to a token"
    assert token.get(TEAMS).status_code == 200, "one that there was goes on"
    assert client.get("/readyz").status_code == 200
    assert "before you can use this site" in client.get("/account/app/").content.decode()
    assert "before you can use this site" in client.get("/account/passkey/").content.decode()
    enrolled(cast.users["viewer"])
    assert inside(client)
    assert client.get(TEAMS).status_code == 200
    assert rest_login(code=code_of(cast.users["viewer"])).status_code == 200


def test_admins_alone_may_have_to(cast: Cast, settings: Any) -> None:
    settings.REQUIRE_SECOND_FACTOR = "admins"
    asked = {name: led(log_in(name).get("/")) for name in ("viewer", "operator", "owner", "superuser")}
    assert asked == {"viewer": False, "operator": False, "owner": True, "superuser": True}
    client = log_in("viewer")
    Membership.objects.filter(user=cast.users["viewer"]).update(role="admin")
    assert led(client.get("/")), "from then on"
    assert client.post("/logout/").status_code == 302
    assert not inside(client)
    assert serving(cast, Scope.READ).get(TEAMS).status_code == 200, "service accounts have no password"
