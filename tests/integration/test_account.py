"""One's own account: password, sessions, tokens; and where a login leads."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.login import email_address, sessions
from controlplane.login.celery_tasks import drop_over
from controlplane.login.models import Session
from controlplane.teams.models import ApiToken, AuditEntry, User
from tests.support.django_cast import PASSWORD, Cast, browsing_as, speaking_as
from tests.support.mailbox import mail_server
from tests.support.second_factors import log_in

OTHER = "another correct horse battery"
SESSIONS = "/api/v1/account/sessions/"
pytestmark = pytest.mark.usefixtures("empty_cache")


def inside(client: Client) -> bool:
    return client.get("/account/").status_code == 200


@pytest.mark.parametrize(
    ("asked", "led"),
    [
        ("/tasks/", "/tasks/"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("http:///evil.example", "/"),
    ],
)
def test_a_login_leads_to_this_site_alone(cast: Cast, asked: str, led: str) -> None:
    answer = Client().post("/login/", {"username": "viewer", "password": PASSWORD, "next": asked})
    assert (answer.status_code, answer.headers["Location"]) == (302, led)


def test_another_password_ends_the_other_sessions_and_tokens(cast: Cast) -> None:
    mine, other, token = log_in("viewer"), log_in("viewer"), speaking_as(cast, "viewer")
    given = {"old_password": PASSWORD, "new_password1": OTHER, "new_password2": OTHER}
    assert mine.post("/account/password/", {**given, "old_password": "wrong"}).status_code == 400
    assert mine.post("/account/password/", {**given, "new_password2": "short"}).status_code == 400
    assert inside(other)
    assert mine.post("/account/password/", given).status_code == 302
    assert (inside(mine), inside(other)) == (True, False)
    assert token.get("/api/v1/teams/").status_code == 401
    assert Session.objects.filter(user=cast.users["viewer"]).count() == 1
    assert Client().post("/login/", {"username": "viewer", "password": PASSWORD}).status_code == 200
    log_in("viewer", OTHER)


def test_ones_password_is_not_to_be_guessed_by_a_session_that_was_left_open(cast: Cast) -> None:
    mine = browsing_as(cast, "viewer")
    tried = [mine.post("/account/password/", {"old_password": "wrong"}) for _ in range(9)]
    assert "Too many wrong passwords" in tried[-1].content.decode()
    given = {"old_password": PASSWORD, "new_password1": OTHER, "new_password2": OTHER}
    assert mine.post("/account/password/", given).status_code == 400
    assert User.objects.get(username="viewer").check_password(PASSWORD)


def test_sessions_say_where_they_are_and_end(cast: Cast) -> None:
    mine = Client(headers={"User-Agent": "Browser\x07 One"}, REMOTE_ADDR="203.0.113.5")
    mine.post("/login/", {"username": "viewer", "password": PASSWORD})
    other, third, owners = log_in("viewer"), log_in("viewer"), log_in("owner")
    found = mine.get(SESSIONS).json()["results"]
    assert len(found) == 3
    [this] = [s for s in found if s["is_current"]]
    assert (this["address"], this["browser"]) == ("203.0.113.5", "Browser One")
    assert str(mine.session.session_key) not in str(found), "it would open the session"
    [theirs] = other.get(SESSIONS).json()["results"][:0] or [
        s for s in other.get(SESSIONS).json()["results"] if s["is_current"]
    ]
    assert owners.post(f"/account/sessions/{theirs['id']}/end/").status_code == 404
    assert inside(other)
    assert mine.post(f"/account/sessions/{theirs['id']}/end/").status_code == 302
    assert [inside(c) for c in (mine, other, third, owners)] == [True, False, True, True]
    assert mine.post("/account/sessions/others/end/").status_code == 302
    assert [inside(c) for c in (mine, third, owners)] == [True, False, True]


def test_a_token_ends_sessions_over_rest(cast: Cast) -> None:
    browser, token = log_in("viewer"), speaking_as(cast, "viewer")
    [found] = token.get(SESSIONS).json()["results"]
    assert found["is_current"] is False
    assert token.delete(f"{SESSIONS}{found['id']}/").status_code == 204
    assert not inside(browser)
    second = log_in("viewer")
    assert token.delete(SESSIONS).status_code == 204
    assert not inside(second)


def test_a_session_that_counts_for_nothing_is_not_listed(cast: Cast) -> None:
    mine, over = log_in("viewer"), log_in("viewer")
    Session.objects.filter(pk=over.session.session_key).update(expire_date=timezone.now() - timedelta(seconds=1))
    assert len(mine.get(SESSIONS).json()["results"]) == 1
    User.objects.filter(username="viewer").update(logins_ended=7)
    assert speaking_as(cast, "viewer").get(SESSIONS).json()["results"] == []


def test_sessions_whose_time_is_over_are_deleted(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "BATCH_SIZE", 2)
    mine = log_in("viewer")
    for _ in range(5):
        log_in("owner")
    Session.objects.filter(user=cast.users["owner"]).update(expire_date=timezone.now() - timedelta(seconds=1))
    drop_over.apply(throw=True)
    assert Session.objects.filter(user=cast.users["owner"]).count() == 0
    assert inside(mine)


def test_a_session_is_written_down_as_seen_once_a_minute(cast: Cast) -> None:
    mine = browsing_as(cast, "viewer")
    early = timezone.now() - timedelta(minutes=5)
    Session.objects.update(seen_at=early)
    with CaptureQueriesContext(connection) as first:
        mine.get("/api/v1/teams/")
    with CaptureQueriesContext(connection) as second:
        mine.get("/api/v1/teams/")
    assert Session.objects.get().seen_at > early
    assert len(second) == len(first) - 1


def test_tokens_are_made_shown_once_and_revoked(cast: Cast) -> None:
    mine = browsing_as(cast, "viewer")
    made = mine.post("/account/tokens/", {"name": "<b>ci</b>", "days": "7"})
    assert made.status_code == 201
    secret = re.search(r'id="new-token"[^>]*>(\w+)<', made.content.decode())
    assert secret is not None and "<b>ci</b>" not in made.content.decode()
    bearer = {"Authorization": f"Bearer {secret[1]}"}
    assert Client().get("/api/v1/teams/", headers=bearer).status_code == 200
    assert secret[1] not in mine.get("/account/").content.decode()
    token = ApiToken.objects.get(user=cast.users["viewer"])
    assert browsing_as(cast, "owner").post(f"/account/tokens/{token.token_key}/revoke/").status_code == 404
    revoke = f"/account/tokens/{token.token_key}/revoke/"
    asked = mine.post(revoke)
    assert (asked.status_code, "It was last used at" in asked.content.decode()) == (200, True)
    assert Client().get("/api/v1/teams/", headers=bearer).status_code == 200, "it asks first"
    assert mine.post(revoke, {"sure": "True"}).status_code == 302
    assert Client().get("/api/v1/teams/", headers=bearer).status_code == 401
    assert mine.post("/account/tokens/", {"name": "ci", "days": "366"}).status_code == 400


def test_the_page_costs_the_same_with_many_sessions_and_tokens(cast: Cast) -> None:
    mine = browsing_as(cast, "viewer")
    inside(mine)
    with CaptureQueriesContext(connection) as few:
        inside(mine)
    for _ in range(5):
        browsing_as(cast, "viewer")
        speaking_as(cast, "viewer")
    with CaptureQueriesContext(connection) as many:
        inside(mine)
    assert len(many) == len(few)


EMAIL = "/api/v1/account/email/"
NEW = "vi@example.org"


def test_without_a_mail_server_ones_address_changes_at_once(cast: Cast) -> None:
    User.objects.filter(username="owner").update(email="Taken@example.org")
    mine = log_in("viewer")
    assert mine.post("/account/email/", {"email": "no address"}).status_code == 400
    taken = mine.post("/account/email/", {"email": "taken@Example.org"})
    assert (taken.status_code, "Another login has" in taken.content.decode()) == (409, True)
    assert mine.post("/account/email/", {"email": NEW.upper()}).status_code == 302
    assert mine.get("/api/v1/account/").json()["email"] == NEW
    assert mine.post("/account/email/", {"email": ""}).status_code == 302
    assert User.objects.get(username="viewer").email == ""
    entries = AuditEntry.objects.filter(team=None, action="email", target_id="viewer").order_by("id")
    assert [(e.username, e.detail) for e in entries] == [("viewer", {"before": ""}), ("viewer", {"before": NEW})]


def test_with_one_it_is_ones_own_when_its_link_was_opened(cast: Cast, settings: Any) -> None:
    User.objects.filter(username="viewer").update(email="old@example.org")
    mine, other = log_in("viewer"), log_in("owner")
    with mail_server(settings) as mailbox:
        assert mine.post("/account/email/", {"email": NEW}).status_code == 302
        assert mailbox.messages[0]["To"] == NEW
        assert User.objects.get(username="viewer").email == "old@example.org", "nobody has shown that it is theirs"
        link = re.search(r"http://testserver(/\S+)", mailbox.newest())
        assert link is not None
        assert other.post(link[1]).status_code == 404, "it is for another login"
        assert NEW in mine.get(link[1]).content.decode()
        assert mine.post(link[1]).status_code == 302
        assert User.objects.get(username="viewer").email == NEW
        assert mailbox.messages[-1]["To"] == "old@example.org", "it hears of it"
        assert mine.post(link[1]).status_code == 404, "it works once"


def test_a_link_is_void_when_the_address_has_become_somebodys_or_logins_have_ended(cast: Cast) -> None:
    mine, viewer = log_in("viewer"), User.objects.get(username="viewer")
    link = f"/account/email/{email_address.secret_for(viewer, NEW)}/"
    User.objects.filter(username="owner").update(email=NEW)
    assert "Another login has" in mine.post(link, follow=True).content.decode()
    User.objects.filter(username="owner").update(email="")
    User.objects.filter(username="viewer").update(logins_ended=viewer.logins_ended + 1)
    assert log_in("viewer").post(link).status_code == 404
    assert User.objects.get(username="viewer").email == ""


def test_an_address_leads_to_the_password_so_a_token_alone_changes_none(cast: Cast) -> None:
    token = speaking_as(cast, "viewer")
    asked = {"email": NEW, "secret": "wrong"}
    assert token.put(EMAIL, asked, content_type="application/json").status_code == 403
    old = browsing_as(cast, "viewer")  # its login is not fresh
    again = old.post("/account/email/", {"email": NEW}, follow=True)
    assert again.redirect_chain[0][0].startswith("/login/again/")
    assert "Nothing has changed yet" in again.content.decode()
    _, scoped = ApiToken.objects.create(user=cast.users["viewer"], scope="admin")
    limited = Client(headers={"Authorization": f"Bearer {scoped}"})
    assert limited.put(EMAIL, {**asked, "secret": PASSWORD}, content_type="application/json").status_code == 403
    assert User.objects.get(username="viewer").email == ""
    answer = token.put(EMAIL, {**asked, "secret": PASSWORD}, content_type="application/json")
    assert answer.json() == {"email": NEW, "mailed_to": ""}


def test_a_token_of_ones_own_has_a_scope_and_datasources_if_asked(cast: Cast) -> None:
    mine = browsing_as(cast, "owner")
    assert mine.post("/account/tokens/", {"days": "7", "datasources": ["flights"]}).status_code == 400, "no scope"
    assert mine.post("/account/tokens/", {"days": "7", "scope": "read", "datasources": ["nobodys"]}).status_code == 400
    made = mine.post("/account/tokens/", {"days": "7", "scope": "read", "datasources": ["flights"]})
    secret = re.search(r'id="new-token"[^>]*>(\w+)<', made.content.decode())
    assert secret is not None
    limited = Client(headers={"Authorization": f"Bearer {secret[1]}"})
    assert limited.get("/api/v1/datasources/flights/").status_code == 200
    assert limited.post("/api/v1/supervisors/flights/suspend/").status_code == 403
    assert limited.get("/api/v1/teams/").json()["results"] == []
