"""Holes of the settled ranges, read by an ordinary consumer that joins no group.

An offset of a hole without a record is a transaction marker, an aborted or a compacted record (``empty``), or was
removed by retention before it was read (``gap``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ingestion.sources.base import Batch, Ints, LazyColumn, LeasedSource, SourceProblem
from ingestion.sources.client_problems import explain_error, is_of_unused_group
from ingestion.specs import offsets
from ingestion.specs.inputs.group_config import Isolation
from ingestion.specs.kafka.properties import librdkafka_properties, quick_to_reconnect
from ingestion.specs.messages.protocol import Outcomes, RepairRange

MAX_OFFSETS = 2000  # offsets that one batch reaches over, at most
BATCH_SECONDS = 600.0
RANGE_TIMEOUT_S = 60.0
DELIVERY_COUNT = 1_000  # beyond any limit: such a record is decoded in a child process


class RepairSource(LeasedSource):
    """See ``LeasedSource``. One batch holds holes of one partition that lie close together, or before the log's start.

    ``poll`` blocks until all of a batch is read.
    ``isolation``: the share group's.
    ``stopped``: asked while Kafka is waited for; what was not read by then stays a hole.
    ``check_end``: called when nothing has come for a second; raises ``SourceProblem`` for good when the topic is gone,
    of which a consumer hears nothing.
    ``most_offsets``: see ``plan_batches``. ``delivery_count``: of each record, which says how it is decoded.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        topic: str,
        ranges: list[RepairRange],
        stopped: Callable[[], bool] = lambda: False,
        isolation: Isolation = "read_committed",
        check_end: Callable[[], object] = lambda: None,
        *,
        most_offsets: int | None = None,
        delivery_count: int = DELIVERY_COUNT,
    ) -> None:
        self._topic = topic
        self._remaining = plan_batches(ranges, MAX_OFFSETS if most_offsets is None else most_offsets)
        self._delivery_count = delivery_count
        self._stopped = stopped
        self._check_end = check_end
        self._config = {
            **quick_to_reconnect(properties),
            **librdkafka_properties(properties),
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }

    def open(self) -> None:
        """Nothing to do: each batch has a consumer of its own."""

    def poll(self, timeout_s: float) -> Batch | None:
        if not self._remaining:
            return None
        partition, holes = self._remaining.pop(0)
        read = self._read(partition, holes)
        if read is None:
            return None
        messages, low = read
        holes += self._removed(partition, low)
        delivered = [m.offset() for m in messages]
        missing = offsets.subtracted(holes, offsets.ranges_of(delivered))
        gap = [(start, min(end, low)) for start, end in missing if start < low]
        outcomes = Outcomes(gap=gap, empty=offsets.subtracted(missing, gap))
        return Batch(
            partitions=np.full(len(messages), partition, dtype=np.int64),
            offsets=np.array(delivered, dtype=np.int64),
            delivery_counts=np.full(len(messages), self._delivery_count, dtype=np.int64),
            payloads=[m.value() for m in messages],
            keys=[m.key() for m in messages],
            timestamps_ms=[m.timestamp()[1] if m.timestamp()[0] else None for m in messages],
            headers=LazyColumn(messages, lambda m: m.headers() or ()),
            deadline=time.monotonic() + BATCH_SECONDS,
            extra={partition: outcomes} if missing else {},
        )

    def _removed(self, partition: int, low: int) -> list[offsets.Range]:
        """Those of the partition's next holes that lie before the log's start: nothing is left there to be read."""
        removed = []
        while self._remaining and self._remaining[0][0] == partition and self._remaining[0][1][0][0] < low:
            _, holes = self._remaining.pop(0)
            removed += [(start, min(end, low)) for start, end in holes if start < low]
            if rest := offsets.subtracted(holes, [(0, low)]):
                self._remaining.insert(0, (partition, rest))
        return removed

    def _read(self, partition: int, holes: list[offsets.Range]) -> tuple[list[Any], int] | None:
        """The records in the holes and the log's start; None when it was stopped before it had all.

        A fresh consumer: one that is assigned anew waits for the fetch it has on its way, half a second.
        """
        consumer = Consumer(self._config)
        try:
            consumer.assign([TopicPartition(self._topic, partition, holes[0][0])])
            messages = self._read_until(consumer, partition, holes[-1][1])
            if messages is None:
                return None
            inside = [m for m in messages if any(start <= m.offset() < end for start, end in holes)]
            low, _ = consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=10.0)
            return inside, low
        except KafkaException as error:
            raise SourceProblem(f"{self._topic} partition {partition}: {error.args[0].str()}") from None
        finally:
            consumer.close()

    def _read_until(self, consumer: Consumer, partition: int, end: int) -> list[Any] | None:
        """All records from the assigned offset to ``end``; None when it was stopped."""
        messages: list[Any] = []
        give_up = time.monotonic() + RANGE_TIMEOUT_S
        while time.monotonic() < give_up:
            if self._stopped():
                return None
            message = consumer.poll(1.0)
            if message is None:
                self._notice_end()
                continue
            error = message.error()
            if is_of_unused_group(error):
                continue
            if error is None and message.offset() < end:
                messages.append(message)
            elif error is None or error.code() == KafkaError._PARTITION_EOF:
                return messages
            else:
                raise SourceProblem(
                    f"Reading partition {partition}: {explain_error(error, self._topic, '', partition)}"
                )
        raise SourceProblem(f"{self._topic} partition {partition} did not answer within {RANGE_TIMEOUT_S:.0f} s")

    def _notice_end(self) -> None:
        try:
            self._check_end()
        except SourceProblem as problem:
            if problem.permanent:
                raise

    def acknowledge(self, batch: Batch, verdicts: Ints) -> None:
        """Nobody waits for it: a publish alone says what became of a record."""

    def lapse(self, batch: Batch) -> None:
        """It stays a hole, which the next repair looks into."""

    def exhausted(self) -> bool:
        return not self._remaining

    def drain(self) -> list[Batch]:
        self._remaining.clear()
        return []

    def close(self) -> None:
        self._remaining.clear()


def plan_batches(ranges: Iterable[RepairRange], most: int = MAX_OFFSETS) -> list[tuple[int, list[offsets.Range]]]:
    """(partition, holes) for each batch: holes cut and gathered so that none reaches over more than ``most`` offsets.

    A topic with transactions has a hole every few records: to read on costs less than to start anew at each.
    """
    pieces = sorted((r.partition, low, min(low + most, r.end)) for r in ranges for low in range(r.start, r.end, most))
    batches: list[tuple[int, list[offsets.Range]]] = []
    for partition, start, end in pieces:
        if batches and batches[-1][0] == partition and end - batches[-1][1][0][0] <= most:
            batches[-1][1].append((start, end))
        else:
            batches.append((partition, [(start, end)]))
    return batches
