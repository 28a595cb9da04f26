"""Writes to members and tokens."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from controlplane.common.errors import Conflict, InvalidInput
from controlplane.common.text import in_one_line, storable
from controlplane.teams import audit
from controlplane.teams.models import ApiToken, Membership, Role, Team, User
from controlplane.teams.permissions import Action, require
from controlplane.teams.selectors import get_member, get_token

LONGEST_TOKEN = timedelta(days=365)
TOKENS_A_USER = 100


@transaction.atomic
def set_member(*, user: User, team: Team, username: str, role: Role) -> tuple[Membership, bool]:
    """Add a member, or change the role of one; (membership, whether it is new).

    Raises ``NotAllowed``, ``InvalidInput`` (no such user), ``Conflict`` (the team would be left without an admin).
    """
    _lock(team)
    require(user, Action.ADMINISTER, team)
    member = User.objects.filter(username=username, is_active=True).first() if storable(username) else None
    if member is None:
        raise InvalidInput(f"There is no active user {username!r}.")
    if role is not Role.ADMIN:
        _keep_an_admin(team, without=member)
    audit.record(user=user, team=team, target="member", target_id=member.username, action="set", role=role.value)
    return Membership.objects.update_or_create(user=member, team=team, defaults={"role": role.value})


@transaction.atomic
def remove_member(*, user: User, team: Team, username: str) -> None:
    """Raises ``NotAllowed``, ``NotFound``, ``Conflict`` (the last admin stays)."""
    _lock(team)
    require(user, Action.ADMINISTER, team)
    membership = get_member(team, username)
    _keep_an_admin(team, without=membership.user)
    membership.delete()
    audit.record(user=user, team=team, target="member", target_id=username, action="remove")


def create_token(*, user: User, name: str = "", lifetime: timedelta = timedelta(days=30)) -> tuple[ApiToken, str]:
    """A new token and its secret, which is never to be had again."""
    if not timedelta(0) < lifetime <= LONGEST_TOKEN:
        raise InvalidInput(f"A token lives for 1 to {LONGEST_TOKEN.days} days.")
    if not storable(name) or not in_one_line(name) or len(name) > 100:
        raise InvalidInput("A token's name has at most 100 characters, in one line.")
    if ApiToken.objects.filter(user=user).count() >= TOKENS_A_USER:
        raise Conflict(f"You have {TOKENS_A_USER} tokens already; revoke some.")
    # The manager comes from knox, which has no types: (row, secret).
    token, secret = ApiToken.objects.create(user=user, expiry=lifetime, name=name)
    return token, str(secret)


def revoke_token(*, user: User, token_id: str) -> None:
    """Delete one of the user's own tokens. Raises ``NotFound``."""
    get_token(user, token_id).delete()


def _lock(team: Team) -> None:
    """One change of a team's members at a time: two admins must not remove each other at once."""
    Team.objects.select_for_update().get(pk=team.pk)


def _keep_an_admin(team: Team, *, without: User) -> None:
    admins = Membership.objects.filter(team=team, role=Role.ADMIN)
    if admins.filter(user=without).exists() and not admins.exclude(user=without).exists():
        raise Conflict(f"{without.username} is the last admin of team {team.name}; make somebody else admin first.")
