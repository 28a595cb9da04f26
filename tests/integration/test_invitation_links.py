"""Invitations by a link: one use, for one address, for a time, and as long as who invites may."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from controlplane.teams.models import AuditEntry, LinkInvitation, Membership, Team, User
from controlplane.teams.roles import Role
from tests.support.django_cast import PASSWORD, Cast, browsing_as

LINKS = "/api/v1/teams/alpha/invitation-links/"
NEW = {"username": "newcomer", "password": PASSWORD, "again": PASSWORD}
ADDRESS = "new@example.org"


def invite(client: Client, email: str = ADDRESS, role: str = "operator") -> dict[str, Any]:
    answer = client.post(LINKS, {"email": email, "role": role}, content_type="application/json")
    assert answer.status_code == 201, answer.content
    return dict(answer.json())


def path_of(made: dict[str, Any]) -> str:
    return urlsplit(made["link"]).path


def roles(team: Team) -> dict[str, str]:
    return dict(team.memberships.values_list("user__username", "role"))


def test_a_stranger_makes_a_login_and_sees_exactly_the_team(clients: dict[str, Client], cast: Cast) -> None:
    path, stranger = path_of(invite(clients["owner"])), Client()
    page = stranger.get(path)
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    assert stranger.post(path, NEW)["Location"] == "/"
    made = User.objects.get(username="newcomer")
    assert (made.email, made.is_superuser, made.check_password(PASSWORD)) == (ADDRESS, False, True)
    assert roles(cast.alpha)["newcomer"] == Role.OPERATOR
    assert [team["name"] for team in stranger.get("/api/v1/teams/").json()["results"]] == ["alpha"]
    assert stranger.get("/teams/beta/").status_code == 404
    assert not LinkInvitation.objects.exists()
    entry = AuditEntry.objects.filter(action="join").get()
    assert (entry.username, entry.detail["by"], entry.detail["invited"]) == ("newcomer", "owner", ADDRESS)


def test_the_secret_is_kept_nowhere(clients: dict[str, Client]) -> None:
    made = invite(clients["owner"])
    secret = path_of(made).split("/")[2]
    assert len(secret) >= 43, "256 bits"
    kept = [*LinkInvitation.objects.values_list(), *AuditEntry.objects.values_list()]
    assert secret not in str(kept)
    assert "link" not in clients["owner"].get(LINKS).json()["results"][0]


def test_a_link_works_once(clients: dict[str, Client], cast: Cast) -> None:
    """Row 29 of the security checklist: used up by the first."""
    path = path_of(invite(clients["owner"]))
    assert Client().post(path, NEW).status_code == 302
    assert Client().get(path).status_code == 404
    assert Client().post(path, {**NEW, "username": "another"}).status_code == 404
    assert "another" not in roles(cast.alpha)


@pytest.mark.django_db(transaction=True)
def test_a_link_works_once_for_two_at_once(cast: Cast, clients: dict[str, Client]) -> None:
    """Row 29 of the security checklist: neither for two who are equally quick."""
    path, start = path_of(invite(clients["owner"])), Barrier(4)

    def join(number: int) -> int:
        try:
            client = Client(raise_request_exception=False)
            start.wait()
            return client.post(path, {**NEW, "username": f"newcomer-{number}"}).status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        codes = sorted(pool.map(join, range(4)))
    assert codes == [302, 404, 404, 404]
    assert sum(name.startswith("newcomer") for name in roles(cast.alpha)) == 1
    assert User.objects.filter(username__startswith="newcomer").count() == 1


def _over(cast: Cast, clients: dict[str, Client]) -> None:
    LinkInvitation.objects.update(expires_at=timezone.now())


def _withdrawn(cast: Cast, clients: dict[str, Client]) -> None:
    [one] = clients["owner"].get(LINKS).json()["results"]
    assert clients["owner"].delete(f"{LINKS}{one['id']}/").status_code == 204


def _replaced(cast: Cast, clients: dict[str, Client]) -> None:
    invite(clients["owner"], ADDRESS.upper())


def _inviter_is_operator(cast: Cast, clients: dict[str, Client]) -> None:
    Membership.objects.create(user=cast.users["outsider"], team=cast.alpha, role=Role.ADMIN)
    assert (
        clients["outsider"]
        .put("/api/v1/teams/alpha/members/owner/", {"role": "operator"}, content_type="application/json")
        .status_code
        == 200
    )


def _inviter_has_left(cast: Cast, clients: dict[str, Client]) -> None:
    cast.alpha.memberships.filter(user=cast.users["owner"]).delete()


def _inviter_is_off(cast: Cast, clients: dict[str, Client]) -> None:
    User.objects.filter(username="owner").update(is_active=False)


def _inviter_is_gone(cast: Cast, clients: dict[str, Client]) -> None:
    cast.users["owner"].delete()


def _team_is_gone(cast: Cast, clients: dict[str, Client]) -> None:
    Team.objects.filter(pk=cast.alpha.pk).update(deleted_at=timezone.now())


@pytest.mark.parametrize(
    "change",
    [
        _over,
        _withdrawn,
        _replaced,
        _inviter_is_operator,
        _inviter_has_left,
        _inviter_is_off,
        _inviter_is_gone,
        _team_is_gone,
    ],
)
def test_a_link_that_is_void_says_the_same_whatever_made_it_so(
    cast: Cast, clients: dict[str, Client], change: Callable[[Cast, dict[str, Client]], None]
) -> None:
    """Row 29 of the security checklist: over, withdrawn, or of somebody who may invite nobody any more."""
    path = path_of(invite(clients["owner"]))
    change(cast, clients)
    answers = [Client().get(path), Client().post(path, NEW), Client().get("/join/no-such-secret/")]
    assert [answer.status_code for answer in answers] == [404, 404, 404]
    token = re.compile(rb'name="csrfmiddlewaretoken" value="[^"]*"')
    assert len({token.sub(b"", answer.content) for answer in answers}) == 1
    assert not User.objects.filter(username="newcomer").exists()


def test_it_lasts_seven_days(clients: dict[str, Client]) -> None:
    before = timezone.now()
    invite(clients["owner"])
    after = timezone.now()
    assert before + timedelta(days=7) <= LinkInvitation.objects.get().expires_at <= after + timedelta(days=7)


def test_a_login_with_the_address_accepts_with_a_click(clients: dict[str, Client], cast: Cast) -> None:
    User.objects.filter(username="outsider").update(email="Out@Example.org")
    path, outsider = path_of(invite(clients["owner"], "out@example.org", "viewer")), browsing_as(cast, "outsider")
    assert b"Accept as outsider" in outsider.get(path).content
    assert "outsider" not in roles(cast.alpha)
    assert outsider.post(path)["Location"] == "/"
    assert roles(cast.alpha)["outsider"] == Role.VIEWER
    assert outsider.get(path).status_code == 404


@pytest.mark.parametrize("email", ["", "other@example.org"])
def test_a_login_with_another_address_is_refused(clients: dict[str, Client], cast: Cast, email: str) -> None:
    """Row 29 of the security checklist: nobody takes another's."""
    User.objects.filter(username="outsider").update(email=email)
    path, outsider = path_of(invite(clients["owner"])), browsing_as(cast, "outsider")
    for answer in (outsider.get(path), outsider.post(path)):
        assert answer.status_code == 403
        assert b"another e-mail address" in answer.content
    assert "outsider" not in roles(cast.alpha)
    assert LinkInvitation.objects.count() == 1


def test_inviting_and_joining_tell_nothing_of_who_has_the_address(clients: dict[str, Client], cast: Cast) -> None:
    """Row 24 of the security checklist: an address that somebody has and one that nobody has are answered alike."""
    User.objects.filter(username="outsider").update(email="known@example.org")
    answers = []
    for email, username in (("known@example.org", "first"), ("nobody@example.org", "second")):
        made = invite(clients["owner"], email)
        path = path_of(made)
        answers.append(
            (
                sorted(made),
                Client().get(path).status_code,
                Client().post(path, {**NEW, "username": username}).status_code,
            )
        )
    assert answers[0] == answers[1]
    assert User.objects.get(username="first").email == "", "the address stays with the login that has it"
    assert User.objects.get(username="second").email == "nobody@example.org"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"again": "something else 123"}, b"not the same"),
        ({"password": "short", "again": "short"}, b"at least"),
        ({"username": "owner"}, b"is taken"),
        ({"username": "a name with blanks"}, b"valid username"),
        ({"username": "a\nb"}, b"valid username"),
        ({"username": ""}, b"required"),
    ],
)
def test_a_login_that_can_not_be_made_says_why_and_uses_nothing_up(
    clients: dict[str, Client], empty_cache: None, change: dict[str, str], text: bytes
) -> None:
    path, before = path_of(invite(clients["owner"])), User.objects.count()
    answer = Client().post(path, {**NEW, **change})
    assert answer.status_code == 400
    assert text in answer.content
    assert User.objects.count() == before
    assert Client().post(path, NEW).status_code == 302


def test_names_can_not_be_tried_out_in_numbers(clients: dict[str, Client], empty_cache: None) -> None:
    path, stranger = path_of(invite(clients["owner"])), Client()
    codes = [stranger.post(path, {**NEW, "username": "owner"}).status_code for _ in range(9)]
    assert codes == [400] * 8 + [429]


def test_a_session_from_before_is_not_the_one_of_the_new_login(clients: dict[str, Client]) -> None:
    """Who has planted a session's key in the stranger's browser has nothing of it."""
    path, stranger = path_of(invite(clients["owner"])), Client()
    planted = stranger.session
    planted["planted"] = "yes"
    planted.save()
    stranger.cookies["sessionid"] = str(planted.session_key)
    assert stranger.post(path, NEW).status_code == 302
    assert stranger.cookies["sessionid"].value != planted.session_key
    victim = Client()
    victim.cookies["sessionid"] = str(planted.session_key)
    assert victim.get("/api/v1/teams/").status_code == 401


def test_joining_needs_the_forms_token(clients: dict[str, Client]) -> None:
    path = path_of(invite(clients["owner"]))
    assert Client(enforce_csrf_checks=True).post(path, NEW).status_code == 403
    assert not User.objects.filter(username="newcomer").exists()


@pytest.mark.parametrize(
    "email", ["", "no address", "a@b", "a@b.org\nBcc: c@d.org", "x" * 250 + "@example.org", "\x00@example.org"]
)
def test_what_is_no_address_is_refused(clients: dict[str, Client], email: str) -> None:
    answer = clients["owner"].post(LINKS, {"email": email, "role": "viewer"}, content_type="application/json")
    assert answer.status_code == 400
    assert not LinkInvitation.objects.exists()


def test_the_page_shows_the_link_once(cast: Cast) -> None:
    browser = browsing_as(cast, "owner")
    made = browser.post("/teams/alpha/invite-by-link/", {"email": ADDRESS, "role": "viewer"})
    [path] = re.findall(r"http://testserver(/join/[^/]+/)", made.content.decode())
    assert Client().get(path).status_code == 200
    assert b"/join/" not in browser.get("/teams/alpha/").content
    assert ADDRESS.encode() in browser.get("/teams/alpha/").content
    assert ADDRESS.encode() not in browsing_as(cast, "operator").get("/teams/alpha/").content
