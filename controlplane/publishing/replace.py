"""The replace: segments that were read become unused and those made of them used, in one transaction.

What is appended to the interval meanwhile is not touched: it has segments of its own. A record's receipts go on naming
the segment that it was first written in; from there the replacement leads to the one that holds its row now.

Locks are taken in the order of a publish: whoever calls holds what stands for its fence; then the interval's row; then
the segments' rows, which nobody changes who does not hold the interval's.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F

from controlplane.common.database import clock
from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.partitioned_intervals import mark_partitioned
from controlplane.publishing.publication import NewSegments, check_paths, check_times
from controlplane.segments.models import Interval, Replacement, Segment, SegmentSchema, columns_json
from ingestion.specs.messages.compaction import ReplaceRequest
from ingestion.specs.messages.protocol import Refusal


@dataclass(frozen=True)
class ReplaceTarget:
    """Whose segments are replaced, of which interval, by whom; whether rows may have become fewer; and how they were
    dealt out, if they were.
    """

    datasource: Datasource
    interval_start: datetime
    interval_end: datetime
    task_id: str
    rollup: bool
    partitioned_by: str = ""


def prepare_replace(target: ReplaceTarget, request: ReplaceRequest) -> None:
    """What comes before ``replace``, in no transaction: whoever has the same new schema does not wait for it.

    Raises ``InvalidInput`` for what will never be taken: rows that do not add up, another interval, a file elsewhere.
    """
    _check(target, request)
    check_paths(target.datasource.name, request.segments)
    for columns, extents in {(tuple(f.columns), f.extents) for f in request.segments}:
        SegmentSchema.of(target.datasource, columns_json(columns), extents)


def replace(target: ReplaceTarget, request: ReplaceRequest) -> list[uuid.UUID]:
    """The ids of the new segments, in the order of the request. Sent again, it answers as the first time.

    Raises ``PublishRefused`` (changed): what was read is not what there is any more, plan anew.
    """
    with transaction.atomic():
        interval = _locked_interval(target)
        earlier = committed_ids(request.replace_id)
        if earlier is not None:
            return earlier
        read = _locked_segments(target, request)
        source, now = target.datasource, clock()
        new = NewSegments(source.pk, source.name, interval.version, target.task_id, now, request.segments)
        new_segments = new.insert()
        _mark_unused(interval, read, request.replace_id, now)
        span = target.interval_start, target.interval_end
        mark_partitioned(source.pk, target.partitioned_by, {span: len(new_segments)})
        _record_replacement(target, request, read, new_segments, now)
        return new_segments


def committed_ids(replacement: uuid.UUID) -> list[uuid.UUID] | None:
    """What was answered when this replace committed; None if it has not."""
    return Replacement.objects.filter(pk=replacement).values_list("made", flat=True).first()


def _check(target: ReplaceTarget, request: ReplaceRequest) -> None:
    before, after = sum(request.read.values()), sum(f.rows for f in request.segments)
    if after > before or (not target.rollup and after != before):
        raise InvalidInput(f"The rows do not add up: {before} were read, {after} written.")
    wrong = {name: sums for name, sums in request.counted.items() if sums[0] != sums[1]}
    if wrong:
        raise InvalidInput(f"The sums of counts do not add up: {wrong}.")
    for file in request.segments:
        if (file.interval_start, file.interval_end) != (target.interval_start, target.interval_end):
            raise InvalidInput(f"{file.path} is of another interval.")
    check_times(request.segments)


def _locked_interval(target: ReplaceTarget) -> Interval:
    """Under this lock a publish, too, hands out partition numbers and adds to the sums."""
    interval = (
        Interval.objects.select_for_update()
        .filter(datasource=target.datasource, start=target.interval_start, end=target.interval_end)
        .first()
    )
    if interval is None:
        raise _changed_refusal("There is no such interval.")
    return interval


def _locked_segments(target: ReplaceTarget, request: ReplaceRequest) -> list[Segment]:
    used = Segment.objects.select_for_update(of=["self"]).filter(
        pk__in=request.read, datasource=target.datasource, used=True, interval_start=target.interval_start
    )
    segments = list(used.filter(interval_end=target.interval_end).order_by("pk"))
    if len(segments) != len(request.read):
        raise _changed_refusal(
            f"{len(request.read) - len(segments)} of the segments that were read are not in use any more."
        )
    for segment in segments:
        if segment.rows != request.read[segment.pk]:
            raise InvalidInput(f"{segment.path} has {segment.rows} rows, and {request.read[segment.pk]} were read.")
    return segments


def _changed_refusal(detail: str) -> PublishRefused:
    return PublishRefused(Refusal(code="changed", detail=detail))


def _mark_unused(interval: Interval, read: Sequence[Segment], replacement: uuid.UUID, now: datetime) -> None:
    """The rows' first and last time stay what they are: a row keeps its time."""
    Segment.objects.filter(pk__in=[s.pk for s in read]).update(used=False, unused_at=now, replaced_by=replacement)
    Interval.objects.filter(pk=interval.pk).update(
        segments=F("segments") - len(read),
        rows=F("rows") - sum(s.rows for s in read),
        size_bytes=F("size_bytes") - sum(s.size_bytes for s in read),
    )


def _record_replacement(
    target: ReplaceTarget,
    request: ReplaceRequest,
    read: Sequence[Segment],
    new_segments: list[uuid.UUID],
    now: datetime,
) -> None:
    Replacement.objects.create(
        pk=request.replace_id,
        datasource=target.datasource,
        interval_start=target.interval_start,
        interval_end=target.interval_end,
        task_id=target.task_id,
        taken=[s.pk for s in read],
        made=new_segments,
        rows_before=sum(s.rows for s in read),
        rows_after=sum(f.rows for f in request.segments),
        bytes_before=sum(s.size_bytes for s in read),
        bytes_after=sum(f.size_bytes for f in request.segments),
        created_at=now,
    )
