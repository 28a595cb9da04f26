"""The parts of rewinds are read one after the other, each by a task; what one does not finish the next begins again."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from controlplane.common.database import try_advisory_lock
from controlplane.common.ids import task_id
from controlplane.publishing import rewind_pieces
from controlplane.publishing.models import Rewind, RewindPart
from controlplane.publishing.rewind_plan import Loose, PartPlan, RangesOf, parts_of
from controlplane.publishing.rewind_selection import groups_of
from controlplane.quarantine import replays
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.sources.models import Source
from controlplane.tasks.models import Status, Task
from controlplane.tasks.services import create_rewind_task
from ingestion.specs import offsets

State = RewindPart.State
MOST_ATTEMPTS = 3  # tasks of one part
_LOCK = 0x52574E44


def run_rewinds() -> list[str]:
    """Start the next task of every rewind that has parts left and none at work; the tasks' ids.

    One process at a time: two would start two parts of one rewind.
    """
    with try_advisory_lock(_LOCK) as won:
        return _run_rewinds() if won else []


def _run_rewinds() -> list[str]:
    rewind_pieces.drop_unneeded()
    started: list[str] = []
    open_rewinds = Rewind.objects.filter(parts__state=State.WAITING, datasource__deleted_at=None).distinct()
    for rewind in open_rewinds.select_related("datasource", "source"):
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
        "ranges": [[p, start, end] for p, some in part.ranges.items() for start, end in some],
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
    if not part.ranges:
        part.state, part.reason, part.ended_at = State.FAILED, "Others replay its records now.", timezone.now()
    part.save()
    if not part.ranges:
        return None
    ranges = [(p, start, end) for p, some in _left(part).items() for start, end in some]
    return create_rewind_task(rewind=rewind, identifier=part.task_id, ranges=ranges)


def _left(part: RewindPart) -> RangesOf:
    """What is still to be read. Pieces of a plan that is no longer the part's are thrown away."""
    wanted, pieces = part.wanted, list(part.pieces.defer("request"))
    is_other = any(offsets.subtracted(some, wanted.get(p, [])) for piece in pieces for p, some in piece.read.items())
    left = {} if is_other else rewind_pieces.unread(part, pieces)
    if left:
        return left
    rewind_pieces.drop(part.pieces.all())
    return wanted


def _planned_again(rewind: Rewind, part: RewindPart) -> str:
    """Its segments may have been merged since: then those are replaced that hold their rows now. Why it can't be."""
    if not part.taken:
        return ""
    groups = groups_of(rewind.source, part.taken)
    refused = [group.refusal for group in groups if group.refusal]
    plans = parts_of(groups, Loose())
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
    part.ranges = [[p, start, end] for p, some in left.items() for start, end in some]
