"""Logins by a provider, against a real one: who somebody is, what their groups give, and what an attacker gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.core.cache import cache
from django.test import Client

from controlplane.config.env import EnvironmentProblem
from controlplane.config.oidc_settings import mapping_of
from controlplane.teams.models import AuditEntry, Membership, User
from controlplane.teams.roles import Role
from tests.support.django_cast import PASSWORD, Cast, browsing_as, speaking_as
from tests.support.oidc import START, ProviderProcess, local, log_in_by, provider_process
from tests.support.second_factors import code_of, enrolled

TEAMS = {"eng": (("alpha", "operator"),), "leads": (("alpha", "admin"), ("beta", "viewer"))}
pytestmark = pytest.mark.usefixtures("empty_cache")


@pytest.fixture(scope="module")
def provider() -> Iterator[ProviderProcess]:
    with provider_process() as provider:
        yield provider


@pytest.fixture
def known(cast: Cast, provider: ProviderProcess, settings: Any) -> ProviderProcess:
    """Configured: unknown people may come in, and groups are worth something."""
    settings.OIDC = provider.settings(teams=TEAMS, admin_group="root", takes_new_people=True)
    return provider


def roles(username: str) -> dict[str, str]:
    return dict(Membership.objects.filter(user__username=username).values_list("team__name", "role"))


def inside(client: Client) -> str:
    """Who the browser is; empty for nobody."""
    answer = client.get("/account/")
    return str(answer.wsgi_request.user.get_username()) if answer.status_code == 200 else ""


def test_somebody_new_comes_in_with_what_the_groups_give(known: ProviderProcess) -> None:
    known.knows("ann", preferred_username="ann", email="ann@example.org", email_verified=True, groups=["eng", "x"])
    client, answer = log_in_by(known, "ann", after="/tasks/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/tasks/")
    assert (inside(client), roles("ann")) == ("ann", {"alpha": "operator"})
    user = User.objects.get(username="ann")
    assert (user.email, user.has_usable_password()) == ("ann@example.org", False)
    entry = AuditEntry.objects.get(target="member")
    assert (entry.username, entry.action, entry.target_id, entry.detail) == (
        "",
        "set",
        "ann",
        {"by": "groups", "role": "operator"},
    )
    again, _ = log_in_by(known, "ann")
    assert (inside(again), User.objects.filter(username__startswith="ann").count()) == ("ann", 1)
    assert SocialAccount.objects.get().extra_data == {}


def test_groups_are_followed_and_what_was_given_by_hand_stays(known: ProviderProcess, cast: Cast) -> None:
    known.knows("bob", preferred_username="bob", groups=["leads"])
    log_in_by(known, "bob")
    assert roles("bob") == {"alpha": "admin", "beta": "viewer"}
    bob = User.objects.get(username="bob")
    Membership.objects.filter(user=bob, team=cast.beta).delete()
    Membership.objects.create(user=bob, team=cast.beta, role=Role.OPERATOR)
    known.knows("bob", preferred_username="bob", groups=["eng"])
    log_in_by(known, "bob")
    assert roles("bob") == {"alpha": "operator", "beta": "operator"}
    known.knows("bob", preferred_username="bob")
    log_in_by(known, "bob")
    assert roles("bob") == {"beta": "operator"}
    assert list(AuditEntry.objects.filter(team=cast.alpha).order_by("id").values_list("action", flat=True)) == [
        "set",
        "set",
        "remove",
    ]


def test_the_last_admin_stays_and_is_told(known: ProviderProcess, cast: Cast) -> None:
    known.knows("cat", preferred_username="cat", groups=["leads"])
    log_in_by(known, "cat")
    Membership.objects.filter(user=cast.users["owner"]).delete()
    known.knows("cat", preferred_username="cat", groups=[])
    client, _ = log_in_by(known, "cat")
    assert roles("cat") == {"alpha": "admin"}
    assert "cat stays the last admin of team alpha" in client.get("/").content.decode()


def test_a_group_makes_site_admins_and_unmakes_those_alone(known: ProviderProcess, cast: Cast) -> None:
    known.knows("dan", preferred_username="dan", groups="root")
    log_in_by(known, "dan")
    assert User.objects.get(username="dan").is_superuser
    known.knows("dan", preferred_username="dan", groups=["eng"])
    log_in_by(known, "dan")
    assert not User.objects.get(username="dan").is_superuser
    User.objects.filter(username="dan").update(is_superuser=True)  # by hand
    log_in_by(known, "dan")
    assert User.objects.get(username="dan").is_superuser


# Whose login it is


@pytest.mark.parametrize("verified", [False, "true", None])
def test_an_address_that_is_not_verified_takes_over_nobody(
    known: ProviderProcess, cast: Cast, settings: Any, verified: object
) -> None:
    User.objects.filter(username="superuser").update(email="boss@example.org")
    settings.OIDC = known.settings(links_by_email=True)
    known.knows("eve", preferred_username="superuser", email="boss@example.org", email_verified=verified)
    client, answer = log_in_by(known, "eve")
    assert (answer.status_code, inside(client)) == (403, "")
    assert not SocialAccount.objects.exists()


def test_a_verified_address_links_only_where_that_is_allowed(known: ProviderProcess, cast: Cast, settings: Any) -> None:
    User.objects.filter(username="viewer").update(email="Vi@example.org")
    known.knows("vi", preferred_username="superuser", email="vi@example.org", email_verified=True)
    settings.OIDC = known.settings()
    assert log_in_by(known, "vi")[1].status_code == 403
    settings.OIDC = known.settings(takes_new_people=True)
    client, _ = log_in_by(known, "vi")
    assert inside(client) == "superuser-2", "a name that the provider gives is nobody's but one's own"
    assert User.objects.get(username="superuser-2").email == "", "the address is another's here"
    SocialAccount.objects.all().delete()
    settings.OIDC = known.settings(links_by_email=True)
    client, _ = log_in_by(known, "vi")
    assert inside(client) == "viewer"
    known.knows("vi2", email="vi@example.org", email_verified=True)
    assert log_in_by(known, "vi2")[1].status_code == 403, "the login has its account there already"


def test_who_held_a_login_before_it_was_linked_holds_it_no_more(
    known: ProviderProcess, cast: Cast, settings: Any
) -> None:
    """A login may have been made with another's address: by a link for an invitation that was shown, not mailed."""
    User.objects.filter(username="viewer").update(email="boss@example.org")
    enrolled(cast.users["viewer"])
    before = [speaking_as(cast, "viewer"), browsing_as(cast, "viewer")]
    settings.OIDC = known.settings(links_by_email=True)
    known.knows("boss", email="boss@example.org", email_verified=True)
    client, _ = log_in_by(known, "boss")
    assert inside(client) == "viewer"
    assert [c.get("/api/v1/teams/").status_code for c in before] == [401, 401]
    assert Client().post("/login/", {"username": "viewer", "password": PASSWORD}).status_code == 200


def test_letters_that_look_the_same_are_not(known: ProviderProcess, cast: Cast, settings: Any) -> None:
    User.objects.filter(username="viewer").update(email="mike@example.org")
    settings.OIDC = known.settings(links_by_email=True)
    known.knows("mike", email="m\u0131ke@example.org", email_verified=True)
    assert log_in_by(known, "mike")[1].status_code == 403


def test_a_name_that_is_invited_is_not_to_be_had(
    known: ProviderProcess, cast: Cast, clients: dict[str, Client]
) -> None:
    body = {"role": "admin"}
    assert (
        clients["owner"].put("/api/v1/teams/alpha/members/fay/", body, content_type="application/json").status_code
        == 202
    )
    known.knows("eve2", preferred_username="fay")
    client, _ = log_in_by(known, "eve2")
    assert inside(client) == "fay-2"


def test_who_is_turned_off_stays_out(known: ProviderProcess) -> None:
    known.knows("gus", preferred_username="gus", groups=["eng"])
    log_in_by(known, "gus")
    User.objects.filter(username="gus").update(is_active=False)
    Membership.objects.filter(user__username="gus").delete()
    client, _ = log_in_by(known, "gus")
    assert (inside(client), roles("gus")) == ("", {})


def test_a_second_factor_is_asked_for_here_too(known: ProviderProcess) -> None:
    known.knows("hal", preferred_username="hal")
    log_in_by(known, "hal")
    hal = User.objects.get(username="hal")
    enrolled(hal)
    client, answer = log_in_by(known, "hal")
    assert (answer.headers["Location"], inside(client)) == ("/login/second-factor/", "")
    client.post("/login/second-factor/", {"code": code_of(hal)})
    assert inside(client) == "hal"


@pytest.mark.parametrize("name", ["", "a b/<script>", "x" * 500, "..", "é\u0000"])
def test_any_name_becomes_one_that_a_user_may_have(known: ProviderProcess, name: str) -> None:
    known.knows("odd", preferred_username=name, given_name=name, groups=[1, None, {}])
    client, answer = log_in_by(known, "odd")
    assert answer.status_code == 302
    User.username_validator(inside(client))


# What comes back


def test_an_answer_to_another_browser_or_twice_is_worth_nothing(known: ProviderProcess) -> None:
    known.knows("ivy", preferred_username="ivy")
    victim, attacker = Client(), Client()
    theirs = known.agrees(attacker.get(START).headers["Location"], "ivy")
    answer = victim.get(local(theirs))
    assert (answer.status_code, inside(victim)) == (502, "")
    assert "belongs to no login attempt of this browser" in answer.content.decode()
    assert attacker.get(local(theirs)).status_code == 302
    attacker.post("/logout/")
    assert attacker.get(local(theirs)).status_code == 502


def test_a_code_of_another_login_is_worth_nothing(known: ProviderProcess) -> None:
    """The code of an attacker's login, put into the victim's: neither the proof of the key nor the nonce fit."""
    known.knows("jan", preferred_username="jan")
    victim, attacker = Client(), Client()
    theirs = known.agrees(attacker.get(START).headers["Location"], "jan")
    mine = known.agrees(victim.get(START).headers["Location"], "jan")
    code = theirs.split("code=")[1].split("&")[0]
    own = mine.split("code=")[1].split("&")[0]
    answer = victim.get(local(mine.replace(own, code)))
    assert (answer.status_code, inside(victim)) == (502, "")


def test_a_nonce_of_another_login_is_refused(known: ProviderProcess) -> None:
    known.knows("kim", preferred_username="kim")
    client = Client()
    start = client.get(START).headers["Location"]
    nonce = start.split("nonce=")[1].split("&")[0]
    answer = client.get(local(known.agrees(start.replace(nonce, "another"), "kim")))
    assert (answer.status_code, inside(client)) == (502, "")
    assert "nonce" in answer.content.decode()


@pytest.mark.parametrize("after", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_the_way_back_is_this_site(known: ProviderProcess, after: str) -> None:
    known.knows("lee", preferred_username="lee")
    assert log_in_by(known, "lee", after=after)[1].headers["Location"] == "/"


def test_a_login_that_is_stopped_there_says_so(known: ProviderProcess) -> None:
    client = Client()
    address = client.get(START).headers["Location"]
    state = address.split("state=")[1].split("&")[0]
    answer = client.get("/login/by/oidc/callback/", {"error": "access_denied", "state": state})
    assert (answer.status_code, "stopped" in answer.content.decode()) == (403, True)


def test_a_provider_that_is_away_or_another_says_so(known: ProviderProcess, settings: Any) -> None:
    settings.OIDC = ProviderProcess("http://127.0.0.1:1").settings()
    answer = Client().get(START)
    assert (answer.status_code, "does not answer" in answer.content.decode()) == (502, True)
    settings.OIDC = ProviderProcess(known.url.replace("127.0.0.1", "localhost")).settings()
    settings.OIDC = known.settings(issuer=f"{known.url}/nothing")
    answer = Client().get(START)
    assert (answer.status_code, "answered 404" in answer.content.decode()) == (502, True)


def test_the_cache_is_not_needed(known: ProviderProcess) -> None:
    cache.clear()
    known.knows("max", preferred_username="max")
    assert inside(log_in_by(known, "max")[0]) == "max"


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"a": "web"}', '{"a": "web:king"}', '{"a": 5}', '{"a": [5]}', '{"a": ":admin"}']
)
def test_a_mapping_that_can_not_be_read_is_refused(text: str) -> None:
    with pytest.raises(EnvironmentProblem, match="HEADGATE_OIDC_TEAMS"):
        mapping_of(text)


def test_a_mapping_is_one_role_or_several() -> None:
    given = '{"leads": ["web:admin", "a:b:viewer"], "all": "web:viewer"}'
    assert mapping_of(given) == {"leads": (("web", "admin"), ("a:b", "viewer")), "all": (("web", "viewer"),)}
