"""Who uses a connection, and what follows from that: it is not deleted, and a change can be taken up at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.fields.json import KT

from controlplane.common.errors import Conflict
from controlplane.connections.models import Connection
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.offset_reset import hand_off
from controlplane.tasks.models import Task
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs.inputs.connection import Kind

# Where a spec may name one, below ``spec.ioConfig``.
_DECODERS = ("avroBytesDecoder", "protoBytesDecoder")
_FORMATS = ("inputFormat", "inputFormat__valueFormat", "inputFormat__keyFormat")
_REGISTRY_PATHS = [f"{form}__{decoder}__connection" for form in _FORMATS for decoder in _DECODERS]
# Versions of a supervisor's spec that may be started: while the current one has not begun, the last good one too.
_CAN_RUN = Q(version=F("supervisor__version")) | Q(version=F("supervisor__in_force"))


@dataclass(frozen=True)
class ConnectionUse:
    """A supervisor that is not terminated, or a manual task that has not ended."""

    kind: Literal["supervisor", "task"]
    id: str
    datasource: str
    topic: str
    suspended: bool = False


def uses_of(connection: Connection) -> list[ConnectionUse]:
    """Whose specs name it now, supervisors first, by id: of a supervisor also the version that is still in force."""
    versions = _versions(connection).select_related("supervisor__datasource").order_by("supervisor_id", "version")
    newest = {v.supervisor_id: v for v in versions}
    supervisors = [
        ConnectionUse(
            "supervisor", v.supervisor_id, v.supervisor.datasource.name, v.io_config.reads, v.supervisor.suspended
        )
        for v in newest.values()
    ]
    tasks = Task.objects.active().filter(_names_connection(connection, "spec"), datasource__team=connection.team)
    manual = tasks.filter(supervisor_id="").select_related("datasource").order_by("id")
    return [*supervisors, *(ConnectionUse("task", t.pk, t.datasource.name, t.io_config.topic) for t in manual)]


def use_counts(connections: Iterable[Connection]) -> dict[int, int]:
    """How many use each of these, by its key: two queries, however many there are."""
    listed = list(connections)
    teams = {connection.team_id for connection in listed}
    versions = SpecVersion.objects.filter(_CAN_RUN, supervisor__terminated_at=None)
    tasks = Task.objects.active().filter(supervisor_id="", datasource__team__in=teams)
    uses: set[tuple[str, int, Kind, str | None]] = set()
    for rows, user, team in (
        (versions.filter(supervisor__datasource__team__in=teams), "supervisor_id", "supervisor__datasource__team"),
        (tasks, "id", "datasource__team"),
    ):
        kafka, *registries = (KT(f"spec__spec__ioConfig__{place}") for place in ("connection", *_REGISTRY_PATHS))
        for pk, team_id, cluster, *others in rows.order_by().values_list(user, team, kafka, *registries):
            user_key = f"{user} {pk}"
            uses.add((user_key, team_id, Kind.KAFKA, cluster))
            uses.update((user_key, team_id, Kind.SCHEMA_REGISTRY, name) for name in others)
    counts = Counter(use[1:] for use in uses)
    return {c.pk: counts[c.team_id, c.typed_kind, c.name] for c in listed}


@transaction.atomic
def delete_connection(*, user: User, connection: Connection) -> None:
    """Delete one that nobody uses. Raises ``NotAllowed``, ``Conflict`` with those who do."""
    require(user, Action.ADMINISTER, connection.team)
    # Who submits a spec that names it locks the row too: one of both sees the other.
    locked = Connection.objects.select_for_update(of=("self",)).filter(pk=connection.pk).first()
    if locked is None:
        return
    uses = uses_of(connection)
    if uses:
        names = ", ".join(f"{u.kind} {u.id}" for u in uses[:10]) + (
            f" and {len(uses) - 10} more" if len(uses) > 10 else ""
        )
        raise Conflict(
            f"The connection {connection.name!r} is used by {names}. Give them another one, or terminate them first."
        )
    locked.delete()
    audit.record(user=user, team=connection.team, target="connection", target_id=connection.name, action="delete")


def hand_off_supervisors(*, user: User, connection: Connection) -> list[str]:
    """Have the supervisors that run and name it hand over to tasks that read its present properties; their ids.

    Others read them anyway when their next task starts. Raises ``NotAllowed``.
    """
    require(user, Action.OPERATE, connection.team)
    ids = _versions(connection).filter(supervisor__suspended=False).values_list("supervisor_id", flat=True)
    return [s.pk for s in Supervisor.objects.filter(pk__in=list(ids)).order_by("id") if _try_hand_off(user, s)]


def _try_hand_off(user: User, supervisor: Supervisor) -> bool:
    """False when it was terminated meanwhile."""
    try:
        hand_off(user=user, supervisor=supervisor)
    except Conflict:
        return False
    return True


def _versions(connection: Connection) -> QuerySet[SpecVersion]:
    return SpecVersion.objects.filter(
        _names_connection(connection, "spec"),
        _CAN_RUN,
        supervisor__terminated_at=None,
        supervisor__datasource__team=connection.team,
    )


def _names_connection(connection: Connection, column: str) -> Q:
    """Rows whose spec, in ``column``, names it."""
    places = ["connection"] if connection.is_kafka else _REGISTRY_PATHS
    condition = Q(pk__in=[])
    for place in places:
        condition |= Q(**{f"{column}__spec__ioConfig__{place}": connection.name})
    return condition
