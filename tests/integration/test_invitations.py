"""Members by invitation: who is invited, who accepts, who leaves, and what nobody is told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.teams.models import AuditEntry, Invitation, Membership
from controlplane.teams.roles import Role
from tests.support.django_cast import Cast, browsing_as, speaking_as
from tests.support.html import parsed

MEMBERS, MINE = "/api/v1/teams/alpha/members/", "/api/v1/invitations/"


def invite(client: Client, username: str = "outsider", role: str = "viewer") -> Any:
    return client.put(f"{MEMBERS}{username}/", {"role": role}, content_type="application/json")


def in_alpha(cast: Cast) -> set[str]:
    return set(cast.alpha.memberships.values_list("user__username", flat=True))


def test_inviting_tells_nothing_of_who_there_is(clients: dict[str, Client], cast: Cast) -> None:
    """Row 24 of the security checklist: a user that there is and one that there is not are answered alike."""
    known, unknown = invite(clients["owner"], "outsider"), invite(clients["owner"], "nobody")
    assert known.status_code == unknown.status_code == 202
    assert known.json() == {**unknown.json(), "username": "outsider"}
    listed = clients["owner"].get("/api/v1/teams/alpha/invitations/").json()["results"]
    assert [(i["username"], i["role"]) for i in listed] == [("nobody", "viewer"), ("outsider", "viewer")]


def test_who_is_invited_is_no_member_before_they_accept(clients: dict[str, Client], cast: Cast) -> None:
    """Row 25 of the security checklist: an invitation counts for nothing until it is accepted."""
    outsider = clients["outsider"]
    assert invite(clients["owner"], role="operator").json()["state"] == "invited"
    assert "outsider" not in in_alpha(cast)
    assert outsider.get("/api/v1/datasources/flights/").status_code == 404
    [mine] = outsider.get(MINE).json()["results"]
    assert (mine["team"], mine["role"], mine["by"]) == ("alpha", "operator", "owner")
    assert outsider.post(f"{MINE}alpha/").status_code == 200
    assert outsider.get("/api/v1/datasources/flights/").status_code == 200
    assert Membership.objects.get(team=cast.alpha, user=cast.users["outsider"]).role == Role.OPERATOR
    assert outsider.get(MINE).json()["results"] == []


def test_an_invitation_is_for_one_name_and_one_use(clients: dict[str, Client], cast: Cast) -> None:
    """Row 25 of the security checklist: nobody else takes it, nobody takes it twice."""
    invite(clients["owner"])
    assert clients["viewer"].post(f"{MINE}alpha/").status_code == 404
    assert [clients["outsider"].post(f"{MINE}alpha/").status_code for _ in range(2)] == [200, 404]
    clients["owner"].delete(f"{MEMBERS}outsider/")
    assert clients["outsider"].post(f"{MINE}alpha/").status_code == 404


def test_it_can_be_declined_withdrawn_and_becomes_old(clients: dict[str, Client], cast: Cast) -> None:
    invite(clients["owner"])
    assert clients["outsider"].delete(f"{MINE}alpha/").status_code == 204
    assert clients["outsider"].post(f"{MINE}alpha/").status_code == 404
    invite(clients["owner"])
    assert clients["owner"].delete(f"{MEMBERS}outsider/").status_code == 204
    assert clients["outsider"].get(MINE).json()["results"] == []
    invite(clients["owner"])
    Invitation.objects.update(created_at=timezone.now() - timedelta(days=31))
    assert clients["outsider"].post(f"{MINE}alpha/").status_code == 404
    assert "outsider" not in in_alpha(cast)


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_everybody_may_leave_but_the_last_admin(clients: dict[str, Client], cast: Cast, role: str) -> None:
    """Row 25 of the security checklist: nobody is kept in a team."""
    assert clients[role].delete(f"{MEMBERS}owner/").status_code == 403
    assert clients[role].delete(f"{MEMBERS}{role}/").status_code == 204
    assert clients[role].get("/api/v1/datasources/flights/").status_code == 404
    assert clients["owner"].delete(f"{MEMBERS}owner/").status_code == 409
    assert in_alpha(cast) == {"owner", "operator", "viewer"} - {role}


def test_each_step_is_in_the_audit_trail(clients: dict[str, Client], cast: Cast) -> None:
    owner, outsider = clients["owner"], clients["outsider"]
    invite(owner)
    outsider.post(f"{MINE}alpha/")
    invite(owner, role="operator")
    outsider.delete(f"{MEMBERS}outsider/")
    invite(owner)
    outsider.delete(f"{MINE}alpha/")
    invite(owner)
    owner.delete(f"{MEMBERS}outsider/")
    found = AuditEntry.objects.filter(team=cast.alpha).order_by("id").values_list("username", "action")
    assert list(found) == [
        ("owner", "invite"),
        ("outsider", "join"),
        ("owner", "set"),
        ("outsider", "leave"),
        ("owner", "invite"),
        ("outsider", "decline"),
        ("owner", "invite"),
        ("owner", "withdraw"),
    ]


def test_a_sites_admin_invites_too(cast: Cast) -> None:
    assert invite(speaking_as(cast, "superuser")).status_code == 202


def test_the_page_answers_invitations_and_leaves(clients: dict[str, Client], cast: Cast) -> None:
    browser = browsing_as(cast, "outsider")
    for action, inside in (("decline", False), ("accept", True)):
        invite(clients["owner"])
        assert parsed(browser.get("/teams/")).one("li", data_invitation="alpha")
        assert browser.post(f"/teams/alpha/{action}/")["Location"] == "/teams/"
        assert ("outsider" in in_alpha(cast)) is inside
    assert parsed(browser.get("/teams/")).one("tr", data_team="alpha")
    assert browser.post("/teams/alpha/leave/").status_code == 302
    assert "outsider" not in in_alpha(cast)
    assert browser.post("/teams/alpha/leave/").status_code == 404
    assert browser.post("/teams/beta/join/").status_code == 404
    assert browser.get("/teams/beta/leave/").status_code == 405
