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
from controlplane.segments.models import Interval, Replacement, Segment, SegmentSchema, plain
from ingestion.specs.messages.compaction import ReplaceRequest
from ingestion.specs.messages.protocol import Refusal, SegmentFile


@dataclass(frozen=True)
class Place:
    """Whose segments are replaced, of which interval, by whom; whether rows may have become fewer; and how they were
    dealt out, if they were.
    """

    datasource: Datasource
    interval_start: datetime
    interval_end: datetime
    task_id: str
    rollup: bool
    partitioned_by: str = ""


def prepare(place: Place, request: ReplaceRequest) -> None:
    """What comes before ``replace``, in no transaction: whoever has the same new schema does not wait for it.

    Raises ``InvalidInput`` for what will never be taken: rows that do not add up, another interval, a file elsewhere.
    """
    _check(place, request)
    for columns, extents in {(tuple(f.columns), f.extents) for f in request.segments}:
        SegmentSchema.of(place.datasource, plain(columns), extents)


def replace(place: Place, request: ReplaceRequest) -> list[uuid.UUID]:
    """The ids of the new segments, in the order of the request. Sent again, it answers as the first time.

    Raises ``PublishRefused`` (changed): what was read is not what there is any more, plan anew.
    """
    with transaction.atomic():
        interval = _locked_interval(place)
        done = answered(request.replace_id)
        if done is not None:
            return done
        read = _locked_segments(place, request)
        now = clock()
        made = _register(place, interval, request.segments, now)
        _retire(read, request.replace_id, now)
        _count(interval, read, made)
        if place.partitioned_by:
            _note_partitions(interval, place.partitioned_by, len(made))
        _keep(place, request.replace_id, read, made, now)
        return [s.pk for s in made]


def answered(replacement: uuid.UUID) -> list[uuid.UUID] | None:
    """What was answered when this replace committed; None if it has not."""
    return Replacement.objects.filter(pk=replacement).values_list("made", flat=True).first()


def _check(place: Place, request: ReplaceRequest) -> None:
    before, after = sum(request.read.values()), sum(f.rows for f in request.segments)
    if after > before or (not place.rollup and after != before):
        raise InvalidInput(f"The rows do not add up: {before} were read, {after} written.")
    wrong = {name: sums for name, sums in request.counted.items() if sums[0] != sums[1]}
    if wrong:
        raise InvalidInput(f"The sums of counts do not add up: {wrong}.")
    interval = (place.interval_start, place.interval_end)
    folder = f"{place.datasource.name}/"
    for file in request.segments:
        if (file.interval_start, file.interval_end) != interval or file.offsets:
            raise InvalidInput(f"{file.path} is of another interval, or names offsets.")
        if not interval[0] <= file.min_time <= file.max_time < interval[1]:
            raise InvalidInput(f"{file.path} has rows outside of its interval.")
        if not file.path.startswith(folder) or "\0" in file.path or {"", ".", ".."} & set(file.path.split("/")):
            raise InvalidInput(f"{file.path!r} is not the path of a file in the folder {place.datasource.name}.")


def _locked_interval(place: Place) -> Interval:
    """Under this lock a publish, too, hands out partition numbers and adds to the sums."""
    interval = (
        Interval.objects.select_for_update()
        .filter(datasource=place.datasource, start=place.interval_start, end=place.interval_end)
        .first()
    )
    if interval is None:
        raise _changed("There is no such interval.")
    return interval


def _locked_segments(place: Place, request: ReplaceRequest) -> list[Segment]:
    used = Segment.objects.select_for_update(of=["self"]).filter(
        pk__in=request.read, datasource=place.datasource, used=True, interval_start=place.interval_start
    )
    found = list(used.filter(interval_end=place.interval_end).order_by("pk"))
    if len(found) != len(request.read):
        raise _changed(f"{len(request.read) - len(found)} of the segments that were read are not in use any more.")
    for segment in found:
        if segment.rows != request.read[segment.pk]:
            raise InvalidInput(f"{segment.path} has {segment.rows} rows, and {request.read[segment.pk]} were read.")
    return found


def _changed(detail: str) -> PublishRefused:
    return PublishRefused(Refusal(code="changed", detail=detail))


def _register(place: Place, interval: Interval, files: Sequence[SegmentFile], now: datetime) -> list[Segment]:
    return Segment.objects.bulk_create(
        Segment(
            datasource=place.datasource,
            interval_start=interval.start,
            interval_end=interval.end,
            version=interval.version,
            partition_num=interval.next_partition + number,
            rows=file.rows,
            size_bytes=file.size_bytes,
            sha256=file.sha256,
            path=file.path,
            min_time=file.min_time,
            max_time=file.max_time,
            schema=SegmentSchema.of(place.datasource, plain(file.columns), file.extents),
            task_id=place.task_id,
            created_at=now,
        )
        for number, file in enumerate(files)
    )


def _retire(read: Sequence[Segment], replacement: uuid.UUID, now: datetime) -> None:
    Segment.objects.filter(pk__in=[s.pk for s in read]).update(used=False, unused_at=now, replaced_by=replacement)


def _count(interval: Interval, read: Sequence[Segment], made: Sequence[Segment]) -> None:
    """The rows' first and last time stay what they are: a row keeps its time."""
    Interval.objects.filter(pk=interval.pk).update(
        next_partition=F("next_partition") + len(made),
        revision=F("revision") + 1,
        segments=F("segments") + len(made) - len(read),
        rows=F("rows") + sum(s.rows for s in made) - sum(s.rows for s in read),
        size_bytes=F("size_bytes") + sum(s.size_bytes for s in made) - sum(s.size_bytes for s in read),
    )


def _note_partitions(interval: Interval, by: str, made: int) -> None:
    """If it has no other segments than these."""
    alone = Interval.objects.filter(pk=interval.pk, segments=made)
    alone.update(partitioned_by=by, partitioned_revision=F("revision"))


def _keep(
    place: Place, replacement: uuid.UUID, read: Sequence[Segment], made: Sequence[Segment], now: datetime
) -> None:
    Replacement.objects.create(
        pk=replacement,
        datasource=place.datasource,
        interval_start=place.interval_start,
        interval_end=place.interval_end,
        task_id=place.task_id,
        taken=[s.pk for s in read],
        made=[s.pk for s in made],
        rows_before=sum(s.rows for s in read),
        rows_after=sum(s.rows for s in made),
        bytes_before=sum(s.size_bytes for s in read),
        bytes_after=sum(s.size_bytes for s in made),
        created_at=now,
    )
