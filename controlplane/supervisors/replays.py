"""Replays of quarantined records: a task for each source of theirs, with the spec that reads it now.

Records of files have no source: there it is a task for each spec by which they were read last, as batch tasks have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.common.errors import Conflict
from controlplane.common.ids import task_id
from controlplane.connections.secrets import seal
from controlplane.datasources.models import Datasource
from controlplane.quarantine import replays
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.quarantine.selectors.filters import Choice, chosen_records, ingestable, producible
from controlplane.quarantine.services import record_action
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import source_key
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.file_replays import FileReader, readers_of
from controlplane.tasks.models import Task
from controlplane.tasks.services import create_replay
from controlplane.tasks.sources import owner_of
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs.inputs.io_config import IOConfig
from ingestion.specs.kafka import secrets as spec_secrets
from ingestion.specs.tasks.batch import BatchTaskSpec
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec

MAX_READERS = 5  # specs of files' records: each is a task, and a process
NONE_WAITS = "None of these records is in quarantine now: they were replayed or purged, or are being replayed."
_NO_TOPIC = (
    "Some of these records come from files, which have no topic, or are dead letters without a payload, so they can't "
    "be produced again. Ingest those of files, or correct the file and submit a batch task that reads it again."
)
_CUT = (
    "Some of these records are stored only in part, or are dead letters without a payload, so they can't be ingested. "
    "Of a file: correct it, and submit a batch task that reads it again."
)


@dataclass(frozen=True)
class StartedReplays:
    """The replays that were started, and how many records they hold."""

    tasks: list[Task]
    records: int


@transaction.atomic
def replay(*, user: User, datasource: Datasource, choice: Choice, mode: Task.Replay) -> StartedReplays:
    """Start tasks that ingest the chosen records with the spec of now, or produce them to their topic again.

    Only records in the state kept are taken, each by one replay at a time; of all that match a filter only those that
    can be treated so. Raises ``NotAllowed``, ``InvalidInput`` and ``Conflict`` (there is none, one of those with the
    ids can't be treated so, or nothing says how to read them).
    """
    _check_allowed(user, datasource)
    records = chosen_records(datasource, choice)
    kept = records.filter(state=QuarantinedRecord.State.KEPT).order_by()
    check_replayable(kept, mode, by_ids=choice.ids is not None)
    started = _start_parts(records, _parts_of(replayable(kept, mode)), datasource, mode, user)
    _record(user, datasource, choice, mode, started)
    return started


@transaction.atomic
def replay_files(
    *, user: User, datasource: Datasource, choice: Choice, reader: FileReader, spec: BatchTaskSpec
) -> StartedReplays:
    """Start a task that ingests those of the chosen records that the reader has read, with this spec instead.

    Raises ``NotAllowed``, ``InvalidInput`` and ``Conflict`` (there is none).
    """
    _check_allowed(user, datasource)
    canonical, hidden = spec_secrets.split_secrets({n: value for n, value in spec.canonical().items() if n != "id"})
    part = _Part(None, reader.records, {"spec": canonical, "sealed": seal(hidden)})
    started = _start_parts(chosen_records(datasource, choice), [part], datasource, Task.Replay.INGEST, user)
    _record(user, datasource, choice, Task.Replay.INGEST, started)
    return started


@dataclass(frozen=True)
class _Part:
    """Records that one task replays."""

    source: Source | None
    where: dict[str, Any]  # by columns of their own
    reader: dict[str, Any]


def _check_allowed(user: User, datasource: Datasource) -> None:
    require(user, Action.OPERATE, datasource.team)
    # Locked: who deletes the datasource sees these tasks, or is seen here.
    locked = Datasource.objects.select_for_update(of=("self",), no_key=True)
    if locked.get(pk=datasource.pk).deleted_at is not None:
        raise Conflict(f"The datasource {datasource.name} is deleted: submit a spec that names it first.")


def replayable(records: QuerySet[QuarantinedRecord], mode: Task.Replay) -> QuerySet[QuarantinedRecord]:
    """Those that a replay would take."""
    return ingestable(records) if mode is Task.Replay.INGEST else producible(records)


def check_replayable(kept: QuerySet[QuarantinedRecord], mode: Task.Replay, by_ids: bool) -> None:
    """Raise ``Conflict`` where none of the records can be treated so; of those chosen by ids, where one can't."""
    unfit = kept.count() - replayable(kept, mode).count()
    if unfit and (by_ids or unfit == kept.count()):
        raise Conflict(_CUT if mode is Task.Replay.INGEST else _NO_TOPIC)


def _start_parts(
    chosen_records: QuerySet[QuarantinedRecord],
    parts: list[_Part],
    datasource: Datasource,
    mode: Task.Replay,
    user: User,
) -> StartedReplays:
    tasks, records = [], 0
    for part in parts:
        identifier = task_id("replay", datasource.name, timezone.now())
        held_count = replays.take_records(chosen_records.filter(**part.where), identifier)
        if held_count:
            task_args = {"datasource": datasource, "source": part.source, "mode": mode, "user": user, **part.reader}
            tasks.append(create_replay(identifier=identifier, **task_args))
            records += held_count
    if not tasks:
        raise Conflict(NONE_WAITS)
    return StartedReplays(tasks, records)


def _parts_of(records: QuerySet[QuarantinedRecord]) -> list[_Part]:
    parts = [_Part(source, {"source": source}, reader_of(source)) for source in _sources(records)]
    readers = _limited_readers(records)
    return parts + [_Part(None, r.records, {"spec": r.spec, "sealed": r.task.secrets}) for r in readers]


def file_readers(records: QuerySet[QuarantinedRecord]) -> list[FileReader]:
    """Who has read those of the records that are of files. Raises ``Conflict``."""
    task_ids = set(records.filter(source=None).order_by().values_list("task_id", flat=True).distinct())
    return readers_of(task_ids) if task_ids else []


def _limited_readers(records: QuerySet[QuarantinedRecord]) -> list[FileReader]:
    readers = file_readers(records)
    if len(readers) > MAX_READERS:
        raise Conflict(
            f"These records were read with {len(readers)} different specs. One replay allows at most {MAX_READERS}. "
            "Select the records of one cause or one task."
        )
    return readers


def check_readable(records: QuerySet[QuarantinedRecord]) -> list[FileReader]:
    """Whose specs would ingest those of files. Raises the ``Conflict`` of a replay for records that nothing says how to
    decode.
    """
    for source in _sources(records):
        reader_of(source)
    return _limited_readers(records)


def _sources(records: QuerySet[QuarantinedRecord]) -> QuerySet[Source]:
    source_ids = records.order_by().values("source").distinct()
    return Source.objects.filter(pk__in=source_ids).select_related("datasource__team").order_by("pk")


def _record(user: User, datasource: Datasource, choice: Choice, mode: Task.Replay, started: StartedReplays) -> None:
    record_action(
        user,
        datasource,
        f"replay_{mode.value}",
        records=started.records,
        tasks=[task.pk for task in started.tasks],
        **choice.described(),
    )


def reader_of(source: Source) -> dict[str, Any]:
    """Spec and secrets: of the supervisor that reads the source, else of the last that did. Raises ``Conflict``."""
    source = source.decoded_as or source
    for supervisor in Supervisor.objects.filter(datasource=source.datasource_id).order_by("-created_at"):
        version = supervisor.current
        if _reads(source, version.io_config, supervisor.owner):
            spec = spec_secrets.split_secrets(parse_supervisor_spec(version.spec).task_spec(1).canonical())[0]
            more = {"supervisor_id": supervisor.pk, "spec_version": version.version}
            return {"spec": spec, "sealed": version.secrets, **more}
    for task in Task.objects.ingesting().filter(datasource=source.datasource_id):
        if _reads(source, task.io_config, owner_of(task)):
            return {"spec": task.spec, "sealed": task.secrets}
    raise Conflict(
        f"No supervisor or task reads topic {source.topic!r} as {source.group!r}, so there is no spec to decode "
        "these records."
    )


def _reads(source: Source, io_config: IOConfig, owner: str) -> bool:
    return io_config.topic == source.topic and source_key(io_config, owner) == {
        "kind": source.kind,
        "group": source.group,
    }
