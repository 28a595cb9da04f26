"""What a provider's groups give: memberships and the whole site, brought up to date at each login.

What was given by hand stays as it is, whatever the groups say.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from django.db import transaction

from controlplane.login.models import Grant
from controlplane.login.provider import Provider
from controlplane.teams import audit
from controlplane.teams.models import Membership, Team, User
from controlplane.teams.roles import Role

log = logging.getLogger(__name__)


@transaction.atomic
def apply_groups(*, user: User, provider: Provider, groups: Collection[str]) -> list[str]:
    """Give, change and withdraw. Returns a sentence for each thing that had to stay as it was."""
    roles = provider.roles_of(groups)
    # One change of a team's members at a time, always in the same order: two people log in at once.
    touched = Team.objects.filter(name__in=roles) | Team.objects.filter(memberships__grant__user=user)
    keys = sorted(set(touched.values_list("pk", flat=True)))
    teams = {team.name: team for team in Team.objects.select_for_update().filter(pk__in=keys).order_by("pk")}
    for name in sorted(roles.keys() - teams.keys()):
        log.warning("HEADGATE_OIDC_TEAMS names the team %s, which does not exist", name)
    warnings = [_set_membership(user, team, roles.get(name)) for name, team in sorted(teams.items())]
    warnings.append(_set_site_admin(user, bool(provider.admin_group) and provider.admin_group in groups))
    for sentence in filter(None, warnings):
        log.warning("%s", sentence)
    return [sentence for sentence in warnings if sentence]


def _set_membership(user: User, team: Team, role: str | None) -> str:
    membership = Membership.objects.filter(user=user, team=team).select_related("grant").first()
    if membership is None:
        if role is not None:
            created = Membership.objects.create(user=user, team=team, role=role)
            Grant.objects.create(user=user, membership=created)
            _record_change(user, team, "set", role=role)
        return ""
    if not hasattr(membership, "grant") or membership.role == role:
        return ""
    if membership.role == Role.ADMIN and not _another_admin(team, user):
        return f"{user.username} stays the last admin of team {team.name}, although the groups say otherwise."
    if role is None:
        membership.delete()
        _record_change(user, team, "remove")
    else:
        Membership.objects.filter(pk=membership.pk).update(role=role)
        _record_change(user, team, "set", role=role)
    return ""


def _another_admin(team: Team, user: User) -> bool:
    admins = Membership.objects.filter(team=team, role=Role.ADMIN, user__is_active=True)
    return admins.exclude(user=user).exists()


def _record_change(user: User, team: Team, action: str, **detail: str) -> None:
    audit.record(user=None, team=team, target="member", target_id=user.username, action=action, by="groups", **detail)


def _set_site_admin(user: User, is_admin: bool) -> str:
    grant = Grant.objects.filter(user=user, membership=None).first()
    if is_admin and not user.is_superuser:
        Grant.objects.get_or_create(user=user, membership=None)
        _save_site_admin(user, True)
    elif not is_admin and grant is not None:
        # Locked in one order: two site admins must not lose the site at once.
        others = User.objects.select_for_update().filter(is_superuser=True, is_active=True).order_by("pk")
        if not any(other.pk != user.pk for other in others):
            return f"{user.username} stays the last site administrator, although the groups say otherwise."
        grant.delete()
        _save_site_admin(user, False)
    return ""


def _save_site_admin(user: User, is_admin: bool) -> None:
    user.is_superuser = is_admin
    User.objects.filter(pk=user.pk).update(is_superuser=is_admin)
    log.info(
        "the provider's groups make %s %s",
        user.username,
        "a site administrator" if is_admin else "no site administrator",
    )
