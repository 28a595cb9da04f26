"""Which teams there are: made, renamed and deleted by the site's administrators."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import PROTECT
from django.utils import timezone

from controlplane.common.changes import Change, notify_pages
from controlplane.common.errors import Conflict, FieldError, InvalidInput
from controlplane.common.text import storable
from controlplane.teams import audit
from controlplane.teams.models import NAME, AuditEntry, Membership, Team, User
from controlplane.teams.permissions import Action, require, require_site_admin
from controlplane.teams.roles import Role
from controlplane.teams.services import lock_team
from ingestion.specs.limits import in_one_line

NAMED = 20  # of what a team owns
RESERVED = "sys"


def create_team(*, user: User, name: str) -> Team:
    """A team whose only member is its maker, as its admin.

    Raises ``NotAllowed``, ``InvalidInput`` (no name for a team), ``Conflict`` (taken).
    """
    require_site_admin(user)
    _check_name(name)
    try:
        with transaction.atomic():
            team = Team.objects.create(name=name)
            audit.record(user=user, team=team, target="team", target_id=name, action="create")
            Membership.objects.create(user=user, team=team, role=Role.ADMIN)
    except IntegrityError:
        raise Conflict(f"There is a team {name!r} already.") from None
    return team


def _check_name(name: str) -> None:
    check_not_reserved(name)
    try:
        NAME(name)
    except ValidationError as error:
        message = " ".join(error.messages)
        raise InvalidInput(
            "A team's name has 1 to 63 characters and begins with a letter or a digit.",
            [FieldError("/name", message, "name")],
        ) from None


def check_not_reserved(name: str) -> None:
    """Raises ``InvalidInput`` for a name that SQL has for something else."""
    if name.lower() == RESERVED:
        text = f"No team can have the name {name!r}: in SQL, {RESERVED} has the tables about Headgate itself."
        raise InvalidInput(text, [FieldError("/name", "is reserved", "name")])


@transaction.atomic
def rename_team(*, user: User, team: Team, name: str) -> Team:
    """Give a team another name, and its service accounts with it; whatever it owns stays its own.

    Its old addresses lead nowhere, and the old name is free. Raises ``NotAllowed``, ``InvalidInput``, ``Conflict`` (the
    name is taken, or a provider's groups are given to the old one alone).
    """
    require_site_admin(user)
    _check_name(name)
    locked = lock_team(team)
    before = locked.name
    if name == before:
        return locked
    _check_groups(before, name)
    try:
        with transaction.atomic():
            Team.objects.filter(pk=locked.pk).update(name=name)
            for account in locked.service_accounts.select_for_update():
                short = account.username.partition("@")[0]
                User.objects.filter(pk=account.pk).update(username=f"{short}@{name}")
    except IntegrityError:
        raise Conflict(
            f"There is a team {name!r} already, or a user with the name of one of its service accounts."
        ) from None
    locked.name = name
    audit.record(user=user, team=locked, target="team", target_id=name, action="rename", before=before)
    return locked


def _check_groups(before: str, name: str) -> None:
    """Memberships that a provider's groups give must neither end with the name nor go to whoever has it next."""
    granted = {team for teams in (settings.OIDC.teams.values() if settings.OIDC else ()) for team, _ in teams}
    if before in granted and name not in granted:
        raise Conflict(
            f"HEADGATE_OIDC_TEAMS gives groups roles in team {before!r}. Give them the same roles in {name!r} first, "
            f"and remove {before!r} there after the team is renamed."
        )


@transaction.atomic
def describe_team(*, user: User, team: Team, description: str) -> Team:
    """Say what a team is about, in one line. Raises ``NotAllowed`` (it is for its admins), ``InvalidInput``."""
    locked = lock_team(team)
    require(user, Action.ADMINISTER, locked)
    description = description.strip()
    if len(description) > 500 or not storable(description) or not in_one_line(description):
        fault = FieldError("/description", "has at most 500 characters, in one line", "description")
        raise InvalidInput("The description is not valid.", [fault])
    if description != locked.description:
        change = {"before": locked.description, "text": description}
        locked.description = description
        locked.save(update_fields=["description"])
        audit.record(user=user, team=locked, target="team", target_id=locked.name, action="describe", **change)
    return locked


@transaction.atomic
def delete_team(*, user: User, team: Team) -> None:
    """Delete a team that owns nothing; its members are members no longer. Its name is free again.

    Raises ``NotAllowed``, ``Conflict`` (it owns something).
    """
    require_site_admin(user)
    locked = lock_team(team)  # two at once would name it twice
    if owned := owned_by(locked):
        summary = ", ".join(group.counted for group in owned)
        raise Conflict(f"Team {team.name} still owns {summary}. Delete or transfer them first.")
    name, users = locked.name, list(locked.memberships.values_list("user_id", flat=True))
    locked.memberships.all().delete()
    locked.invitations.all().delete()
    locked.link_invitations.all().delete()
    locked.service_accounts.all().delete()
    locked.deleted_at = timezone.now()
    locked.name = f"~{locked.pk}~{name}"[:63]
    locked.save(update_fields=["deleted_at", "name"])
    audit.record(user=user, team=locked, target="team", target_id=name, action="delete")
    for user_id in users:
        notify_pages(Change(user=user_id, urgent=True))


@dataclass(frozen=True)
class OwnedObjects:
    """Things of one kind that a team owns."""

    kind: str  # the model's name: datasource, connection
    counted: str  # such as: 2 datasources
    names: list[str]  # the first of them
    more: int  # how many there are besides


def owned_by(team: Team) -> list[OwnedObjects]:
    """What the team owns that nobody may delete with it: whatever points at it and protects it."""
    owned = []
    for relation in Team._meta.related_objects:
        if relation.on_delete is not PROTECT or relation.related_model is AuditEntry:
            continue
        rows = relation.related_model._base_manager.filter(**{relation.field.name: team})
        if count := rows.count():
            meta = relation.related_model._meta
            names = list(rows.order_by("name").values_list("name", flat=True)[:NAMED])
            counted = f"{count} {meta.verbose_name if count == 1 else meta.verbose_name_plural}"
            owned.append(OwnedObjects(str(meta.model_name), counted, names, count - len(names)))
    return owned
