"""What a batch task has written becomes visible, all at once; what it overwrites goes in the same transaction.

Appending takes the next partition numbers of each interval, as a stream's publish does. Else each interval that gets
rows gets a new version, higher than any that was there, and with ``dropExisting`` the spec's intervals too: all
segments in use there are marked unused, whoever wrote them, also what a stream has appended since the task began.
Segments of an interval that reaches beyond what is overwritten can't be replaced in part: the publish is refused then.

A task that reads segments of the datasource that it writes to takes the place of those that it has read, by name, as a
merge does: what is appended meanwhile stays, and when one of them is no longer in use the publish is refused.

Receipts stay as they are: a record whose segment was overwritten has ended and is not read again; its fate names the
task. Locks are taken in the order of a publish: the fence's row; then the intervals' rows, by time; then the segments'.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from controlplane.common.database import clock, cursor
from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource, append_version
from controlplane.publishing.fence import PublishRefused, lock_fence
from controlplane.publishing.publication import Publication, check_counters, check_times, keep_schemas
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.quarantine.superseding import supersede
from controlplane.segments.marking import Chosen, mark_unused
from controlplane.segments.models import Interval, Segment
from ingestion.specs.causes import cause_of
from ingestion.specs.messages.batch_protocol import MOST_COLUMNS, BatchPublishAnswer, BatchPublishRequest, FileRecord
from ingestion.specs.messages.protocol import Refusal

MOST_INPUTS = 20_000  # segments that a task reads
Span = tuple[datetime, datetime]
_MILLISECOND = timedelta(milliseconds=1)
_PARTITIONED = """
    UPDATE segments_interval i SET partitioned_by = %(by)s, partitioned_revision = revision
    FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[], %(files)s::int8[]) AS w(start, stop, n)
    WHERE i.datasource_id = %(datasource)s AND i.start = w.start AND i."end" = w.stop AND i.segments = w.n
"""
_TOUCHED = """
    SELECT i.id, i.start, i."end", i.version, i.segments FROM segments_interval i WHERE i.id IN (
        SELECT o.id FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS w(start, stop)
        JOIN segments_interval o ON tstzrange(o.start, o."end") && tstzrange(w.start, w.stop)
        WHERE o.datasource_id = %(datasource)s
    ) ORDER BY i.start, i."end" FOR UPDATE OF i
"""


@dataclass(frozen=True)
class BatchPlace:
    """Who writes where, and what of it is overwritten: nothing where it appends; where it re-indexes, what was read."""

    task_id: str
    datasource: Datasource
    appends: bool
    drops: tuple[Span, ...] = ()  # with dropExisting, what the spec names
    reindexes: bool = False
    partitioned_by: str = ""  # how it has dealt out the rows of an interval; empty where it has not


@dataclass(frozen=True)
class _Touched:
    id: int
    span: Span
    version: str
    segments: int


def prepare_batch(place: BatchPlace, request: BatchPublishRequest) -> None:
    """What comes before ``publish_batch``, in no transaction: whoever has the same new schema does not wait for it.

    Raises ``InvalidInput``.
    """
    _check(request)
    keep_schemas(place.task_id, 0, request.segments)


def publish_batch(place: BatchPlace, request: BatchPublishRequest) -> BatchPublishAnswer:
    """Register and overwrite. In a transaction, in which the caller ends the task: so it is done once.

    Raises ``PublishRefused`` (fenced, changed) and ``InvalidInput``; the caller's transaction must not commit then.
    """
    fence = lock_fence(place.task_id, 0, request.epoch)
    spans = sorted({(f.interval_start, f.interval_end) for f in request.segments})
    left = request.quarantined
    if place.reindexes:
        version, replaced = _reindexed(place, spans, frozenset(request.read))
    elif place.appends:
        version, replaced = append_version(place.datasource.created_at), 0
    else:
        left = supersede(place.task_id, place.datasource, left)
        version, replaced = _overwritten(place, spans)
    fence = replace(fence, version=version, at=clock())
    made = Publication(request.publish_id, fence, request.segments, request.counters).register()
    _note_partitions(place, request)
    _keep_quarantined(place, request.publish_id, left)
    return BatchPublishAnswer(segment_ids=made, replaced=replaced)


def _note_partitions(place: BatchPlace, request: BatchPublishRequest) -> None:
    """Of intervals that have no other segments than its own. Their rows are locked."""
    if not place.partitioned_by:
        return
    files = Counter((f.interval_start, f.interval_end) for f in request.segments)
    starts, ends = [start for start, _ in files], [end for _, end in files]
    given = {"by": place.partitioned_by, "datasource": place.datasource.pk, "files": list(files.values())}
    with cursor() as c:
        c.execute(_PARTITIONED, {**given, "starts": starts, "ends": ends})


def _keep_quarantined(place: BatchPlace, publish_id: UUID, left: Sequence[FileRecord]) -> None:
    """Once, as the publish is, however often Spark has read them."""
    now = timezone.now()
    QuarantinedRecord.objects.bulk_create(
        (
            QuarantinedRecord(
                place=record.place,
                datasource=place.datasource,
                task_id=place.task_id,
                partition=0,
                offset=record.position,
                delivery_count=0,
                reason=record.reason,
                error=record.error,
                cause=cause_of(record.reason, record.error).fingerprint,
                payload=record.payload,
                cut=record.cut,
                file_header=record.header,
                publish_id=publish_id,
                created_at=now,
            )
            for record in left
        ),
        batch_size=1_000,
    )


def _check(request: BatchPublishRequest) -> None:
    said, files = request.counters, request.segments
    check_counters({"published": (said.published, sum(f.rows for f in files))}, "segments")
    if not said.quarantined == len(request.quarantined) <= said.unparseable:
        raise InvalidInput(
            f"The counters say {said.quarantined} quarantined of {said.unparseable} unparseable records, and "
            f"{len(request.quarantined)} came."
        )
    if sum(len(f.columns) for f in files) > MOST_COLUMNS:
        raise InvalidInput(f"The segments have more than {MOST_COLUMNS:,} columns in all.")
    check_times(files)
    ends = sorted({(f.interval_start, f.interval_end) for f in files})
    if any(before[1] > after[0] for before, after in pairwise(ends)):
        raise InvalidInput("Intervals of the segments overlap.")


def _overwritten(place: BatchPlace, spans: Sequence[Span]) -> tuple[str, int]:
    """Mark unused what is in the way; the version of what comes, and how many segments that were."""
    covered = _merged([*spans, *place.drops])
    touched = _locked(place.datasource, covered)
    gone = [t for t in touched if any(low <= t.span[0] and t.span[1] <= high for low, high in covered)]
    kept = [t for t in touched if t not in gone and t.segments and _meets(t.span, spans)]
    if kept:
        start, end = (f"{t:%Y-%m-%dT%H:%M:%SZ}" for t in kept[0].span)
        raise PublishRefused(
            Refusal(
                code="changed",
                detail=f"There are segments of {start}/{end}, which reaches beyond what the task overwrites. A "
                "segment cannot be replaced in part. Use a segmentGranularity as long as that, or appendToExisting.",
            )
        )
    version = _next_version([t.version for t in touched])
    amount = mark_unused(
        place.datasource,
        Chosen(intervals=tuple(t.span for t in gone if t.segments)),
        by=f"task {place.task_id}",
        what="overwritten by the task",
    )
    Interval.objects.filter(pk__in=[t.id for t in gone]).update(version=version, revision=F("revision") + 1)
    return version, amount.segments


def _reindexed(place: BatchPlace, spans: Sequence[Span], read: frozenset[UUID]) -> tuple[str, int]:
    """Mark unused what was read; the version of what comes, and how many segments that were."""
    held = Segment.objects.filter(datasource=place.datasource, pk__in=read)
    places = set(held.values_list("interval_start", "interval_end"))
    touched = _locked(place.datasource, _merged([*spans, *places]))
    amount = mark_unused(place.datasource, Chosen(ids=read), by=f"task {place.task_id}", what="re-indexed by the task")
    if amount.segments != len(read):
        gone = len(read) - amount.segments
        raise PublishRefused(Refusal(code="changed", detail=f"{gone} of the segments that were read are unused now."))
    version = _next_version([t.version for t in touched])
    mine = [t.id for t in touched if t.span in places or t.span in spans]
    Interval.objects.filter(pk__in=mine).update(version=version, revision=F("revision") + 1)
    return version, amount.segments


def in_use(datasource: Datasource, span: Span) -> list[Segment]:
    """Its segments that have rows in the span, by time; ``MOST_INPUTS`` and one more at most."""
    found = Segment.objects.filter(datasource=datasource, used=True, min_time__lt=span[1], max_time__gte=span[0])
    return list(found.order_by("interval_start", "interval_end", "partition_num")[: MOST_INPUTS + 1])


def _locked(datasource: Datasource, spans: Sequence[Span]) -> list[_Touched]:
    """The intervals that one of these touches. Their rows are locked from here on."""
    starts, ends = [s for s, _ in spans], [e for _, e in spans]
    with cursor() as c:
        rows = c.execute(_TOUCHED, {"datasource": datasource.pk, "starts": starts, "ends": ends}).fetchall()
    return [_Touched(pk, (start, end), version, segments) for pk, start, end, version, segments in rows]


def _meets(span: Span, others: Sequence[Span]) -> bool:
    return any(low < span[1] and span[0] < high for low, high in others)


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _next_version(versions: Sequence[str]) -> str:
    """Higher than all of these, whatever this machine's clock says."""
    highest = max(versions, default="")
    now = append_version(timezone.now())
    if now > highest:
        return now
    return append_version(datetime.fromisoformat(highest).astimezone(UTC) + _MILLISECOND)
