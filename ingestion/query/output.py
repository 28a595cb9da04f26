"""A result as bytes, a chunk at a time: JSON rows, CSV, an Arrow stream or a Parquet file."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ingestion.specs.messages.sql import Format

BATCH_ROWS = 10_000


class Result:
    """The rows of a reader up to ``max_rows``; ``rows`` and ``truncated`` are true at the end of ``chunks``."""

    def __init__(self, reader: pa.RecordBatchReader, max_rows: int) -> None:
        self._reader = reader
        self._max_rows = max_rows
        self.rows = 0
        self.truncated = False

    def chunks(self, form: Format) -> Iterator[bytes]:
        """In this format."""
        return _WRITERS[form](self.schema, self.batches())

    @property
    def schema(self) -> pa.Schema:
        return self._reader.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """For a writer that is not of these."""
        for batch in self._reader:
            left = self._max_rows - self.rows
            self.truncated = len(batch) > left
            if len(batch) and left:
                yield batch.slice(0, left)
            self.rows += min(len(batch), left)
            if self.truncated:
                return


def _json_chunks(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """Arrays with commas between them, for an array that somebody else opens and closes."""
    separator = ""
    for batch in batches:
        lines = [_json(list(row)) for row in rows_of(batch)]
        yield (separator + ",\n".join(lines)).encode(errors="replace")
        separator = ",\n"


def _csv_chunks(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    sink = _Sink()
    text = io.TextIOWrapper(sink, "utf-8", errors="replace", newline="")  # type: ignore[type-var]  # a raw file
    writer = csv.writer(text)
    writer.writerow(schema.names)
    for batch in batches:
        writer.writerows([_csv_cell(value) for value in row] for row in rows_of(batch))
        text.flush()
        yield sink.take()
    text.flush()
    yield sink.take()


def _binary_chunks(
    open_writer: Callable[..., Any], schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[bytes]:
    sink = _Sink()
    with open_writer(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield sink.take()
    yield sink.take()


class _Sink(io.RawIOBase):
    """Keeps what is written until somebody takes it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, part: Any) -> int:
        content = bytes(part)
        self._parts.append(content)
        self._position += len(content)
        return len(content)

    def take(self) -> bytes:
        content = b"".join(self._parts)
        self._parts.clear()
        return content


def rows_of(batch: pa.RecordBatch) -> Iterator[Sequence[Any]]:
    """Its rows as Python's values."""
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False)
    except ValueError:  # NaN or an infinity, for which JSON has no word
        return json.dumps(finite(value), default=lambda v: finite(_plain(v)), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """A value that JSON does not have."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def finite(value: Any) -> Any:
    """The value without NaN and infinities, which have texts instead."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(value, (list, tuple)):
        return [finite(part) for part in value]
    return {name: finite(part) for name, part in value.items()} if isinstance(value, dict) else value


def _csv_cell(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (list, dict, bool)):
        return _json(value)
    return finite(value) if isinstance(value, (int, float)) else _plain(value)


_WRITERS: dict[Format, Callable[[pa.Schema, Iterable[pa.RecordBatch]], Iterator[bytes]]] = {
    "json": _json_chunks,
    "csv": _csv_chunks,
    "arrow": partial(_binary_chunks, pa.ipc.new_stream),
    "parquet": partial(_binary_chunks, partial(pq.ParquetWriter, compression="zstd")),
}
