"""The transaction of a rewind's part: its old segments become unused and those of its publish used, or nothing changes.

The offsets are settled, and stay so. What makes it once is the state of the part, whose row is locked behind the
fence's, and that all old segments are still in use. Locks are taken in the order of a publish: the fence; the part; its
quarantined records; all intervals of old and new segments, by time; the segments.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from controlplane.common.database import cursor
from controlplane.common.errors import Conflict, InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.models import ProgressKey, Receipt, RewindPart
from controlplane.publishing.postgres_ranges import Ranges
from controlplane.publishing.publication import Publication
from controlplane.publishing.replay_publish import HeldRecords, ReplayOutcome
from controlplane.publishing.rewind_selection import ended_later
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.segments.marking import SegmentSelection, lock_intervals, mark_unused, mark_used
from controlplane.segments.models import Removal, Segment
from ingestion.specs import offsets
from ingestion.specs.messages import protocol
from ingestion.specs.messages.protocol import PublishRequest, Refusal

State = RewindPart.State
_COUNT_NOT_REPLAYED = """
    UPDATE publishing_indexerfence f SET replayed = f.replayed - m.records FROM (
        SELECT f.id, n.records FROM publishing_indexerfence f JOIN (
            SELECT p.fence_id, count(*) AS records FROM quarantine_quarantinedrecord q
            JOIN publishing_publish p ON p.id = q.publish_id WHERE q.id = ANY(%s) GROUP BY p.fence_id
        ) n ON n.fence_id = f.id ORDER BY f.id FOR UPDATE OF f
    ) m WHERE m.id = f.id
"""


def publish_part(publication: Publication, source: int, request: PublishRequest, read: dict[int, Ranges]) -> list[str]:
    """Swap a part, in the caller's transaction. ``read``: which offsets the publish ends. Of a dry run it is
    noted what would be stored, and nothing is replaced.

    Raises ``PublishRefused`` (changed) where the part does not wait or its segments are not in use any more, and
    ``InvalidInput`` for other records than the part's, and for some that Kafka has lost.
    """
    fence = publication.fence
    part = _waiting_part(fence.task_id)
    _check_read(part, request, read)
    if part.rewind.dry_run:
        rows = sum(f.rows for f in request.segments)
        _update(part, state=State.READ, rows_after=rows, after=_counted(request, 0), reason="", ended_at=fence.at)
        return []
    datasource = Datasource.objects.get(pk=fence.datasource)
    held = HeldRecords.locked(source, fence.task_id, read)
    outcome = _outcome(held, request)
    outcome.conclude(fence.task_id, request.publish_id, fence.at)
    new_spans = {(f.interval_start, f.interval_end) for f in request.segments}
    lock_intervals(datasource, sorted({*new_spans, *_spans(part.taken)}))
    what = f"rewind {part.rewind_id}: its records were read again"
    taken = mark_unused(datasource, SegmentSelection(ids=frozenset(part.taken)), by=part.rewind.by, what=what)
    if taken.segments != len(part.taken):
        missing = len(part.taken) - taken.segments
        raise _changed(f"{missing} of the segments that are to be replaced were merged or removed meanwhile.")
    made = publication.register()
    again = set(outcome.still_bad)
    _update(
        part,
        state=State.DONE,
        made=[uuid.UUID(one) for one in made],
        publish_id=request.publish_id,
        removal=_rewound(part.taken),
        rows_before=taken.rows,
        rows_after=sum(f.rows for f in request.segments),
        after=_counted(request, len(again)),
        retired=part.before,
        held={"out": [*outcome.stored, *outcome.thrown_away], "again": sorted(again)},
        reason="",
        ended_at=fence.at,
    )
    return made


def is_dry_run(task_id: str) -> bool:
    """Whether a rewind's task stores nothing."""
    return RewindPart.objects.filter(task_id=task_id, rewind__dry_run=True).exists()


def new_quarantined(source: int, task_id: str, request: PublishRequest) -> list[protocol.QuarantinedRecord]:
    """Those of the publish's quarantined records that the task had not taken from the quarantine."""
    held = QuarantinedRecord.objects.filter(source=source, replay_id=task_id)
    known = set(held.values_list("partition", "offset"))
    return [q for q in request.quarantined if (q.partition, q.offset) not in known]


@transaction.atomic
def undo_part(part_id: int, by: str) -> None:
    """Swap the segments back. Raises ``Conflict`` where the part is not done; where one of its new segments was merged,
    removed or overwritten since; where an old one's file is gone; and where records of it were read again since.
    """
    part = RewindPart.objects.select_for_update(of=("self",)).select_related("rewind__datasource").get(pk=part_id)
    publish_id, done_at = part.publish_id, part.ended_at
    if part.state != State.DONE or publish_id is None or done_at is None:
        raise Conflict(f"Part {part.number} is {part.get_state_display()}: there is nothing to undo.")
    datasource = part.rewind.datasource
    _check_not_read_since(part, done_at)
    _return_records(part, publish_id)
    lock_intervals(datasource, sorted(_spans([*part.taken, *part.made])))
    what = f"rewind {part.rewind_id} was undone"
    out = mark_unused(datasource, SegmentSelection(ids=frozenset(part.made)), by=by, what=what)
    if out.segments != len(part.made):
        raise Conflict(
            f"Part {part.number} can't be undone: {len(part.made) - out.segments} of its {len(part.made)} new segments "
            "were merged or removed since. Rewind the same records again with the spec that you want."
        )
    _rewound(part.made)
    if part.removal is not None:
        Removal.objects.filter(pk=part.removal).update(rewound=False)
    back = mark_used(datasource, SegmentSelection(ids=frozenset(part.taken)))
    if back.segments != len(part.taken):
        raise Conflict(
            f"Part {part.number} can't be undone: {len(part.taken) - back.segments} of its {len(part.taken)} old "
            "segments were deleted since, or their interval was overwritten."
        )
    Receipt.objects.filter(publish_id=publish_id, created_at=done_at).delete()
    _update(part, state=State.UNDONE, retired=part.after, ended_at=timezone.now())


def _check_not_read_since(part: RewindPart, since: datetime) -> None:
    """A replay, a reset or another rewind may have stored some of the records once more: they would be there twice."""
    keys = dict(ProgressKey.objects.filter(source=part.rewind.source_id).values_list("partition", "pk"))
    again = sum(
        offsets.count(
            offsets.subtracted(ranges, offsets.subtracted(ranges, ended_later(keys[partition], since, ranges)))
        )
        for partition, ranges in part.wanted.items()
    )
    if again:
        raise Conflict(
            f"Part {part.number} can't be undone: {again:,} of its records were read again since, by a replay, after a "
            "reset, or by another rewind."
        )


def _return_records(part: RewindPart, publish_id: uuid.UUID) -> None:
    """What the part took out of the quarantine is there again, and what it put there is not."""
    again, out = part.held.get("again", []), part.held.get("out", [])
    records = QuarantinedRecord.objects.select_for_update().filter(publish_id=publish_id)
    put_there = list(records.exclude(pk__in=again).order_by("pk"))
    busy = [r for r in put_there if r.state != QuarantinedRecord.State.KEPT]
    if busy:
        raise Conflict(
            f"Part {part.number} can't be undone: {len(busy)} of the records that it has put into quarantine are being "
            "replayed, or were produced again."
        )
    QuarantinedRecord.objects.filter(pk__in=[r.pk for r in put_there]).delete()
    with cursor() as c:
        c.execute(_COUNT_NOT_REPLAYED, (out,))
    QuarantinedRecord.objects.filter(pk__in=out).update(state=QuarantinedRecord.State.KEPT, replay_id="", ended_at=None)


def _waiting_part(task_id: str) -> RewindPart:
    parts = RewindPart.objects.select_for_update(of=("self",)).select_related("rewind")
    part = parts.filter(task_id=task_id, state=State.WAITING).first()
    if part is None:
        raise _changed("This part of the rewind is done, was cancelled, or another task reads it.")
    return part


def _check_read(part: RewindPart, request: PublishRequest, read: dict[int, Ranges]) -> None:
    """All of the part's offsets, and each has still a record."""
    wanted = part.wanted
    if read != wanted:
        missing = sum(offsets.count(offsets.subtracted(some, read.get(p, []))) for p, some in wanted.items())
        raise InvalidInput(
            f"A part of a rewind is published whole: {missing:,} of its records are not in this publish."
        )
    lost = sum(offsets.count([*o.gap, *o.empty, *o.skipped]) for o in request.outcomes.values())
    if lost:
        raise InvalidInput(
            f"{lost:,} of {part.records:,} records are no longer in Kafka: retention or log compaction has removed "
            "them. Their rows would be lost, so nothing was changed."
        )


def _outcome(held: HeldRecords, request: PublishRequest) -> ReplayOutcome:
    """What became of the records that the task had taken from the quarantine."""
    bad = {(q.partition, q.offset): (q.reason, q.error) for q in request.quarantined}
    still_bad = {number: bad[place] for place, number in held.numbers.items() if place in bad}
    thrown = [
        number
        for (partition, offset), number in held.numbers.items()
        if any(low <= offset < high for low, high in _thrown_away(request, partition))
    ]
    stored = sorted({*held.numbers.values()} - {*still_bad} - {*thrown})
    return ReplayOutcome(stored, thrown, still_bad)


def _thrown_away(request: PublishRequest, partition: int) -> Ranges:
    return request.outcomes[partition].thrown_away if partition in request.outcomes else []


def _counted(request: PublishRequest, again: int) -> dict[str, int]:
    """What an undo takes away: all that the publish has counted, but for what is in quarantine as before."""
    counters = {name: count for name, count in request.counters if count}
    for name in ("polled", "unparseable", "quarantined") if again else ():
        counters[name] = counters.get(name, 0) - again
    return {name: count for name, count in counters.items() if count}


def _spans(ids: Iterable[uuid.UUID]) -> set[tuple[datetime, datetime]]:
    return set(Segment.objects.filter(pk__in=list(ids)).values_list("interval_start", "interval_end"))


def _rewound(ids: Iterable[uuid.UUID]) -> int | None:
    """Nobody may put these into use again, segment by segment. Their removal's id."""
    removal = Segment.objects.filter(pk__in=list(ids)).values_list("removal_id", flat=True).first()
    if removal is not None:
        Removal.objects.filter(pk=removal).update(rewound=True)
    return removal


def _update(part: RewindPart, **fields: object) -> None:
    RewindPart.objects.filter(pk=part.pk).update(**fields)


def _changed(detail: str) -> PublishRefused:
    return PublishRefused(Refusal(code="changed", detail=detail))
