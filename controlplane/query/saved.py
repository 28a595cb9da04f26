"""Saved queries: who sees, writes and shares them."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q, QuerySet

from controlplane.common.errors import Conflict, FieldError, InvalidInput, NotAllowed, NotFound
from controlplane.common.text import storable
from controlplane.query.models import SavedQuery
from controlplane.teams import audit
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, may, require_person, teams_of
from ingestion.specs.messages.sql import MAX_STATEMENT

MAX_SAVED = 500  # of one owner
MAX_NAME, MAX_DESCRIPTION = 200, 2_000


def saved_queries(user: User, search: str = "", team: str = "") -> QuerySet[SavedQuery]:
    """One's own, and those shared with one's teams. A token for named datasources sees none."""
    if (user.limits is not None and user.limits.datasources) or not (storable(search) and storable(team)):
        return SavedQuery.objects.none()
    # What was shared with a team that is deleted now is its owner's alone.
    own = Q(owner=user) & (Q(team=None) | Q(team__deleted_at__isnull=False))
    found = SavedQuery.objects.filter(own | Q(team__in=teams_of(user))).select_related("owner", "team")
    found = found.filter(Q(name__icontains=search) | Q(description__icontains=search)) if search else found
    return found.filter(team__name=team) if team else found


def get_saved(user: User, number: int) -> SavedQuery:
    """Raises ``NotFound``."""
    saved = saved_queries(user).filter(pk=number).first()
    if saved is None:
        raise NotFound("There is no such saved query.")
    return saved


def may_edit(user: User, saved: SavedQuery) -> bool:
    """Its owner and the admins of its team. No token with a scope."""
    is_person = user.limits is None and user.service_of_id is None
    return is_person and (saved.owner_id == user.pk or (saved.team is not None and _administers(user, saved.team)))


def _administers(user: User, team: Team) -> bool:
    return may(user, Action.ADMINISTER, team)


@transaction.atomic
def save_query(*, user: User, name: str, statement: str, description: str = "", team: str = "") -> SavedQuery:
    """``team``: whom it is shared with; empty: nobody. Raises ``InvalidInput``, ``NotAllowed``, ``Conflict``."""
    require_person(user, "save queries")
    saved = SavedQuery(owner=user, name=name, statement=statement, description=description)
    _check(saved)
    saved.team = _team_named(user, team)
    if SavedQuery.objects.filter(owner=user).count() >= MAX_SAVED:
        raise Conflict(f"You have {MAX_SAVED} saved queries already. Delete some.")
    saved.save()
    _record(user, saved.team, saved, "share")
    return saved


@transaction.atomic
def change_saved(
    *, user: User, saved: SavedQuery, name: str, statement: str, description: str = "", team: str = ""
) -> SavedQuery:
    """Replace it. Only its owner may change whom it is shared with. Raises as ``save_query``."""
    require_edit(user, saved)
    before = saved.team
    if team != (before.name if before else ""):
        if saved.owner_id != user.pk:
            raise NotAllowed(f"Only its owner {saved.owner} may change with whom this query is shared.")
        saved.team = _team_named(user, team)
    saved.name, saved.statement, saved.description = name, statement, description
    _check(saved)
    saved.save()
    if before is not None and before != saved.team:
        _record(user, before, saved, "delete")
    _record(user, saved.team, saved, "change" if before == saved.team else "share")
    return saved


@transaction.atomic
def delete_saved(*, user: User, saved: SavedQuery) -> None:
    """Raises ``NotAllowed``."""
    require_edit(user, saved)
    _record(user, saved.team, saved, "delete")
    saved.delete()


def require_edit(user: User, saved: SavedQuery) -> None:
    """Raises ``NotAllowed``."""
    require_person(user, "change saved queries")
    if not may_edit(user, saved):
        raise NotAllowed(f"Only its owner {saved.owner} and the team's admins may change this query.")


def _record(user: User, team: Team | None, saved: SavedQuery, action: str) -> None:
    """What a team sees is in its audit trail."""
    if team is not None:
        audit.record(
            user=user, team=team, target="saved_query", target_id=str(saved.pk), action=action, name=saved.name
        )


def _team_named(user: User, name: str) -> Team | None:
    if not name:
        return None
    team = teams_of(user).filter(name=name).first() if storable(name) else None
    if team is None:
        text = f"There is no team {name[:100]!r} that you belong to."
        raise InvalidInput("The saved query has errors.", [FieldError("/team", text, "team")])
    return team


def _check(saved: SavedQuery) -> None:
    faults = []
    for field, most in (("name", MAX_NAME), ("description", MAX_DESCRIPTION), ("statement", MAX_STATEMENT)):
        text, least = getattr(saved, field), 0 if field == "description" else 1
        one_line = field != "name" or text.isprintable()
        if not least <= len(text) <= most or bool(least) > bool(text.strip()) or not storable(text) or not one_line:
            where = "in one line" if field == "name" else "of text"
            faults.append(FieldError(f"/{field}", f"must have {least} to {most:,} characters {where}", field))
    if faults:
        raise InvalidInput("The saved query has errors.", faults)
