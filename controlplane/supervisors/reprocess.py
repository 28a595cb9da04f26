"""A changed spec tried on quarantined records of one cause, and then submitted with a replay of them all.

Trying stores nothing; it is the sampler that decodes. Submitting and replaying are one transaction: either the new
version stands and a task holds the records, or nothing has changed. Records of files have no supervisor: there the
spec is that of the batch task by which they were read last, and a changed one is the replay's alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F, Func, IntegerField, Sum, Value, Window
from django.db.models.functions import Coalesce

from controlplane.common.errors import Conflict, InvalidInput, NotFound
from controlplane.common.text import storable
from controlplane.datasources.masking import require_record_access
from controlplane.datasources.models import Datasource
from controlplane.datasources.sampling import take_sample
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.quarantine.replays import decode_headers
from controlplane.quarantine.selectors.filters import (
    Choice,
    MatchCounts,
    QuarantineFilter,
    chosen_records,
    count_matching,
    ingestable,
)
from controlplane.sources.models import Source
from controlplane.supervisors.live_trial import LiveTrial, try_live
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.replays import (
    NONE_WAITS,
    StartedReplays,
    check_replayable,
    file_readers,
    reader_of,
    replay,
    replay_files,
)
from controlplane.supervisors.services import submit_supervisor
from controlplane.tasks.checking import read_spec
from controlplane.tasks.file_replays import FileReader, readers_of, sample_of
from controlplane.tasks.models import Task
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs.causes import cause_of
from ingestion.specs.messages.sampler_spec import SamplerSpec
from ingestion.specs.messages.sampling import KeptRecord, SampleAnswer, SampledRecord
from ingestion.specs.tasks.batch import BatchTaskSpec, parse_changed_batch_spec

TRIAL_RECORDS = 500  # records of a cause
TRIAL_BYTES = 8 * 1024 * 1024  # of payloads, beside the first record's
SHOWN = 10
OUTSIDE = "outside_window"  # thrown away by a replay of files' records alone: others are not rejected as late or early
THROWN_AWAY = ("filtered", "tombstone")
PASSES = ("stored", "processed_with_error")


@dataclass(frozen=True)
class ReprocessTarget:
    """The records of a cause that wait, and the spec that reads their topic now, or by which files were read last."""

    cause: str
    kept: int
    max_id: int  # the highest id among them: what comes in meanwhile is not meant
    records: list[QuarantinedRecord]  # the newest, whole, as many as are tried
    spec: dict[str, Any]
    hides_secrets: bool
    supervisor: Supervisor | None  # None: only a manual task has read it
    reader: FileReader | None = None  # of records of files
    others: tuple[FileReader, ...] = ()  # with whose specs more of the cause were read


@dataclass(frozen=True)
class Trial:
    """What a spec makes of the newest records of a cause."""

    spec: SamplerSpec
    answer: SampleAnswer
    records: list[QuarantinedRecord]  # those of the answer, in its order
    of_files: bool = False
    live: LiveTrial | None = None  # what it makes of the topic's newest records; None where no supervisor reads them

    def _count(self, *outcomes: str) -> int:
        return sum(record.outcome in outcomes for record in self.answer.records)

    @property
    def tried(self) -> int:
        return len(self.answer.records)

    @property
    def passing(self) -> int:
        return self._count(*PASSES, *(() if self.of_files else (OUTSIDE,)))

    @property
    def thrown_away(self) -> int:
        return self._count(*THROWN_AWAY, *((OUTSIDE,) if self.of_files else ()))

    @property
    def failing(self) -> int:
        return self._count("unparseable")

    @property
    def remaining(self) -> list[tuple[str, int]]:
        """What is still wrong with those that fail, by cause, the most frequent first."""
        errors = (r.error for r in self.answer.records if r.outcome == "unparseable")
        return Counter(cause_of("unparseable", error).title for error in errors).most_common()

    @property
    def shown_records(self) -> list[tuple[QuarantinedRecord, SampledRecord]]:
        return list(zip(self.records, self.answer.records, strict=False))[:SHOWN]


def reprocess_target(user: User, datasource: Datasource, cause: str, task: str = "") -> ReprocessTarget:
    """Of records of topics; with a task of those of files that it has read last, or one with its spec.

    Trusts the caller to have got the datasource from a selector. Raises ``NotFound``, ``Conflict``.
    """
    if task:
        return _target_of_files(user, datasource, cause, task)
    waiting = _waiting(datasource, cause).filter(source__isnull=False)
    matched = _require_matching(waiting, cause)
    records = _newest_records(user, waiting)
    reader = reader_of(_source(records[0]))
    supervisor = Supervisor.objects.filter(pk=reader.get("supervisor_id", "")).first()
    spec = supervisor.current.spec if supervisor else reader["spec"]
    shown = {name: value for name, value in spec.items() if name != "suspended"}
    return ReprocessTarget(cause, matched.records, matched.max_id, records, shown, bool(reader["sealed"]), supervisor)


def _target_of_files(user: User, datasource: Datasource, cause: str, task: str) -> ReprocessTarget:
    waiting = _waiting(datasource, cause).filter(cut=False)
    readers = file_readers(waiting)
    reader = _pick_reader(readers, cause, task)
    own_records = waiting.filter(**reader.records)
    matched, others = _require_matching(own_records, cause), tuple(r for r in readers if r is not reader)
    spec, has_secrets = reader.spec, bool(reader.task.secrets)
    return ReprocessTarget(
        cause,
        matched.records,
        matched.max_id,
        _newest_records(user, own_records),
        spec,
        has_secrets,
        None,
        reader,
        others,
    )


def _pick_reader(readers: list[FileReader], cause: str, task: str) -> FileReader:
    chosen_reader = next((reader for reader in readers if task in reader.tasks), None)
    if chosen_reader is None:
        raise NotFound(f"The quarantine has no file records with cause {cause!r} that task {task!r} read.")
    return chosen_reader


def _require_matching(waiting: Any, cause: str) -> MatchCounts:
    matched = count_matching(waiting)
    if not matched.records:
        raise NotFound(f"No record of cause {cause!r} waits in this quarantine.")
    return matched


def _source(record: QuarantinedRecord) -> Source:
    if record.source is None:
        raise Conflict("This record comes from a file, so it has no topic.")
    return record.source


def _waiting(datasource: Datasource, cause: str) -> Any:
    if not cause or not storable(cause):
        raise NotFound("Choose a cause.")
    return chosen_records(datasource, Choice(filter=QuarantineFilter(cause=cause, state=QuarantinedRecord.State.KEPT)))


def _newest_records(user: User, waiting: Any) -> list[QuarantinedRecord]:
    size = Coalesce(Func(F("payload"), function="octet_length", output_field=IntegerField()), Value(0))
    running = Window(Sum(size), order_by=F("id").desc())
    sized = waiting.annotate(upto=running).order_by("-id").values_list("id", "upto")[:TRIAL_RECORDS]
    ids = [pk for n, (pk, upto) in enumerate(sized) if n == 0 or upto <= TRIAL_BYTES]
    return list(QuarantinedRecord.objects.filter(pk__in=ids).shown_to(user).select_related("source").order_by("-id"))


def try_spec(*, user: User, datasource: Datasource, found: ReprocessTarget, document: Any) -> Trial:
    """What the spec makes of the newest records of the cause, and of the topic's newest; nothing is stored.

    Needs the role operator. Raises ``NotAllowed``, ``NotFound``, ``InvalidInput`` with every fault, ``Unavailable``.
    """
    require(user, Action.OPERATE, datasource.team)
    require_record_access(user, datasource, "trying a spec on its records")
    records = found.records
    if found.reader is not None:
        edited = _parse_edited(user, datasource, found.reader, document)
        return Trial(*sample_of(user, edited, records), records, of_files=True)
    sampler_document = (
        {**document, "samplerConfig": {"numRows": TRIAL_RECORDS}} if isinstance(document, dict) else document
    )
    spec, answer = take_sample(
        user=user, document=sampler_document, kept_records=[_to_kept_record(record) for record in records]
    )
    _check_datasource(spec.datasource, datasource)
    live = None if found.supervisor is None else try_live(user, found.supervisor, document)
    return Trial(spec, answer, records, live=live)


def read_by_spec(*, user: User, record: QuarantinedRecord) -> SampledRecord:
    """What the spec that would ingest it makes of the record: its fields, and its row or what is wrong.

    Needs the role operator. Raises ``NotAllowed``, ``Conflict``, ``InvalidInput``, ``Unavailable``.
    """
    require(user, Action.OPERATE, record.datasource.team)
    require_record_access(user, record.datasource, "reading its records by the spec")
    if record.source is None:
        [reader] = readers_of([record.task_id])
        _, answer = sample_of(user, reader.read_by, [record])
    else:
        spec = reader_of(record.source)["spec"]
        _, answer = take_sample(user=user, document=spec, kept_records=[_to_kept_record(record)])
    return answer.records[0]


def _to_kept_record(record: QuarantinedRecord) -> KeptRecord:
    return KeptRecord.model_construct(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=None if record.key is None else bytes(record.key),
        headers=decode_headers(record.headers),
        payload=None if record.payload is None else bytes(record.payload),
    )


def _parse_edited(user: User, datasource: Datasource, reader: FileReader, document: Any) -> BatchTaskSpec:
    """A changed spec of a batch task. Raises ``InvalidInput`` with every fault, ``Unavailable``."""
    spec = read_spec(user, document, lambda written: parse_changed_batch_spec(written, reader.read_by))
    _check_datasource(spec.datasource, datasource)
    return spec


def _check_datasource(name: str | None, datasource: Datasource) -> None:
    if name != datasource.name:
        raise InvalidInput(f"The spec writes to {name!r}, but these records belong to {datasource.name!r}.")


@transaction.atomic
def submit_and_replay(
    *, user: User, datasource: Datasource, cause: str, upto: int, document: Any
) -> tuple[Supervisor, StartedReplays]:
    """Give the supervisor this spec as a new version, and replay the cause's records with ids to ``upto`` by it.

    Needs the role admin. Raises ``NotAllowed``, ``InvalidInput`` with every fault, ``Conflict``.
    """
    require(user, Action.ADMINISTER, datasource.team)
    supervisor = submit_supervisor(user=user, document=document)
    _check_datasource(supervisor.datasource.name, datasource)
    choice = Choice(filter=QuarantineFilter(cause=cause), max_id=upto)
    started = replay(user=user, datasource=datasource, choice=choice, mode=Task.Replay.INGEST)
    others = [t for t in started.tasks if (t.supervisor_id, t.spec_version) != (supervisor.pk, supervisor.version)]
    if others:
        source = others[0].replay_source
        where = f"topic {source.topic!r} as {source.group!r}" if source else "another topic"
        raise Conflict(
            f"Some of these records were read from {where}, which this spec does not read. Nothing was changed. "
            "Filter the records by topic. Then change the spec that reads this topic, and replay them."
        )
    return supervisor, started


def replay_changed(
    *, user: User, datasource: Datasource, choice: Choice, document: Any, reader: FileReader | None = None
) -> StartedReplays:
    """Replay chosen records of files, of those that this reader has read, by the changed spec of its task.

    ``reader``: None: all of them must have one. Nothing else is changed. Needs the role operator. Raises
    ``NotAllowed``, ``InvalidInput`` with every fault, ``Conflict``.
    """
    require(user, Action.OPERATE, datasource.team)
    require_record_access(user, datasource, "another spec for its records (it may reveal masked columns)")
    reader = reader or _only_reader(datasource, choice)
    spec = _parse_edited(user, datasource, reader, document)
    return replay_files(user=user, datasource=datasource, choice=choice, reader=reader, spec=spec)


def _only_reader(datasource: Datasource, choice: Choice) -> FileReader:
    kept = chosen_records(datasource, choice).filter(state=QuarantinedRecord.State.KEPT)
    if kept.exclude(source=None).exists():
        raise Conflict(
            "Send a spec only for records from files. For records from a topic, change the spec of its supervisor."
        )
    check_replayable(kept, Task.Replay.INGEST, by_ids=choice.ids is not None)
    readers = file_readers(ingestable(kept))
    if not readers:
        raise Conflict(NONE_WAITS)
    if len(readers) > 1:
        raise Conflict(
            f"These records were read with {len(readers)} different specs. Choose the records of one spec, for example "
            "by task."
        )
    return readers[0]
