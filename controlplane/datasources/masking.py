"""Which values of a datasource a user may not see: decided here alone.

Rows are masked by their columns. Whatever else holds values holds them in a shape that nobody knows beforehand: a
record's bytes before they were decoded, an error that quotes one, the log of a task. Those are hidden whole, below the
highest role that a masked column of the datasource needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from controlplane.common.errors import FieldError, InvalidInput, NotAllowed
from controlplane.common.text import storable
from controlplane.connections import newest_records
from controlplane.datasources.models import Datasource, MaskedColumn
from controlplane.teams import audit
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, may, require, role_in
from controlplane.teams.roles import Role

MAX_COLUMNS = 500
TIME = "__time"  # rows lie in intervals by it
_ACTION_OF_ROLE = {Role.OPERATOR: Action.OPERATE, Role.ADMIN: Action.ADMINISTER}
_MAX_NAME_LENGTH = MaskedColumn._meta.get_field("column").max_length or 0

# The keys of datasources that read a topic, whatever the cluster.
Readers = Callable[[str], Iterable[QuerySet[Any, Any]]]
_readers: list[Readers] = []


def register_topic_readers(readers: Readers) -> Readers:
    """From now on these count as readers of a topic; a decorator."""
    _readers.append(readers)
    return readers


def masked_columns(datasource: Datasource) -> list[MaskedColumn]:
    """By name. Every member of the team may know them."""
    return list(datasource.masked_columns.order_by("column"))


def hidden_columns(user: User, datasource: Datasource) -> dict[str, str]:
    """The columns whose values the user may not see, each with the least role that does."""
    allowed: dict[str, bool] = {}
    return {m.column: m.role for m in masked_columns(datasource) if not _can_see(user, datasource, m.role, allowed)}


def _can_see(user: User, datasource: Datasource, role: str, allowed: dict[str, bool]) -> bool:
    if role not in allowed:
        allowed[role] = may(user, _ACTION_OF_ROLE[Role(role)], datasource.team)
    return allowed[role]


def hidden_records(user: User | None) -> dict[int, str]:
    """The datasources whose undecoded records, errors and logs the user may not see, each with the role that does.

    ``user``: None for what is told to nobody in particular, such as a message that leaves the site.
    """
    hidden: dict[int, str] = {}
    allowed: dict[tuple[int, str], bool] = {}
    for masked in MaskedColumn.objects.select_related("datasource__team"):
        team_and_role = masked.datasource.team_id, masked.role
        if team_and_role not in allowed:
            allowed[team_and_role] = user is not None and may(
                user, _ACTION_OF_ROLE[Role(masked.role)], masked.datasource.team
            )
        if not allowed[team_and_role] and hidden.get(masked.datasource_id) != Role.ADMIN:
            hidden[masked.datasource_id] = masked.role
    return hidden


def require_record_access(user: User, datasource: Datasource, what: str) -> None:
    """Raise ``NotAllowed`` where ``what`` may show values that the user may not see."""
    hidden = set(hidden_columns(user, datasource).values())
    if hidden:
        raise NotAllowed(_refusal(datasource.name, datasource.team.name, hidden, what))


def require_topic_access(
    user: User, topic: str | None, what: str, team: Team | None = None, besides: Datasource | None = None
) -> None:
    """Raise ``NotAllowed`` where a topic's records may not be seen: what a masked column is made of is in them.

    Datasources of teams that the user does not belong to count nothing: the user is told nothing of them. Whose
    connection reads the topic makes no difference. ``team``: whose datasources alone count, where the records stay
    with that team: what another team may read is for Kafka to say. ``besides``: a datasource that hides the records
    itself, once they are in it.
    """
    if not topic or not storable(topic):
        return
    hidden = hidden_records(user)
    if not hidden:
        return
    masked = Datasource.objects.filter(pk__in=hidden).select_related("team")
    masked = masked if team is None else masked.filter(team=team)
    masked = masked if besides is None else masked.exclude(pk=besides.pk)
    for readers in _readers:
        for keys in readers(topic):
            # By the team: a token for other datasources of it is not to read the topic past this one.
            datasource = next((d for d in masked.filter(pk__in=keys) if role_in(user, d.team) is not None), None)
            if datasource is not None:
                raise NotAllowed(_refusal(datasource.name, datasource.team.name, {hidden[datasource.pk]}, what))


def _refusal(datasource: str, team: str, roles: Collection[str], what: str) -> str:
    needed = Role.ADMIN if Role.ADMIN in roles else Role.OPERATOR
    return f"Datasource {datasource} has masked columns: {what} needs the role {needed} in team {team}."


def set_masks(*, user: User, datasource: Datasource, masks: Mapping[str, str]) -> list[MaskedColumn]:
    """Mask these columns and no others, each up to the role that is named with it.

    Needs the role admin. Raises ``NotAllowed``, ``InvalidInput`` with every fault.
    """
    require(user, Action.ADMINISTER, datasource.team)
    _check(masks)
    with transaction.atomic():
        # Locked: of two who write at once the trail tells what each changed.
        locked = Datasource.objects.select_for_update(of=("self",)).select_related("team").get(pk=datasource.pk)
        before = {m.column: m.role for m in masked_columns(locked)}
        if before != dict(masks):
            locked.masked_columns.all().delete()
            MaskedColumn.objects.bulk_create(
                MaskedColumn(datasource=locked, column=name, role=role) for name, role in sorted(masks.items())
            )
            audit.record(
                user=user,
                team=locked.team,
                target="datasource",
                target_id=locked.name,
                action="mask",
                before=before,
                after=dict(sorted(masks.items())),
            )
    return masked_columns(datasource)


def _check(masks: Mapping[str, str]) -> None:
    faults = []
    if len(masks) > MAX_COLUMNS:
        faults.append(FieldError("", f"at most {MAX_COLUMNS} columns can be masked"))
    for name, role in masks.items():
        if not name or not storable(name) or len(name) > _MAX_NAME_LENGTH:
            faults.append(FieldError("", f"a column's name must have 1 to {_MAX_NAME_LENGTH} characters", name[:100]))
        elif name == TIME:
            faults.append(FieldError("", "rows are found by their time, so it cannot be masked", name))
        if role not in (Role.OPERATOR, Role.ADMIN):
            faults.append(FieldError("", "the lowest role that sees it must be operator or admin", name[:100]))
    if faults:
        raise InvalidInput("The masked columns have errors.", faults)


@newest_records.add_guard
def _guard_newest_records(user: User, topic: str) -> None:
    require_topic_access(user, topic, "reading its topic's records")
