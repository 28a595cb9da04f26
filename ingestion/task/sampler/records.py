"""The records of a sample: read from a topic, or pasted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ingestion.decode.envelope import Envelope
from ingestion.decode.multi_row import count_fitting, split_rows
from ingestion.sources.peek import Limits, TopicLocation, peek
from ingestion.sources.topic import checked_properties
from ingestion.specs.formats.input_format import InputFormat
from ingestion.specs.messages.sampling import (
    MAX_INPUT_BYTES,
    SHOWN_BYTES,
    WINDOWS_S,
    Arrived,
    Bytes,
    KeptRecord,
    SampleOrder,
)

MAX_HELD_ROWS = 5_000  # of all records of a sample together
Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Records:
    """Columnar."""

    payloads: list[bytes | None]
    keys: list[bytes | None]
    timestamps_ms: list[int | None]
    headers: list[Headers]
    topic: str
    places: list[tuple[int | None, int | None]]  # partition and offset, of what comes from a topic
    stopped_by: Literal["", "time", "bytes", "answer"] = ""
    arrived: Arrived | None = None

    def __len__(self) -> int:
        return len(self.payloads)

    @property
    def envelope(self) -> Envelope:
        return Envelope(self.topic, self.keys, self.timestamps_ms, self.headers)

    def fitting(self, input_format: InputFormat) -> Records:
        """The first of them, as many as do not hold more rows than can be answered for in time."""
        count = count_fitting(input_format, self.payloads, MAX_HELD_ROWS, 2 * MAX_INPUT_BYTES)
        if count == len(self):
            return self
        columns = ("payloads", "keys", "timestamps_ms", "headers", "places")
        return replace(self, stopped_by="answer", **{name: getattr(self, name)[:count] for name in columns})

    def by_row(self, input_format: InputFormat) -> tuple[Records, list[int]]:
        """Each row that they hold as a record of its own, and of which record it is."""
        payloads, owners = split_rows(input_format, self.payloads)

        def by_owner(column: Sequence[Any]) -> list[Any]:
            return [column[i] for i in owners]

        rows = replace(
            self,
            payloads=payloads,
            keys=by_owner(self.keys),
            timestamps_ms=by_owner(self.timestamps_ms),
            headers=by_owner(self.headers),
            places=by_owner(self.places),
        )
        return rows, owners

    def to_keep(self) -> list[KeptRecord]:
        """All of those that come from a topic, whole."""
        return [
            KeptRecord.model_construct(
                partition=partition,
                offset=offset,
                timestamp_ms=self.timestamps_ms[index],
                key=self.keys[index],
                headers=list(self.headers[index]),
                payload=self.payloads[index],
            )
            for index, (partition, offset) in enumerate(self.places)
        ]

    def shown(self, index: int) -> dict[str, Any]:
        """What a ``SampledRecord`` says of the record itself."""
        partition, offset = self.places[index]
        return {
            "partition": partition,
            "offset": offset,
            "timestamp_ms": self.timestamps_ms[index],
            "key": _excerpt(self.keys[index]),
            "payload": _excerpt(self.payloads[index]),
        }


def load_records(order: SampleOrder) -> Records:
    """Those of the order. Raises ``NoSuchTopic``, ``SourceProblem``."""
    if order.kept is not None:
        return _from_kept(order.kept[: order.rows], order.io_config.topic)
    if order.records is None:
        return _from_topic(order)
    count = len(order.records)
    nothing: list[None] = [None] * count
    return Records(
        payloads=[*order.records],
        keys=[*nothing],
        timestamps_ms=[*nothing],
        headers=[()] * count,
        topic=order.io_config.topic,
        places=[(None, None)] * count,
    )


def _from_kept(records: Sequence[KeptRecord], topic: str) -> Records:
    return Records(
        payloads=[r.payload for r in records],
        keys=[r.key for r in records],
        timestamps_ms=[r.timestamp_ms for r in records],
        headers=[r.headers for r in records],
        topic=topic,
        places=[(r.partition, r.offset) for r in records],
    )


def _from_topic(order: SampleOrder) -> Records:
    io_config = order.io_config
    limits = Limits(order.rows, order.most_bytes, time.monotonic() + order.timeout_ms / 1000)
    properties = checked_properties(order.consumer_properties, order.address_policy)
    location = TopicLocation(properties, io_config.topic, order.address_policy, io_config.isolation)
    windows_s = WINDOWS_S if order.wanted == "records" else ()
    peeked = peek(location, earliest=io_config.useEarliestOffset, limits=limits, windows_s=windows_s)
    messages = peeked.messages
    return Records(
        payloads=[m.value() for m in messages],
        keys=[m.key() for m in messages],
        timestamps_ms=[m.timestamp()[1] if m.timestamp()[0] else None for m in messages],
        headers=[m.headers() or () for m in messages],
        topic=io_config.topic,
        places=[(m.partition(), m.offset()) for m in messages],
        stopped_by=peeked.stopped_by,
        arrived=next((Arrived(records=n, window_s=window) for window, n in peeked.window_counts.items() if n), None),
    )


def _excerpt(data: bytes | None) -> Bytes | None:
    return None if data is None else Bytes.model_construct(start=data[:SHOWN_BYTES], size=len(data))
