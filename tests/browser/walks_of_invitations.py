"""Invitations that are accepted or declined, and teams that are left."""

from __future__ import annotations

from controlplane.teams.models import Invitation, Membership
from tests.browser.site import Visit, invite


def _in_beta(visit: Visit) -> bool:
    return Membership.objects.filter(team=visit.site.cast.beta, user=visit.site.cast.users["owner"]).exists()


def _invited(visit: Visit) -> None:
    cast = visit.site.cast
    Membership.objects.filter(team=cast.beta, user=cast.users["owner"]).delete()
    invite(cast)
    visit.open("/teams/")


def accept_an_invitation(visit: Visit) -> None:
    _invited(visit)
    visit.press("Accept the invitation of beta")
    visit.told("You are in team beta now.")
    assert _in_beta(visit)


def decline_an_invitation(visit: Visit) -> None:
    _invited(visit)
    visit.press("Decline the invitation of beta")
    visit.told("The invitation of team beta is declined.")
    assert not _in_beta(visit)
    assert not Invitation.objects.filter(team=visit.site.cast.beta).exists()


def leave_a_team(visit: Visit) -> None:
    accept_an_invitation(visit)
    visit.press("Leave team alpha")
    visit.told("the last admin")
    visit.press("Leave team beta")
    visit.told("You have left team beta.")
    assert not _in_beta(visit)


def leave_on_the_teams_page(visit: Visit) -> None:
    accept_an_invitation(visit)
    visit.open("/teams/beta/")
    visit.answer("Leave team", "Leave team")
    visit.told("You have left team beta.")
    assert not _in_beta(visit)


def leave_on_a_page(visit: Visit) -> None:
    accept_an_invitation(visit)
    visit.open("/teams/beta/leave/confirm/")
    visit.page.get_by_role("button", name="Cancel").click()
    visit.open("/teams/beta/leave/confirm/")
    visit.press("Leave team")
    visit.told("You have left team beta.")
    assert not _in_beta(visit)
