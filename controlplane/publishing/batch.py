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
from controlplane.publishing.partitioned_intervals import mark_partitioned
from controlplane.publishing.publication import Publication, check_counters, check_times, store_schemas
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.quarantine.superseding import supersede
from controlplane.segments.marking import SegmentSelection, mark_unused
from controlplane.segments.models import Interval, Segment
from ingestion.specs.causes import cause_of
from ingestion.specs.messages.batch_protocol import MAX_COLUMNS, BatchPublishAnswer, BatchPublishRequest, FileRecord
from ingestion.specs.messages.protocol import Refusal

MAX_INPUTS = 20_000  # segments that a task reads
Span = tuple[datetime, datetime]
_MILLISECOND = timedelta(milliseconds=1)
_LOCK_INTERVALS = """
    SELECT i.id, i.start, i."end", i.version, i.segments FROM segments_interval i WHERE i.id IN (
        SELECT o.id FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS w(start, stop)
        JOIN segments_interval o ON tstzrange(o.start, o."end") && tstzrange(w.start, w.stop)
        WHERE o.datasource_id = %(datasource)s
    ) ORDER BY i.start, i."end" FOR UPDATE OF i
"""


@dataclass(frozen=True)
class BatchTarget:
    """Who writes where, and what of it is overwritten: nothing where it appends; where it re-indexes, what was read."""

    task_id: str
    datasource: Datasource
    appends: bool
    drops: tuple[Span, ...] = ()  # with dropExisting, what the spec names
    reindexes: bool = False
    partitioned_by: str = ""  # how it has dealt out the rows of an interval; empty where it has not


@dataclass(frozen=True)
class _LockedInterval:
    id: int
    span: Span
    version: str
    segments: int


def prepare_batch(target: BatchTarget, request: BatchPublishRequest) -> None:
    """What comes before ``publish_batch``, in no transaction: whoever has the same new schema does not wait for it.

    Raises ``InvalidInput``.
    """
    _check(request)
    store_schemas(target.task_id, 0, request.segments)


def publish_batch(target: BatchTarget, request: BatchPublishRequest) -> BatchPublishAnswer:
    """Register and overwrite. In a transaction, in which the caller ends the task: so it is done once.

    Raises ``PublishRefused`` (fenced, changed) and ``InvalidInput``; the caller's transaction must not commit then.
    """
    fence = lock_fence(target.task_id, 0, request.epoch)
    spans = sorted({(f.interval_start, f.interval_end) for f in request.segments})
    quarantined = request.quarantined
    if target.reindexes:
        version, replaced = _reindex(target, spans, frozenset(request.read))
    elif target.appends:
        version, replaced = append_version(target.datasource.created_at), 0
    else:
        quarantined = supersede(target.task_id, target.datasource, quarantined)
        version, replaced = _overwrite(target, spans)
    fence = replace(fence, version=version, at=clock())
    made = Publication(request.publish_id, fence, request.segments, request.counters).register()
    new_segments = Counter((f.interval_start, f.interval_end) for f in request.segments)
    mark_partitioned(target.datasource.pk, target.partitioned_by, new_segments)
    _insert_quarantined(target, request.publish_id, quarantined)
    return BatchPublishAnswer(segment_ids=made, replaced=replaced)


def _insert_quarantined(target: BatchTarget, publish_id: UUID, records: Sequence[FileRecord]) -> None:
    """Once, as the publish is, however often Spark has read them."""
    now = timezone.now()
    QuarantinedRecord.objects.bulk_create(
        (
            QuarantinedRecord(
                place=record.place,
                datasource=target.datasource,
                task_id=target.task_id,
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
            for record in records
        ),
        batch_size=1_000,
    )


def _check(request: BatchPublishRequest) -> None:
    counters, files = request.counters, request.segments
    check_counters({"published": (counters.published, sum(f.rows for f in files))}, "segments")
    if not counters.quarantined == len(request.quarantined) <= counters.unparseable:
        raise InvalidInput(
            f"The counters say {counters.quarantined} quarantined of {counters.unparseable} unparseable records, and "
            f"{len(request.quarantined)} came."
        )
    if sum(len(f.columns) for f in files) > MAX_COLUMNS:
        raise InvalidInput(f"The segments have more than {MAX_COLUMNS:,} columns in all.")
    check_times(files)
    ends = sorted({(f.interval_start, f.interval_end) for f in files})
    if any(before[1] > after[0] for before, after in pairwise(ends)):
        raise InvalidInput("Intervals of the segments overlap.")


def _overwrite(target: BatchTarget, spans: Sequence[Span]) -> tuple[str, int]:
    """Mark unused what is in the way; the version of what comes, and how many segments that were."""
    covered = _merge_spans([*spans, *target.drops])
    touched = _lock_intervals(target.datasource, covered)
    inside = [t for t in touched if any(low <= t.span[0] and t.span[1] <= high for low, high in covered)]
    partial = [t for t in touched if t not in inside and t.segments and _overlaps_any(t.span, spans)]
    if partial:
        start, end = (f"{t:%Y-%m-%dT%H:%M:%SZ}" for t in partial[0].span)
        raise PublishRefused(
            Refusal(
                code="changed",
                detail=f"There are segments of {start}/{end}, which reaches beyond what the task overwrites. A "
                "segment cannot be replaced in part. Use a segmentGranularity as long as that, or appendToExisting.",
            )
        )
    version = _next_version([t.version for t in touched])
    amount = mark_unused(
        target.datasource,
        SegmentSelection(intervals=tuple(t.span for t in inside if t.segments)),
        by=f"task {target.task_id}",
        what="overwritten by the task",
    )
    Interval.objects.filter(pk__in=[t.id for t in inside]).update(version=version, revision=F("revision") + 1)
    return version, amount.segments


def _reindex(target: BatchTarget, spans: Sequence[Span], read: frozenset[UUID]) -> tuple[str, int]:
    """Mark unused what was read; the version of what comes, and how many segments that were."""
    segments = Segment.objects.filter(datasource=target.datasource, pk__in=read)
    read_spans = set(segments.values_list("interval_start", "interval_end"))
    touched = _lock_intervals(target.datasource, _merge_spans([*spans, *read_spans]))
    amount = mark_unused(
        target.datasource, SegmentSelection(ids=read), by=f"task {target.task_id}", what="re-indexed by the task"
    )
    if amount.segments != len(read):
        missing = len(read) - amount.segments
        raise PublishRefused(
            Refusal(code="changed", detail=f"{missing} of the segments that were read are unused now.")
        )
    version = _next_version([t.version for t in touched])
    changed = [t.id for t in touched if t.span in read_spans or t.span in spans]
    Interval.objects.filter(pk__in=changed).update(version=version, revision=F("revision") + 1)
    return version, amount.segments


def segments_in_use(datasource: Datasource, span: Span) -> list[Segment]:
    """Its segments that have rows in the span, by time; ``MAX_INPUTS`` and one more at most."""
    segments = Segment.objects.filter(datasource=datasource, used=True, min_time__lt=span[1], max_time__gte=span[0])
    return list(segments.order_by("interval_start", "interval_end", "partition_num")[: MAX_INPUTS + 1])


def _lock_intervals(datasource: Datasource, spans: Sequence[Span]) -> list[_LockedInterval]:
    """The intervals that one of these touches. Their rows are locked from here on."""
    starts, ends = [s for s, _ in spans], [e for _, e in spans]
    with cursor() as c:
        rows = c.execute(_LOCK_INTERVALS, {"datasource": datasource.pk, "starts": starts, "ends": ends}).fetchall()
    return [_LockedInterval(pk, (start, end), version, segments) for pk, start, end, version, segments in rows]


def _overlaps_any(span: Span, others: Sequence[Span]) -> bool:
    return any(low < span[1] and span[0] < high for low, high in others)


def _merge_spans(spans: Sequence[Span]) -> list[Span]:
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
