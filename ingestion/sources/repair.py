"""Holes of the settled ranges, read by an ordinary read_committed consumer that joins no group.

An offset of a hole without a record is a transaction marker, an aborted or a compacted record (``empty``), or was
removed by retention before it was read (``gap``).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ingestion.sources.base import Batch, Ints, LazyColumn, SourceProblem
from ingestion.specs import offsets
from ingestion.specs.kafka_properties import librdkafka_properties
from ingestion.specs.protocol import Outcomes, RepairRange

BATCH_RECORDS = 2000
BATCH_SECONDS = 600.0
RANGE_TIMEOUT_S = 60.0
DELIVERY_COUNT = 1_000  # beyond any limit: such a record is decoded in a child process


class RepairSource:
    """See ``Source``. One batch holds a part of one hole; there is nothing to acknowledge."""

    ack_failures = 0
    problem = ""

    def __init__(self, properties: Mapping[str, str], topic: str, ranges: list[RepairRange]) -> None:
        self._topic = topic
        self._left = [
            (r.partition, low, min(low + BATCH_RECORDS, r.end))
            for r in ranges
            for low in range(r.start, r.end, BATCH_RECORDS)
        ]
        self._config = {
            **librdkafka_properties(properties),
            "group.id": "headgate-repair",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "log_level": 3,
        }
        self._consumer: Consumer | None = None

    def open(self) -> None:
        self._consumer = Consumer(self._config)

    def take(self, timeout_s: float) -> Batch | None:
        if not self._left:
            return None
        partition, start, end = self._left.pop(0)
        messages = self._read(partition, start, end)
        found = [m.offset() for m in messages]
        missing = offsets.subtracted([(start, end)], offsets.ranges_of(found))
        return Batch(
            partitions=np.full(len(messages), partition, dtype=np.int64),
            offsets=np.array(found, dtype=np.int64),
            delivery_counts=np.full(len(messages), DELIVERY_COUNT, dtype=np.int64),
            payloads=[m.value() for m in messages],
            keys=[m.key() for m in messages],
            timestamps_ms=[m.timestamp()[1] if m.timestamp()[0] else None for m in messages],
            headers=LazyColumn(messages, lambda m: m.headers() or ()),
            deadline=time.monotonic() + BATCH_SECONDS,
            extra={partition: self._without_record(partition, missing)} if missing else {},
        )

    def _read(self, partition: int, start: int, end: int) -> list[Any]:
        consumer = self._opened()
        consumer.assign([TopicPartition(self._topic, partition, start)])
        messages: list[Any] = []
        give_up = time.monotonic() + RANGE_TIMEOUT_S
        while time.monotonic() < give_up:
            message = consumer.poll(1.0)
            if message is None:
                continue
            error = message.error()
            if error is None and message.offset() < end:
                messages.append(message)
            elif error is None or error.code() == KafkaError._PARTITION_EOF:
                return messages
            else:
                raise SourceProblem(f"Reading {self._topic} partition {partition}: {error.str()}")
        raise SourceProblem(f"{self._topic} partition {partition} did not answer within {RANGE_TIMEOUT_S:.0f} s")

    def _without_record(self, partition: int, missing: list[offsets.Range]) -> Outcomes:
        try:
            low, _ = self._opened().get_watermark_offsets(TopicPartition(self._topic, partition), timeout=10.0)
        except KafkaException as error:
            raise SourceProblem(f"{self._topic} partition {partition}: {error.args[0].str()}") from None
        gap = [(start, min(end, low)) for start, end in missing if start < low]
        return Outcomes(gap=gap, empty=offsets.subtracted(missing, gap))

    def _opened(self) -> Consumer:
        if self._consumer is None:
            raise SourceProblem("The repair source is not open.")
        return self._consumer

    def acknowledge(self, batch: Batch, verdicts: Ints) -> None:
        pass

    def lapse(self, batch: Batch) -> None:
        pass

    def exhausted(self) -> bool:
        return not self._left

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def drain(self) -> list[Batch]:
        self._left.clear()
        return []

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
