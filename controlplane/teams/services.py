"""Writes to members, invitations and tokens."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from controlplane.common.changes import Change, notify_pages
from controlplane.common.errors import Conflict, InvalidInput, NotFound
from controlplane.common.text import storable
from controlplane.teams import audit
from controlplane.teams.models import ApiToken, Invitation, Membership, Team, User
from controlplane.teams.permissions import Action, require, require_person
from controlplane.teams.roles import Role, Scope
from controlplane.teams.selectors import (
    INVITATION_LIFE,
    get_invitation,
    get_member,
    get_member_token,
    get_token,
)
from ingestion.specs.limits import in_one_line

LONGEST_TOKEN = timedelta(days=365)
TOKENS_A_USER = 100
DATASOURCES_A_TOKEN = 100
MAX_INVITATIONS = 200


@dataclass(frozen=True)
class TeamPlace:
    """Where a user name stands in a team."""

    username: str
    role: Role
    state: Literal["member", "invited"]  # member, or invited, which counts for nothing yet


@transaction.atomic
def set_member(*, user: User, team: Team, username: str, role: Role) -> TeamPlace:
    """Change a member's role, or invite whoever has the name: nobody becomes a member without saying so.

    The answer tells nothing of whether there is such a user. Raises ``NotAllowed``, ``InvalidInput`` (no user name),
    ``Conflict`` (the team would be left without an admin, or too many are invited).
    """
    lock_team(team)
    require(user, Action.ADMINISTER, team)
    require_person(user, "give a role or invite")  # a role would outlive the token
    membership = Membership.objects.select_related("user").filter(team=team, user__username=user_name(username)).first()
    if membership is None and username != user.username:
        return _invite(user, team, username, role)
    if membership is not None and role is not Role.ADMIN:
        _require_an_admin(team, without=membership.user)
    member = user if membership is None else membership.user  # a site's admin may put in themselves
    Membership.objects.update_or_create(user=member, team=team, defaults={"role": role.value})
    previous = {} if membership is None else {"before": membership.role}
    audit.record(user=user, team=team, target="member", target_id=username, action="set", role=role.value, **previous)
    return TeamPlace(username, role, "member")


def user_name(username: str) -> str:
    """A name that a user may have. Raises ``InvalidInput``."""
    try:
        User.username_validator(username)
    except ValidationError as error:
        raise InvalidInput("; ".join(error.messages)) from None
    if not storable(username) or len(username) > 150:
        raise InvalidInput("A user name has at most 150 characters.")
    return username


def _invite(user: User, team: Team, username: str, role: Role) -> TeamPlace:
    team.invitations.filter(created_at__lte=timezone.now() - INVITATION_LIFE).delete()
    if team.invitations.exclude(username=username).count() >= MAX_INVITATIONS:
        raise Conflict(f"{MAX_INVITATIONS} are invited already. Withdraw some invitations.")
    values = {"role": role.value, "invited_by": user, "created_at": timezone.now()}
    Invitation.objects.update_or_create(team=team, username=username, defaults=values)
    audit.record(user=user, team=team, target="member", target_id=username, action="invite", role=role.value)
    return TeamPlace(username, role, "invited")


@transaction.atomic
def accept_invitation(*, user: User, team_name: str) -> Membership:
    """Become a member as one was invited. Raises ``NotFound``, ``NotAllowed``."""
    require_person(user, "accept an invitation")
    invitation = get_invitation(user, team_name)
    lock_team(invitation.team)
    _use_up_invitation(invitation, user, "join")
    membership, _ = Membership.objects.get_or_create(
        user=user, team=invitation.team, defaults={"role": invitation.role}
    )
    return membership


@transaction.atomic
def decline_invitation(*, user: User, team_name: str) -> None:
    """Raises ``NotFound``, ``NotAllowed``."""
    require_person(user, "decline an invitation")
    _use_up_invitation(get_invitation(user, team_name), user, "decline")


def _use_up_invitation(invitation: Invitation, user: User, action: str) -> None:
    """Use an invitation up. Raises ``NotFound`` for who comes second: it may have been withdrawn meanwhile."""
    deleted, _ = Invitation.objects.filter(pk=invitation.pk, role=invitation.role).delete()
    if not deleted:
        raise NotFound(f"The invitation to team {invitation.team.name!r} is no longer open.")
    audit.record(
        user=user, team=invitation.team, target="member", target_id=user.username, action=action, role=invitation.role
    )


@transaction.atomic
def remove_member(*, user: User, team: Team, username: str) -> None:
    """Remove a member, or withdraw an invitation. Raises ``NotAllowed``, ``NotFound``, ``Conflict``."""
    lock_team(team)
    require(user, Action.ADMINISTER, team)
    if team.invitations.filter(username=user_name(username)).delete()[0]:
        audit.record(user=user, team=team, target="member", target_id=username, action="withdraw")
        if not team.memberships.filter(user__username=username).exists():
            return
    _remove(user, team, username, "remove")


@transaction.atomic
def withdraw_invitation(*, user: User, team: Team, username: str) -> None:
    """Withdraw an invitation, and nothing else. Raises ``NotAllowed``, ``NotFound``."""
    lock_team(team)
    require(user, Action.ADMINISTER, team)
    if not team.invitations.filter(username=user_name(username)).delete()[0]:
        raise NotFound(f"{username!r} is no longer invited.")
    audit.record(user=user, team=team, target="member", target_id=username, action="withdraw")


@transaction.atomic
def leave(*, user: User, team: Team) -> None:
    """Be a member no longer; nobody has to allow it. Raises ``NotFound``, ``Conflict`` (the last admin stays)."""
    require_person(user, "leave a team")
    lock_team(team)
    _remove(user, team, user.username, "leave")


def _remove(user: User, team: Team, username: str, action: str) -> None:
    membership = get_member(team, username)
    _require_an_admin(team, without=membership.user)
    membership.delete()
    notify_pages(Change(user=membership.user_id, urgent=True))
    audit.record(user=user, team=team, target="member", target_id=username, action=action)


@transaction.atomic
def revoke_member_token(*, user: User, team: Team, username: str, token_id: str) -> None:
    """Delete a member's token. Raises ``NotAllowed``, ``NotFound``, ``Conflict`` (it is for other teams, too)."""
    token = get_member_token(user, team, username, token_id)
    if token.elsewhere:
        raise Conflict(
            f"The token also works in other teams of {username}. Remove {username} from team {team.name}, "
            "or ask a site administrator to revoke the token."
        )
    token.delete()
    audit.record(
        user=user, team=team, target="token", target_id=f"{username}/{token_id}", action="revoke", name=token.name
    )


def create_token(
    *,
    user: User,
    name: str = "",
    lifetime: timedelta = timedelta(days=30),
    scope: Scope | None = None,
    datasources: Collection[str] = (),
) -> tuple[ApiToken, str]:
    """A new token and its secret, which is never to be had again.

    ``scope``: None for whatever the user may. ``datasources``: these alone; needs a scope. Raises ``InvalidInput``,
    ``Conflict``, ``NotAllowed``.
    """
    require_person(user, "create a token")
    return new_token(user, name=name, lifetime=lifetime, scope=scope, datasources=datasources)


def new_token(
    user: User, *, name: str, lifetime: timedelta, scope: Scope | None, datasources: Collection[str]
) -> tuple[ApiToken, str]:
    """A token of this user, whoever asks: the caller has checked that they may."""
    if not timedelta(0) < lifetime <= LONGEST_TOKEN:
        raise InvalidInput(f"A token expires after 1 to {LONGEST_TOKEN.days} days.")
    if not storable(name) or not in_one_line(name) or len(name) > 100:
        raise InvalidInput("A token's name has at most 100 characters, in one line.")
    if len(datasources) > DATASOURCES_A_TOKEN or not all(storable(d) and 0 < len(d) <= 200 for d in datasources):
        raise InvalidInput(f"A token is limited to at most {DATASOURCES_A_TOKEN} datasources, given by name.")
    if datasources and scope is None:
        raise InvalidInput("A token with datasources needs a scope.")
    if ApiToken.objects.filter(user=user).count() >= TOKENS_A_USER:
        raise Conflict(f"There are {TOKENS_A_USER} tokens already. Revoke some.")
    # The manager comes from knox, which has no types: (row, secret).
    token, secret = ApiToken.objects.create(
        user=user,
        expiry=lifetime,
        name=name,
        scope="" if scope is None else scope.value,
        datasources=sorted(set(datasources)),
    )
    return token, str(secret)


def revoke_token(*, user: User, token_id: str) -> None:
    """Delete one of the user's own tokens. Raises ``NotFound``, ``NotAllowed``."""
    require_person(user, "revoke a token")
    get_token(user, token_id).delete()


def lock_team(team: Team) -> Team:
    """One change of what a team has at a time: two admins must not remove each other at once, and nothing may come to
    a team that is being deleted. Returns it as it is now. Raises ``NotFound`` (it is deleted by now).
    """
    locked = Team.objects.select_for_update().filter(pk=team.pk, deleted_at=None).first()
    if locked is None:
        raise NotFound(f"Team {team.name!r} no longer exists.")
    return locked


def _require_an_admin(team: Team, *, without: User) -> None:
    admins = Membership.objects.filter(team=team, role=Role.ADMIN, user__is_active=True)
    if admins.filter(user=without).exists() and not admins.exclude(user=without).exists():
        raise Conflict(f"{without.username} is the last admin of team {team.name}. Make another member admin first.")
