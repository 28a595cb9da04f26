"""The publish transaction: segments and progress become visible together, or not at all.

Locks are always taken in this order: the indexer's row; (datasource, interval) rows, sorted; settled ranges, sorted.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from psycopg.types.json import Jsonb

from controlplane.common.errors import InvalidInput, Unavailable
from controlplane.datasources.models import Datasource
from controlplane.segments import settled
from controlplane.segments.fence import PublishRefused, add_totals, lock_writer
from controlplane.segments.models import Publish, QuarantinedRecord, Segment, Source, SourceEvent, Writer
from controlplane.segments.spans import Ranges, keys_of, span, spans
from ingestion.specs import offsets
from ingestion.specs.protocol import Counters, Outcomes, PublishAnswer, PublishRequest, Refusal, SegmentFile

_RETRIED = {"40001", "40P01", "23P01"}  # serialization, deadlock, and an overlap that arose since it was looked for
_ATTEMPTS = 5
Answer = TypeVar("Answer")


def publish(*, task_id: str, number: int, request: PublishRequest) -> PublishAnswer:
    """Register a batch. Sent again with the same id, it answers as the first time.

    Raises ``PublishRefused`` (fenced, duplicates, abandoned) and ``InvalidInput``; either way nothing was changed.
    """
    settling = _settling(request)
    _check_counters(request, settling)
    return _retried(lambda: _publish_once(task_id, number, request, settling))


def _retried(attempt: Callable[[], Answer]) -> Answer:
    for _ in range(_ATTEMPTS):
        try:
            return attempt()
        except DatabaseError as error:
            if getattr(error.__cause__, "sqlstate", None) not in _RETRIED:
                raise
            last = error
    raise Unavailable("The metadata store was too busy to publish; send the same publish again.") from last


@transaction.atomic
def _publish_once(task_id: str, number: int, request: PublishRequest, settling: dict[int, Ranges]) -> PublishAnswer:
    writer = lock_writer(task_id, number, request.epoch)
    seen = Publish.objects.filter(id=request.publish_id).first()
    if seen is not None:
        return _answer_again(seen)
    source = _source_of(writer, request)
    keys = keys_of(source, {*settling, *request.outcomes})
    duplicates = settled.settled_among(source, settling, keys)
    if duplicates:
        raise PublishRefused(
            Refusal(code="duplicates", detail="Some of these offsets are settled already.", duplicates=duplicates)
        )
    now = timezone.now()
    segments = _register_segments(writer.datasource, task_id, request.segments, now)
    _write_receipts(task_id, number, request, keys, segments, now)
    _keep_quarantined(source, task_id, request, now)
    _note_alarms(source, task_id, request)
    Publish.objects.create(
        id=request.publish_id,
        writer=writer,
        epoch=request.epoch,
        segment_ids=[str(s.id) for s in segments],
        created_at=now,
    )
    _count(writer, request.counters, segments)
    settled.settle(spans(keys, settling))
    return PublishAnswer(publish_id=request.publish_id, segment_ids=[str(s.id) for s in segments])


def _answer_again(seen: Publish) -> PublishAnswer:
    if seen.abandoned:
        raise PublishRefused(Refusal(code="abandoned", detail="This publish was given up and may not commit."))
    return PublishAnswer(publish_id=seen.id, segment_ids=seen.segment_ids)


def _source_of(writer: Writer, request: PublishRequest) -> Source:
    source = writer.source
    if source is None or source.topic_id != request.topic_id:
        raise PublishRefused(Refusal(code="fenced", detail="The indexer started on another topic id."))
    return source


def _settling(request: PublishRequest) -> dict[int, Ranges]:
    """Per partition, every offset that this publish ends: all but duplicates, which are settled already."""
    found: dict[int, list[offsets.Range]] = {}
    for segment in request.segments:
        for partition, ranges in segment.offsets.items():
            found.setdefault(partition, []).extend(ranges)
    for partition, outcomes in request.outcomes.items():
        for ranges in (outcomes.thrown_away, outcomes.unparseable, outcomes.empty, outcomes.gap):
            found.setdefault(partition, []).extend(ranges)
    settling = {p: offsets.merged(ranges) for p, ranges in found.items() if ranges}
    for partition, ranges in found.items():
        if offsets.count(ranges) != offsets.count(settling.get(partition, [])):
            raise InvalidInput(f"Partition {partition}: an offset has two outcomes in one publish.")
    return settling


def _check_counters(request: PublishRequest, settling: dict[int, Ranges]) -> None:
    """The counters must say what the offsets say."""
    stored = sum(offsets.count(r) for s in request.segments for r in s.offsets.values())
    said = request.counters
    expected = {
        "published + rolled_up": (said.published + said.rolled_up, stored),
        "published": (said.published, sum(s.rows for s in request.segments)),
        "thrown_away": (said.thrown_away, _counted(request, lambda o: o.thrown_away)),
        "unparseable": (said.unparseable, _counted(request, lambda o: o.unparseable)),
        "duplicates": (said.duplicates, _counted(request, lambda o: o.duplicate)),
        "quarantined": (said.quarantined, len(request.quarantined)),
        "released": (said.released, 0),
    }
    wrong = [
        f"{name} is {is_} but the offsets make {should}" for name, (is_, should) in expected.items() if is_ != should
    ]
    if wrong:
        raise InvalidInput("The counters do not match the offsets: " + "; ".join(wrong) + ".")


def _counted(request: PublishRequest, of: Callable[[Outcomes], Ranges]) -> int:
    return sum(offsets.count(of(o)) for o in request.outcomes.values())


def _register_segments(datasource: Datasource, task_id: str, files: list[SegmentFile], now: datetime) -> list[Segment]:
    if not files:
        return []
    ordered = sorted(files, key=lambda f: (f.interval_start, f.interval_end))
    numbers = _partition_numbers(datasource, ordered)
    segments = {
        f.path: Segment(
            id=uuid.uuid4(),
            datasource=datasource,
            interval_start=f.interval_start,
            interval_end=f.interval_end,
            version=numbers[(f.interval_start, f.interval_end)][0],
            partition_num=next(numbers[(f.interval_start, f.interval_end)][1]),
            rows=f.rows,
            size_bytes=f.size_bytes,
            sha256=f.sha256,
            path=f.path,
            min_time=f.min_time,
            max_time=f.max_time,
            columns=[c.model_dump() for c in f.columns],
            task_id=task_id,
            created_at=now,
        )
        for f in ordered
    }
    if len(segments) != len(files):
        raise InvalidInput("Two segments have the same path.")
    Segment.objects.bulk_create(segments.values())
    return [segments[f.path] for f in files]


def _partition_numbers(
    datasource: Datasource, ordered: list[SegmentFile]
) -> dict[tuple[datetime, datetime], tuple[str, itertools.count[int]]]:
    """Take numbers for each interval and add to its sums, its row locked from here on.

    Numbers of a refused publish are not used again.
    """
    wanted = [
        (interval, list(files))
        for interval, files in itertools.groupby(ordered, key=lambda f: (f.interval_start, f.interval_end))
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO segments_interval
                (datasource_id, start, "end", version, next_partition, segments, rows, size_bytes, min_time, max_time)
            SELECT %s, w.start, w.stop, %s, w.n, w.n, w.rows, w.size_bytes, w.low, w.high
            FROM unnest(
                %s::timestamptz[], %s::timestamptz[], %s::int[], %s::int8[], %s::int8[], %s::timestamptz[],
                %s::timestamptz[]
            ) AS w(start, stop, n, rows, size_bytes, low, high) ORDER BY 2, 3
            ON CONFLICT (datasource_id, start, "end") DO UPDATE SET
                next_partition = segments_interval.next_partition + excluded.next_partition,
                segments = segments_interval.segments + excluded.segments,
                rows = segments_interval.rows + excluded.rows,
                size_bytes = segments_interval.size_bytes + excluded.size_bytes,
                min_time = least(segments_interval.min_time, excluded.min_time),
                max_time = greatest(segments_interval.max_time, excluded.max_time)
            RETURNING start, "end", version, next_partition
            """,
            [
                datasource.id,
                datasource.append_version,
                [start for (start, _), _ in wanted],
                [end for (_, end), _ in wanted],
                [len(files) for _, files in wanted],
                [sum(f.rows for f in files) for _, files in wanted],
                [sum(f.size_bytes for f in files) for _, files in wanted],
                [min(f.min_time for f in files) for _, files in wanted],
                [max(f.max_time for f in files) for _, files in wanted],
            ],
        )
        counts = {interval: len(files) for interval, files in wanted}
        return {
            (start, end): (version, itertools.count(after - counts[(start, end)]))
            for start, end, version, after in cursor.fetchall()
        }


def _write_receipts(
    task_id: str,
    number: int,
    request: PublishRequest,
    keys: dict[int, int],
    segments: list[Segment],
    now: datetime,
) -> None:
    outcomes = _receipt_outcomes(request)
    rows: list[tuple[Any, ...]] = [
        (
            request.publish_id,
            task_id,
            number,
            keys[partition],
            span(keys[partition], *_hull(found)),
            Jsonb(found),
            Jsonb([str(s.id) for s in segments]),
            now,
        )
        for partition, found in sorted(outcomes.items())
    ]
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO segments_receipt"
            " (publish_id, task_id, indexer, key_id, hull, outcomes, segment_ids, created_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            rows,
        )


def _receipt_outcomes(request: PublishRequest) -> dict[int, dict[str, list[list[int]]]]:
    out: dict[int, dict[str, list[list[int]]]] = {}
    for index, segment in enumerate(request.segments):
        for partition, ranges in segment.offsets.items():
            stored = out.setdefault(partition, {}).setdefault("stored", [])
            stored.extend([start, end, index] for start, end in ranges)
    for partition, outcomes in request.outcomes.items():
        for name in Outcomes.model_fields:
            ranges = getattr(outcomes, name)
            if ranges:
                out.setdefault(partition, {})[name] = [list(r) for r in ranges]
    return out


def _hull(found: dict[str, list[list[int]]]) -> tuple[int, int]:
    every = [r for ranges in found.values() for r in ranges]
    return min(r[0] for r in every), max(r[1] for r in every)


def _keep_quarantined(source: Source, task_id: str, request: PublishRequest, now: datetime) -> None:
    QuarantinedRecord.objects.bulk_create(
        [
            QuarantinedRecord(
                source=source,
                datasource_id=source.datasource_id,
                task_id=task_id,
                partition=record.partition,
                offset=record.offset,
                timestamp_ms=record.timestamp_ms,
                delivery_count=record.delivery_count,
                reason=record.reason,
                error=record.error,
                key=record.key,
                payload=record.payload,
                publish_id=request.publish_id,
                created_at=now,
            )
            for record in request.quarantined
        ]
    )


def _note_alarms(source: Source, task_id: str, request: PublishRequest) -> None:
    def note(kind: SourceEvent.Kind, detail: str) -> None:
        SourceEvent.objects.create(
            datasource_id=source.datasource_id, source=source, kind=kind, alarm=True, task_id=task_id, detail=detail
        )

    for partition, outcomes in request.outcomes.items():
        for start, end in outcomes.gap:
            where = f"{source.topic} partition {partition}"
            note(
                SourceEvent.Kind.GAP,
                f"Offsets {start} to {end - 1} of {where} were removed by retention before they were read.",
            )
    if request.early_duplicates:
        note(
            SourceEvent.Kind.EARLY_DUPLICATE,
            f"{request.early_duplicates} records that were delivered for the first time were settled already. "
            "They were dropped; if the topic's records were not settled by a repair, look into it.",
        )


def _count(writer: Writer, counters: Counters, segments: list[Segment]) -> None:
    deltas = counters.model_dump(exclude={"released"})
    add_totals(writer, **deltas, publishes=1, segments=len(segments), size_bytes=sum(s.size_bytes for s in segments))
