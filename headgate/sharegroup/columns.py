"""Polled messages as Arrow, in the columns of Spark's own Kafka source and ``delivery_count``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
HEADERS = pa.field("headers", pa.list_(_HEADER))
COLUMNS = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", "UTC")),
    pa.field("timestampType", pa.int32()),
    pa.field("delivery_count", pa.int32()),
]
DDL = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int, "
    "delivery_count int"
)
HEADERS_DDL = ", headers array<struct<key: string, value: binary>>"
_TYPES = {0: -1, 1: 0, 2: 1}  # librdkafka's kinds of timestamps to Java's: none, of creation, of appending


def schema(with_headers: bool) -> pa.Schema:
    """Of the files."""
    return pa.schema([*COLUMNS, HEADERS] if with_headers else COLUMNS)


def as_batch(messages: Sequence[Any], with_headers: bool) -> pa.RecordBatch:
    """A row for each message."""
    stamps = [m.timestamp() for m in messages]
    kinds = np.array([_TYPES[kind] for kind, _ in stamps], dtype=np.int32)
    times = np.array([ms for _, ms in stamps], dtype=np.int64) * 1000
    columns = [
        pa.array([m.key() for m in messages], pa.binary()),
        pa.array([m.value() for m in messages], pa.binary()),
        _topics([m.topic() for m in messages]),
        pa.array([m.partition() for m in messages], pa.int32()),
        pa.array([m.offset() for m in messages], pa.int64()),
        pa.array(times, pa.timestamp("us", "UTC"), mask=kinds < 0),
        pa.array(kinds),
        pa.array([m.delivery_count() for m in messages], pa.int32()),
    ]
    if with_headers:
        columns.append(pa.array([_headers(m) for m in messages], HEADERS.type))
    return pa.record_batch(columns, schema=schema(with_headers))


def _topics(names: list[str]) -> pa.Array:
    if names.count(names[0]) == len(names):
        return pa.repeat(pa.scalar(names[0], pa.string()), len(names))
    return pa.array(names, pa.string())


def _headers(message: Any) -> list[dict[str, Any]] | None:
    headers = message.headers()
    return [{"key": key, "value": value} for key, value in headers] if headers else None


def as_file(batch: pa.RecordBatch, metadata: dict[str, str]) -> pa.Buffer:
    """An Arrow IPC file of one batch, with metadata in its schema."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema.with_metadata(metadata)) as writer:
        writer.write_batch(batch)
    return sink.getvalue()
