"""Replays of quarantined records: a task for each source of theirs, with the spec that reads it now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.common.errors import Conflict
from controlplane.common.ids import task_id
from controlplane.datasources.models import Datasource
from controlplane.segments import replaying
from controlplane.segments.models import QuarantinedRecord, Source
from controlplane.segments.quarantine import record_action
from controlplane.segments.selectors.quarantine import Choice, chosen
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from controlplane.tasks.services import create_replay
from controlplane.tasks.sources import key_of, owner_of
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs import IOConfig, parse_supervisor_spec
from ingestion.specs import secrets as spec_secrets

OF_FILES = (
    "These records, or some of them, are of files, which have no topic: they are not replayed. Mend the file or the "
    "spec, and submit a batch task that reads the file again; or export the records, mend them, and submit a task with "
    "appendToExisting that reads these."
)


@dataclass(frozen=True)
class Started:
    """The replays that were started, and how many records they hold."""

    tasks: list[Task]
    records: int


@transaction.atomic
def replay(*, user: User, datasource: Datasource, choice: Choice, mode: Task.Replay) -> Started:
    """Start tasks that ingest the chosen records with their source's present spec, or produce them to its topic again.

    Only records in the state kept are taken, each by one replay at a time; of all that match a filter only those of
    topics. Raises ``NotAllowed``, ``InvalidInput`` and ``Conflict`` (there is none, one of those with the ids is of a
    file, or nothing says how to read them).
    """
    require(user, Action.OPERATE, datasource.team)
    # Locked: who deletes the datasource sees these tasks, or is seen here.
    known = Datasource.objects.select_for_update(of=("self",), no_key=True)
    if known.get(pk=datasource.pk).deleted_at is not None:
        raise Conflict(f"The datasource {datasource.name} is deleted: submit a spec that names it first.")
    found = chosen(datasource, choice)
    kept = found.filter(state=QuarantinedRecord.State.KEPT).order_by()
    of_files = kept.filter(source=None)
    if of_files.exists() and (choice.ids is not None or not kept.exclude(source=None).exists()):
        raise Conflict(OF_FILES)
    started, records = [], 0
    for source in _sources(kept):
        identifier = task_id("replay", datasource.name, timezone.now())
        held = replaying.hold(found.filter(source=source), identifier)
        if held:
            started.append(
                create_replay(identifier=identifier, source=source, mode=mode, user=user, **reader_of(source))
            )
            records += held
    if not started:
        raise Conflict(
            "None of these records is in quarantine now: they were replayed or purged, or are being replayed."
        )
    _record(user, datasource, choice, mode, Started(started, records))
    return Started(started, records)


def check_read(records: QuerySet[QuarantinedRecord]) -> None:
    """Raise the ``Conflict`` of a replay for records that nothing says how to decode."""
    for source in _sources(records):
        reader_of(source)


def _sources(records: QuerySet[QuarantinedRecord]) -> QuerySet[Source]:
    of = records.order_by().values("source").distinct()
    return Source.objects.filter(pk__in=of).select_related("datasource__team").order_by("pk")


def _record(user: User, datasource: Datasource, choice: Choice, mode: Task.Replay, started: Started) -> None:
    record_action(
        user,
        datasource,
        f"replay_{mode.value}",
        records=started.records,
        tasks=[task.pk for task in started.tasks],
        **choice.described(),
    )


def reader_of(source: Source | None) -> dict[str, Any]:
    """Spec and secrets: of the supervisor that reads the source, else of the last that did. Raises ``Conflict``."""
    if source is None:
        raise Conflict(OF_FILES)
    for supervisor in Supervisor.objects.filter(datasource=source.datasource_id).order_by("-created_at"):
        version = supervisor.current
        if _reads(source, version.io_config, supervisor.owner):
            spec = spec_secrets.split(parse_supervisor_spec(version.spec).task_spec(1).canonical())[0]
            more = {"supervisor_id": supervisor.pk, "spec_version": version.version}
            return {"spec": spec, "sealed": version.secrets, **more}
    for task in Task.objects.reading().filter(datasource=source.datasource_id):
        if _reads(source, task.io_config, owner_of(task)):
            return {"spec": task.spec, "sealed": task.secrets}
    raise Conflict(
        f"No supervisor or task reads topic {source.topic!r} as {source.group!r}: nothing says how to decode."
    )


def _reads(source: Source, io_config: IOConfig, owner: str) -> bool:
    return io_config.topic == source.topic and key_of(io_config, owner) == {"kind": source.kind, "group": source.group}
