"""A changed spec tried on quarantined records of one cause, and then submitted with a replay of them all.

Trying stores nothing; it is the sampler that decodes. Submitting and replaying are one transaction: either the new
version stands and a task holds the records, or nothing has changed.
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
from controlplane.datasources.masking import require_records
from controlplane.datasources.models import Datasource
from controlplane.datasources.sampling import take_sample
from controlplane.segments.models import QuarantinedRecord
from controlplane.segments.replaying import unpacked
from controlplane.segments.selectors.quarantine import Choice, QuarantineFilter, chosen, matching
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.replays import OF_FILES, Started, reader_of, replay
from controlplane.supervisors.services import submit_supervisor
from controlplane.tasks.models import Task
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs.causes import cause_of
from ingestion.specs.sampler_spec import SamplerSpec
from ingestion.specs.sampling import KeptRecord, SampleAnswer, SampledRecord

TRIED = 500  # records of a cause
TRIED_BYTES = 8 * 1024 * 1024  # of payloads, beside the first record's
SHOWN = 10
THROWN_AWAY = ("filtered", "tombstone")
# A replay does not reject records as late or early.
PASSES = ("stored", "processed_with_error", "outside_window")


@dataclass(frozen=True)
class Mendable:
    """The records of a cause that wait, and the spec that reads their topic now."""

    cause: str
    kept: int
    upto: int  # the highest id among them: what comes in meanwhile is not meant
    records: list[QuarantinedRecord]  # the newest, whole, as many as are tried
    spec: dict[str, Any]
    hides_secrets: bool
    supervisor: Supervisor | None  # None: only a task by hand has read it


@dataclass(frozen=True)
class Tried:
    """What a spec makes of the newest records of a cause."""

    spec: SamplerSpec
    answer: SampleAnswer
    records: list[QuarantinedRecord]  # those of the answer, in its order

    def _count(self, *outcomes: str) -> int:
        return sum(record.outcome in outcomes for record in self.answer.records)

    @property
    def tried(self) -> int:
        return len(self.answer.records)

    @property
    def passing(self) -> int:
        return self._count(*PASSES)

    @property
    def thrown_away(self) -> int:
        return self._count(*THROWN_AWAY)

    @property
    def failing(self) -> int:
        return self._count("unparseable")

    @property
    def remaining(self) -> list[tuple[str, int]]:
        """What is still wrong with those that fail, by cause, the most frequent first."""
        wrong = (r.error for r in self.answer.records if r.outcome == "unparseable")
        return Counter(cause_of("unparseable", error).title for error in wrong).most_common()

    @property
    def shown(self) -> list[tuple[QuarantinedRecord, SampledRecord]]:
        return list(zip(self.records, self.answer.records, strict=False))[:SHOWN]


def mendable(user: User, datasource: Datasource, cause: str) -> Mendable:
    """Trusts the caller to have got the datasource from a selector. Raises ``NotFound``, ``Conflict``."""
    waiting = _waiting(datasource, cause)
    found = matching(waiting)
    if not found.records:
        raise NotFound(f"No record of cause {cause!r} waits in this quarantine.")
    records = _newest(user, waiting)
    reader = reader_of(records[0].source)
    supervisor = Supervisor.objects.filter(pk=reader.get("supervisor_id", "")).first()
    spec = supervisor.current.spec if supervisor else reader["spec"]
    shown = {name: value for name, value in spec.items() if name != "suspended"}
    return Mendable(cause, found.records, found.upto, records, shown, bool(reader["sealed"]), supervisor)


def _waiting(datasource: Datasource, cause: str) -> Any:
    if not cause or not storable(cause):
        raise NotFound("Choose a cause.")
    return chosen(datasource, Choice(filter=QuarantineFilter(cause=cause, state=QuarantinedRecord.State.KEPT)))


def _newest(user: User, waiting: Any) -> list[QuarantinedRecord]:
    size = Coalesce(Func(F("payload"), function="octet_length", output_field=IntegerField()), Value(0))
    running = Window(Sum(size), order_by=F("id").desc())
    sized = waiting.annotate(upto=running).order_by("-id").values_list("id", "upto")[:TRIED]
    ids = [pk for n, (pk, upto) in enumerate(sized) if n == 0 or upto <= TRIED_BYTES]
    return list(QuarantinedRecord.objects.filter(pk__in=ids).shown_to(user).select_related("source").order_by("-id"))


def try_spec(*, user: User, datasource: Datasource, cause: str, document: Any) -> Tried:
    """What the spec makes of the newest records of the cause; nothing is stored.

    Needs the role operator. Raises ``NotAllowed``, ``NotFound``, ``InvalidInput`` with every fault, ``Unavailable``.
    """
    require(user, Action.OPERATE, datasource.team)
    require_records(user, datasource, "trying a spec on its records")
    records = _newest(user, _waiting(datasource, cause))
    if not records:
        raise NotFound(f"No record of cause {cause!r} waits in this quarantine.")
    if any(record.source is None for record in records):
        raise Conflict(OF_FILES)
    asked = {**document, "samplerConfig": {"numRows": TRIED}} if isinstance(document, dict) else document
    spec, answer = take_sample(user=user, document=asked, kept=[_as_kept(record) for record in records])
    _check_datasource(spec.datasource, datasource)
    return Tried(spec, answer, records)


def read_by_spec(*, user: User, record: QuarantinedRecord) -> SampledRecord:
    """What the spec that reads the record's topic now makes of it: its fields, and its row or what is wrong.

    Needs the role operator. Raises ``NotAllowed``, ``Conflict``, ``InvalidInput``, ``Unavailable``.
    """
    require(user, Action.OPERATE, record.datasource.team)
    require_records(user, record.datasource, "reading its records by the spec")
    spec = reader_of(record.source)["spec"]
    _, answer = take_sample(user=user, document=spec, kept=[_as_kept(record)])
    return answer.records[0]


def _as_kept(record: QuarantinedRecord) -> KeptRecord:
    return KeptRecord.model_construct(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=None if record.key is None else bytes(record.key),
        headers=unpacked(record.headers),
        payload=None if record.payload is None else bytes(record.payload),
    )


def _check_datasource(name: str | None, datasource: Datasource) -> None:
    if name != datasource.name:
        raise InvalidInput(f"The spec is of datasource {name!r}, and these records are of {datasource.name!r}.")


@transaction.atomic
def submit_and_replay(
    *, user: User, datasource: Datasource, cause: str, upto: int, document: Any
) -> tuple[Supervisor, Started]:
    """Give the supervisor this spec as a new version, and replay the cause's records with ids to ``upto`` by it.

    Needs the role admin. Raises ``NotAllowed``, ``InvalidInput`` with every fault, ``Conflict``.
    """
    require(user, Action.ADMINISTER, datasource.team)
    supervisor = submit_supervisor(user=user, document=document)
    _check_datasource(supervisor.datasource.name, datasource)
    choice = Choice(filter=QuarantineFilter(cause=cause), upto=upto)
    started = replay(user=user, datasource=datasource, choice=choice, mode=Task.Replay.INGEST)
    others = [t for t in started.tasks if (t.supervisor_id, t.spec_version) != (supervisor.pk, supervisor.version)]
    if others:
        source = others[0].replay_source
        where = f"topic {source.topic!r} as {source.group!r}" if source else "another topic"
        raise Conflict(
            f"Some of these records were read from {where}, which this spec does not read: nothing was changed. "
            "Change the spec that reads it, and ingest its records alone, by topic."
        )
    return supervisor, started
