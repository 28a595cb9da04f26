"""The transaction of a rewind's part: its old segments become unused, those of its publishes used, or nothing changes.

A part may need several publishes (``rewind_pieces``): the one that reads the last of its records is this transaction.

The offsets are settled, and stay so. What makes it once is the state of the part, whose row is locked behind the
fence's, and that all old segments are still in use. Locks are taken in the order of a publish: the fence; the part; its
quarantined records; all intervals of old and new segments, by time; the segments.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from controlplane.common.database import cursor
from controlplane.common.errors import Conflict
from controlplane.datasources.models import Datasource
from controlplane.publishing.fence import LockedSource, PublishRefused
from controlplane.publishing.models import ProgressKey, Receipt, RewindPart, ranges_by_partition
from controlplane.publishing.postgres_ranges import Ranges
from controlplane.publishing.publication import Publication
from controlplane.publishing.replay_publish import HeldRecords
from controlplane.publishing.rewind_changes import changed_columns
from controlplane.publishing.rewind_pieces import Piece, drop, held_pieces, hold, unread
from controlplane.publishing.rewind_selection import ended_later
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.segments.marking import SegmentSelection, lock_intervals, mark_unused, mark_used
from controlplane.segments.models import Removal, Segment
from ingestion.specs import offsets
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


def publish_part(
    publication: Publication, source: LockedSource, request: PublishRequest, read: dict[int, Ranges]
) -> list[str]:
    """Swap a part, in the caller's transaction, if this publish is the last of it; else keep it until that comes.
    ``read``: which offsets it ends. Of a dry run it is noted what would be stored, and nothing is replaced.

    Raises ``PublishRefused`` (changed) where the part does not wait or its segments are not in use any more, and
    ``Conflict`` for other records than the part's, and for some that Kafka has lost.
    """
    fence = publication.fence
    part = _waiting_part(fence.task_id)
    earlier = list(part.pieces.defer("request"))
    left = unread(part, earlier)
    now, later = left[part.reading], left[: part.reading] + left[part.reading + 1 :]
    _check_read(request, read, now)
    piece = Piece(publication, source, request, read)
    if any(later) or any(offsets.subtracted(some, read.get(p, [])) for p, some in now.items()):
        hold(part, piece)
        return []
    if part.rewind.dry_run:
        rows = sum(p.rows for p in earlier) + sum(f.rows for f in request.segments)
        every = [*held_pieces(part, fence.at), piece]
        after: Counter[str] = Counter()
        for one in every:
            after.update(one.counted(0))
        stored = next((one.request.columns_before for one in every if one.request.columns_before), [])
        would_be = [column for one in every for column in one.request.columns_after]
        changes = changed_columns(stored, would_be) if part.taken else {}
        _update(part, state=State.READ, rows_after=rows, after=after, changes=changes, reason="", ended_at=fence.at)
        drop(part.pieces.all())
        return []
    made = _swap(part, [*held_pieces(part, fence.at), piece], fence.at)
    drop(part.pieces.all())
    return made[piece.publication.id]


def _swap(part: RewindPart, pieces: Sequence[Piece], at: datetime) -> dict[uuid.UUID, list[str]]:
    """All of these become visible, and the part's old segments unused. The ids of new segments, by publish."""
    datasource = Datasource.objects.get(pk=part.rewind.datasource_id)
    held = HeldRecords.locked(part.rewind.source_id, part.task_id, part.wanted)
    outcomes = [piece.outcome(held) for piece in pieces]
    new_spans = {(f.interval_start, f.interval_end) for piece in pieces for f in piece.request.segments}
    lock_intervals(datasource, sorted({*new_spans, *_spans(part.taken)}))
    what = f"rewind {part.rewind_id}: its records were read again"
    taken = mark_unused(datasource, SegmentSelection(ids=frozenset(part.taken)), by=part.rewind.by, what=what)
    if taken.segments != len(part.taken):
        missing = len(part.taken) - taken.segments
        raise _changed(f"{missing} of the segments that are to be replaced were merged or removed meanwhile.")
    made: dict[uuid.UUID, list[str]] = {}
    after: Counter[str] = Counter()
    for piece, outcome in zip(pieces, outcomes, strict=True):
        outcome.conclude(piece.publication.fence.task_id, piece.publication.id, at)
        made[piece.publication.id] = piece.register(held)
        after.update(piece.counted(len(outcome.still_bad)))
    again = sorted(number for o in outcomes for number in o.still_bad)
    tasks = {piece.publication.fence.task_id for piece in pieces}  # by which they are found without a scan
    put = QuarantinedRecord.objects.filter(task_id__in=tasks, publish_id__in=made).exclude(pk__in=again)
    _update(
        part,
        state=State.DONE,
        made=[uuid.UUID(one) for some in made.values() for one in some],
        publish_ids=[*made],
        removal=_rewound(part.taken),
        rows_before=taken.rows,
        rows_after=sum(f.rows for piece in pieces for f in piece.request.segments),
        after=after,
        retired=part.before,
        held={
            "out": [number for o in outcomes for number in (*o.stored, *o.thrown_away)],
            "again": again,
            "put": sorted(put.values_list("pk", flat=True)),
        },
        reason="",
        ended_at=at,
    )
    return made


def compared_files(task_id: str) -> list[str]:
    """Of a dry run's task, the files that its part would replace; none once a publish has told of their columns."""
    part = RewindPart.objects.filter(task_id=task_id, rewind__dry_run=True, pieces=None).first()
    return [] if part is None else list(Segment.objects.filter(pk__in=part.taken).values_list("path", flat=True))


def is_dry_run(task_id: str) -> bool:
    """Whether a rewind's task stores nothing."""
    return RewindPart.objects.filter(task_id=task_id, rewind__dry_run=True).exists()


@transaction.atomic
def undo_part(part_id: int, by: str) -> None:
    """Swap the segments back. Raises ``Conflict`` where the part is not done; where one of its new segments was merged,
    removed or overwritten since; where an old one's file is gone; and where records of it were read again since.
    """
    part = RewindPart.objects.select_for_update(of=("self",)).select_related("rewind__datasource").get(pk=part_id)
    done_at = part.ended_at
    if part.state != State.DONE or done_at is None:
        raise Conflict(f"Part {part.number} is {part.get_state_display()}: there is nothing to undo.")
    datasource = part.rewind.datasource
    _check_not_read_since(part, done_at)
    _return_records(part)
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
    Receipt.objects.filter(publish_id__in=part.publish_ids, created_at=done_at).delete()
    _update(part, state=State.UNDONE, retired=part.after, ended_at=timezone.now())


def _check_not_read_since(part: RewindPart, since: datetime) -> None:
    """A replay, a reset or another rewind may have stored some of the records once more: they would be there twice."""
    again = 0
    for reading in part.readings:
        keys = dict(ProgressKey.objects.filter(source=reading["source"]).values_list("partition", "pk"))
        for partition, ranges in ranges_by_partition(reading["ranges"]).items():
            others = offsets.subtracted(ranges, ended_later(keys[partition], since, ranges))
            again += offsets.count(ranges) - offsets.count(others)
    if again:
        raise Conflict(
            f"Part {part.number} can't be undone: {again:,} of its records were read again since, by a replay, after a "
            "reset, or by another rewind."
        )


def _return_records(part: RewindPart) -> None:
    """What the part took out of the quarantine is there again, and what it put there is not."""
    again, out = part.held.get("again", []), part.held.get("out", [])
    # By their numbers: another rewind that found one still bad, and was undone, is its publish now. Parts of an older
    # version have no numbers.
    put = part.held.get("put")
    put_by = {"publish_id__in": part.publish_ids} if put is None else {"pk__in": put}
    records = QuarantinedRecord.objects.select_for_update().filter(**put_by)
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


def _check_read(request: PublishRequest, read: dict[int, Ranges], left: dict[int, Ranges]) -> None:
    """Some of the part's offsets which no earlier publish of it has read, and each has still a record."""
    others = sum(offsets.count(offsets.subtracted(some, left.get(p, []))) for p, some in read.items())
    if others or not read:
        raise Conflict(f"{others:,} of these records are not the part's, or were read for it before.")
    lost = sum(offsets.count([*o.gap, *o.empty, *o.skipped]) for o in request.outcomes.values())
    if lost:
        raise Conflict(
            f"{lost:,} of {sum(map(offsets.count, read.values())):,} records are no longer in Kafka: retention or log "
            "compaction has removed them. Their rows would be lost, so nothing was changed."
        )


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
