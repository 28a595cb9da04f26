"""Which segments hold today what others once held, and what a segment was made of."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from controlplane.segments.models import Replacement, Segment


def holders(ids: Iterable[uuid.UUID | str]) -> list[Segment]:
    """The segments that hold the rows of these, each once, by interval and partition number.

    A segment that was replaced leads to those made of it whose rows lie in its time, as often as that happened. Those
    that somebody removed are among them, unused, with their ``removal``.
    """
    ends: dict[uuid.UUID, Segment] = {}
    seen: set[uuid.UUID] = set()
    wanted = {uuid.UUID(str(i)) for i in ids}
    while wanted := wanted - seen:
        seen |= wanted
        found = list(Segment.objects.filter(pk__in=wanted).select_related("datasource", "removal"))
        ends |= {s.pk: s for s in found if s.replaced_by is None}
        wanted = _made_of([s for s in found if s.replaced_by is not None])
    return sorted(ends.values(), key=lambda s: (s.interval_start, s.partition_num))


def _made_of(replaced: Sequence[Segment]) -> set[uuid.UUID]:
    made: dict[uuid.UUID | None, list[uuid.UUID]] = dict(
        Replacement.objects.filter(pk__in={s.replaced_by for s in replaced}).values_list("pk", "made")
    )
    times = {
        pk: (low, high)
        for pk, low, high in Segment.objects.filter(pk__in=[i for ids in made.values() for i in ids]).values_list(
            "pk", "min_time", "max_time"
        )
    }
    return {
        i
        for s in replaced
        for i in made.get(s.replaced_by, [])
        if i in times and times[i][0] <= s.max_time and times[i][1] >= s.min_time
    }


def merged_by_task(segments: Sequence[Segment]) -> dict[str, int]:
    """By the task that wrote them, of segments that were made of others: of how many."""
    by_task = Replacement.objects.filter(task_id__in={s.task_id for s in segments})
    return {task: len(taken) for task, taken in by_task.values_list("task_id", "taken")}
