"""Which segments hold today what others once held, and what a segment was made of."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from controlplane.segments.models import KilledSegment, Removal, Replacement, Segment


@dataclass(frozen=True)
class Lineage:
    """Where the rows of some segments are, or who removed them."""

    segments: list[Segment]  # by interval and partition number; in use, or unused with their ``removal``
    killed: list[Removal]  # of those whose files are deleted


def current_holders(ids: Iterable[uuid.UUID | str]) -> Lineage:
    """The segments that hold the rows of these, each once.

    A segment that was replaced leads to those made of it whose rows lie in its time, as often as that happened, also
    when its own file is long deleted.
    """
    ends: dict[uuid.UUID, Segment] = {}
    removals: dict[int, Removal] = {}
    seen: set[uuid.UUID] = set()
    pending = {uuid.UUID(str(i)) for i in ids}
    while pending := pending - seen:
        seen |= pending
        rows = list(Segment.objects.filter(pk__in=pending).select_related("datasource", "removal"))
        killed = list(KilledSegment.objects.filter(pk__in=pending).select_related("removal"))
        ends |= {s.pk: s for s in rows if s.replaced_by is None}
        removals |= {k.removal.pk: k.removal for k in killed if k.removal is not None}
        replaced: list[Segment | KilledSegment] = [*rows, *killed]
        pending = _successors([s for s in replaced if s.replaced_by is not None])
    segments = sorted(ends.values(), key=lambda s: (s.interval_start, s.partition_num))
    return Lineage(segments, [removals[pk] for pk in sorted(removals)])


def _successors(replaced: Sequence[Segment | KilledSegment]) -> set[uuid.UUID]:
    made_by: dict[uuid.UUID | None, list[uuid.UUID]] = dict(
        Replacement.objects.filter(pk__in={s.replaced_by for s in replaced}).values_list("pk", "made")
    )
    candidates = [i for ids in made_by.values() for i in ids]
    times = {
        pk: (low, high)
        for model in (Segment, KilledSegment)
        for pk, low, high in model.objects.filter(pk__in=candidates).values_list("pk", "min_time", "max_time")
    }
    return {
        i
        for s in replaced
        for i in made_by.get(s.replaced_by, [])
        if i in times and times[i][0] <= s.max_time and times[i][1] >= s.min_time
    }


def merged_by_task(segments: Sequence[Segment]) -> dict[str, int]:
    """By the task that wrote them, of segments that were made of others: of how many."""
    by_task = Replacement.objects.filter(task_id__in={s.task_id for s in segments})
    return {task: len(taken) for task, taken in by_task.values_list("task_id", "taken")}


def made_by_task(tasks: Sequence[str]) -> dict[str, list[uuid.UUID]]:
    """By the task that replaced others with them, of those that did."""
    return dict(Replacement.objects.filter(task_id__in=tasks).values_list("task_id", "made"))
