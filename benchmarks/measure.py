"""What several benchmarks need: the records, and what became of them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
from confluent_kafka import Producer

from tests.support.house import House
from tests.support.waiting import wait_for

START = datetime(2025, 6, 1, tzinfo=UTC)
RECORD_BYTES = 100
PARTITIONS = 4
PASS_TIMEOUT_S = 1200.0
_IN_A_ROW = 2_000  # records of one partition, about what a producer's batches are


def records(count: int) -> Iterator[bytes]:
    """JSON objects of 100 bytes within one day, each with its number."""
    return map(record, range(count))


def record(n: int) -> bytes:
    time_text = (START + timedelta(milliseconds=80 * n % 86_400_000)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    text = f'{{"time":"{time_text}","n":{n},"kind":"k{n % 10}","value":{n % 1000}'
    return (text + ',"pad":"' + "x" * (RECORD_BYTES - len(text) - 10) + '"}').encode()


def backlog(house: House, topic: str, count: int) -> None:
    """Produce ``records``, as many to one partition as to another."""
    backlog_of(house.producer, topic, count, range(PARTITIONS))


def backlog_of(
    producer: Producer, topic: str, count: int, partitions: Collection[int], begin: int = 0, rate: float | None = None
) -> None:
    """Of ``backlog``, what comes into these partitions, from ``begin`` on, and at most ``rate`` a second."""
    began = time.monotonic()
    for first in range(begin, count, _IN_A_ROW):
        partition = first // _IN_A_ROW % PARTITIONS
        if partition not in partitions:
            continue
        if rate is not None:
            time.sleep(max(0.0, began + (first - begin) / rate - time.monotonic()))
        for n in range(first, min(first + _IN_A_ROW, count)):
            _produce(producer, topic, record(n), partition)
    left = producer.flush(60)
    if left:
        raise RuntimeError(f"the broker took all but {left} records of {topic}")


def _produce(producer: Producer, topic: str, payload: bytes, partition: int) -> None:
    while True:
        try:
            producer.produce(topic, value=payload, partition=partition)
            return
        except BufferError:
            producer.poll(0.1)


def median(values: Sequence[float]) -> float:
    """Of an even number of values the mean of the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def percentile(values: Sequence[float], share: float) -> float:
    """The value that ``share`` of them do not exceed, about."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def longest_gaps(times: Sequence[datetime], steps: Sequence[tuple[str, datetime, datetime]]) -> dict[str, float]:
    """Step → seconds without an event, the longest that fell into it; one that crosses its bounds counts whole.

    ``times`` are in order, each step has its name, beginning and end. Without any event a step is one silence.
    """
    return {name: max(_gaps(times, begin, end), default=(end - begin).total_seconds()) for name, begin, end in steps}


def _gaps(times: Sequence[datetime], begin: datetime, end: datetime) -> Iterator[float]:
    for before, after in zip(times, [*times[1:], end], strict=False):
        if before < end and after > begin:
            yield (after - before).total_seconds()


def longest_silence(
    times: Sequence[datetime], begin: datetime, end: datetime, excused: Sequence[tuple[datetime, datetime]]
) -> float:
    """The most seconds between two events, between ``begin`` and the first, and between the last and ``end``.

    Time in a span of ``excused`` does not count. ``times`` are in order.
    """
    points = [begin, *(at for at in times if begin < at < end), end]
    return max(_uncovered(first, last, excused) for first, last in pairwise(points))


def _uncovered(begin: datetime, end: datetime, spans: Sequence[tuple[datetime, datetime]]) -> float:
    left, at = 0.0, begin
    for first, last in sorted(spans):
        left += max(0.0, (min(first, end) - at).total_seconds())
        at = min(end, max(at, last))
    return left + (end - at).total_seconds()


def published(house: House, datasource: str) -> int:
    """Rows so far. Asked of the metadata store: the web process is part of what is measured."""
    rows = house.sql(
        "SELECT coalesce(sum(f.published), 0) FROM publishing_indexerfence f"
        " JOIN datasources_datasource d ON d.id = f.datasource_id WHERE d.name = %s",
        datasource,
    )
    return int(rows[0][0])


def await_rows(house: House, datasource: str, count: int) -> None:
    """Wait until this many are published."""
    wait_for(
        "all rows are published",
        lambda: published(house, datasource) >= count,
        PASS_TIMEOUT_S,
        lambda: house.logs(datasource),
    )


def span(house: House, datasource: str) -> tuple[datetime, datetime]:
    """From the start of the first indexer, which then asks for its offsets and connects, to the last publish."""
    rows = house.sql(
        "SELECT min(f.started_at), max(f.last_publish_at) FROM publishing_indexerfence f"
        " JOIN datasources_datasource d ON d.id = f.datasource_id WHERE d.name = %s",
        datasource,
    )
    return rows[0][0], rows[0][1]


def publishes(house: House, datasource: str) -> tuple[int, int]:
    """How many, and how many segments they registered."""
    rows = house.sql(
        "SELECT sum(f.publishes), sum(f.segments) FROM publishing_indexerfence f"
        " JOIN datasources_datasource d ON d.id = f.datasource_id WHERE d.name = %s",
        datasource,
    )
    return int(rows[0][0]), int(rows[0][1])


def lost_and_duplicated(house: House, datasource: str, count: int) -> tuple[int, int]:
    """Of the numbers below ``count``, how many are in no segment in use, and how many rows there once too often."""
    paths = house.sql(
        "SELECT path FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id"
        " WHERE s.used AND d.name = %s",
        datasource,
    )
    times = np.zeros(count, dtype=np.int64)
    for (path,) in paths:
        numbers = pq.read_table(house.home.segments / path, columns=["n"])["n"].to_numpy()
        times += np.bincount(numbers, minlength=count)
    return int((times == 0).sum()), int((times[times > 1] - 1).sum())
