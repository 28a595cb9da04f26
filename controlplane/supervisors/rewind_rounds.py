"""The parts of rewinds are read one after the other, each by a task; what one does not finish the next begins again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from controlplane.common.database import try_advisory_lock
from controlplane.common.ids import task_id
from controlplane.publishing import rewind_pieces
from controlplane.publishing.models import Rewind, RewindPart, ranges_by_partition
from controlplane.publishing.rewind_plan import (
    Loose,
    PartPlan,
    RangesOf,
    Readers,
    Version,
    merged_ranges,
    parts_of,
    with_versions,
    without,
)
from controlplane.publishing.rewind_selection import groups_of
from controlplane.quarantine import replays
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.sources.models import Source
from controlplane.supervisors.models import SpecVersion
from controlplane.tasks.models import Status, Task
from controlplane.tasks.services import RewindSpec, create_rewind_task
from ingestion.specs import offsets
from ingestion.specs.kafka import secrets as spec_secrets
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from ingestion.specs.tasks.stored_specs import for_topic

State = RewindPart.State
MOST_ATTEMPTS = 3  # tasks of one part
_LOCK = 0x52574E44


def open_rewinds() -> QuerySet[Rewind]:
    """Those of which a part is still to be read."""
    return Rewind.objects.filter(parts__state=State.WAITING, datasource__deleted_at=None).distinct()


def run_rewinds() -> list[str]:
    """Start the next task of every rewind that has parts left and none at work; the tasks' ids.

    One process at a time: two would start two parts of one rewind.
    """
    with try_advisory_lock(_LOCK) as won:
        return _run_rewinds() if won else []


def _run_rewinds() -> list[str]:
    rewind_pieces.drop_unneeded()
    started: list[str] = []
    for rewind in open_rewinds().select_related("datasource", "source"):
        with transaction.atomic():
            parts = rewind.parts.select_for_update(skip_locked=True).filter(state=State.WAITING)
            part = parts.order_by("number").first()
            task = None if part is None else _next_task(rewind, part)
        started += [task.pk] if task is not None else []
    return started


def part_fields(part: PartPlan) -> dict[str, Any]:
    """What a part's row keeps of its plan."""
    low, high = part.span or (None, None)
    return {
        "interval_start": low,
        "interval_end": high,
        "taken": list(part.segments),
        "ranges": _flat(part.ranges),
        "others": [
            {
                "source": r.source,
                "supervisor": r.version[0] if r.version else None,
                "version": r.version[1] if r.version else None,
                "ranges": _flat(r.ranges),
            }
            for r in part.others
        ],
        "rows_before": part.rows,
        "before": part.before,
    }


def quarantined(source: Source, ranges: RangesOf) -> QuerySet[QuarantinedRecord]:
    """Those of a source at these offsets, whatever their state."""
    where = Q(pk__in=[])
    for partition, some in ranges.items():
        for low, high in some:
            where |= Q(partition=partition, offset__gte=low, offset__lt=high)
    return QuarantinedRecord.objects.filter(where, source=source)


def by_partition(records: QuerySet[QuarantinedRecord]) -> RangesOf:
    """Their offsets."""
    found: dict[int, list[int]] = {}
    for partition, offset in records.order_by().values_list("partition", "offset"):
        found.setdefault(partition, []).append(offset)
    return {p: offsets.ranges_of(some) for p, some in found.items()}


def _next_task(rewind: Rewind, part: RewindPart) -> Task | None:
    """The task that reads the part now; None while one does, or when it has failed for good."""
    last = Task.objects.filter(pk=part.task_id).first()
    if last is not None and not last.ended:
        return None
    if last is not None and last.status == Status.FAILED:
        part.reason = last.error
    part.attempts += 1
    reason = part.reason if part.attempts > MOST_ATTEMPTS else _planned_again(rewind, part)
    if reason or part.attempts > MOST_ATTEMPTS:
        part.state, part.reason, part.ended_at = State.FAILED, reason or "No task has read it.", timezone.now()
        part.save()
        return None
    part.task_id = task_id("rewind", rewind.datasource.name, timezone.now())
    _hold_records(rewind, part)
    if not part.records:
        part.state, part.reason, part.ended_at = State.FAILED, "Others replay its records now.", timezone.now()
        part.save()
        return None
    left = _left(part)
    part.reading = next(n for n, some in enumerate(left) if some)
    spec = _spec_of(rewind, part.readings[part.reading])
    if spec is None:
        part.state, part.reason, part.ended_at = State.FAILED, "A spec version is no longer kept.", timezone.now()
        part.save()
        return None
    part.save()
    ranges = [(p, start, end) for p, some in left[part.reading].items() for start, end in some]
    return create_rewind_task(rewind=rewind, identifier=part.task_id, ranges=ranges, spec=spec)


def _left(part: RewindPart) -> list[RangesOf]:
    """What is still to be read, by reading. Pieces of a plan that is no longer the part's are thrown away."""
    pieces = list(part.pieces.defer("request"))
    wanted = [ranges_by_partition(reading["ranges"]) for reading in part.readings]
    is_other = any(p.reading >= len(wanted) or without(p.read, wanted[p.reading]) for p in pieces)
    left = [] if is_other else rewind_pieces.unread(part, pieces)
    if any(left):
        return left
    rewind_pieces.drop(part.pieces.all())
    return wanted


def _spec_of(rewind: Rewind, reading: dict[str, Any]) -> RewindSpec | None:
    """With which spec it is read; None where its version is gone."""
    source = Source.objects.get(pk=reading["source"])
    if reading["version"] is None:
        spec = rewind.spec if source.pk == rewind.source_id else for_topic(rewind.spec, source.topic)
        return RewindSpec(spec, rewind.secrets, rewind.supervisor_id, rewind.spec_version, source.topic_id)
    name, number = reading["supervisor"], reading["version"]
    version = SpecVersion.objects.filter(supervisor_id=name, version=number).first()
    if version is None:
        return None
    return RewindSpec(task_spec_of(version), version.secrets, name, number, source.topic_id)


def task_spec_of(version: SpecVersion) -> dict[str, Any]:
    """That of a task with one indexer, without secrets."""
    return spec_secrets.split_secrets(parse_supervisor_spec(version.spec).task_spec(1).canonical())[0]


def versions_of(tasks: Iterable[str]) -> dict[str, Version]:
    """By task, the supervisor and its spec version, of those that are still known."""
    rows = Task.objects.filter(pk__in=set(tasks), spec_version__isnull=False)
    return {
        pk: (name, number) for pk, name, number in rows.values_list("pk", "supervisor_id", "spec_version") if number
    }


def _flat(ranges: RangesOf) -> list[list[int]]:
    return [[p, start, end] for p, some in ranges.items() for start, end in some]


def _planned_again(rewind: Rewind, part: RewindPart) -> str:
    """Its segments may have been merged since: then those are replaced that hold their rows now. Why it can't be."""
    if not part.taken:
        return ""
    groups = groups_of(rewind.source, part.taken)
    versions: dict[str, Version] | None = None
    if rewind.choice.get("others") == "own":
        versions = versions_of(task for group in groups for _, task in group.readers)
        groups = [with_versions(group, versions) for group in groups]
    refused = [group.refusal for group in groups if group.refusal]
    chosen = merged_ranges(one.wanted for one in rewind.parts.all())
    own = (rewind.supervisor_id, rewind.spec_version or 0)
    source = rewind.source_id
    readers = Readers(source, own, versions, lambda reader: chosen if reader[0] == source else {})
    plans = parts_of(groups, Loose(), readers)
    if refused or len(plans) != 1:
        return (
            refused[0]
            if refused
            else "None of its segments is in use any more: they were removed, or another part has read their records."
        )
    for name, value in part_fields(plans[0]).items():
        setattr(part, name, value)
    return ""


def _hold_records(rewind: Rewind, part: RewindPart) -> None:
    """Take what of it is in quarantine, as a replay does; what others have taken meanwhile is left out."""
    if part.taken:
        return
    records = quarantined(rewind.source, part.wanted)
    replays.take_records(records, part.task_id)
    others = by_partition(records.exclude(state=QuarantinedRecord.State.REPLAYING, replay_id=part.task_id))
    left = {p: offsets.subtracted(some, others.get(p, [])) for p, some in part.wanted.items()}
    part.ranges = _flat(left)
