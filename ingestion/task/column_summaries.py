"""What the columns of segments hold, so that what is stored can be compared with what would be: of a dry run."""

from __future__ import annotations

import math
from collections.abc import Iterable

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.errors import DamagedSegment
from ingestion.specs.messages.protocol import ColumnSummary
from ingestion.specs.schema.data_schema import EXTENTS

AT_ONCE = 200  # columns of one query
_CHECKSUMS = 2**64


def summarise(storage: DeepStorage, paths: Iterable[str]) -> list[ColumnSummary]:
    """Of all rows of these segments, column by column. Raises ``DeepStorageError``, ``DamagedSegment``."""
    found: dict[str, ColumnSummary] = {}
    with duckdb.connect(":memory:", config={"threads": 1, "python_enable_replacements": "false"}) as engine:
        for path in paths:
            with storage.open(path) as opened:
                try:
                    for batch in pq.ParquetFile(opened).iter_batches():
                        _add(engine, batch, found)
                except pa.ArrowException as error:
                    raise DamagedSegment(f"{path} can't be read as Parquet: {error}") from error
    return list(found.values())


def _add(engine: duckdb.DuckDBPyConnection, batch: pa.RecordBatch, found: dict[str, ColumnSummary]) -> None:
    names = [name for name in batch.schema.names if name not in EXTENTS]
    for first in range(0, len(names), AT_ONCE):
        some = names[first : first + AT_ONCE]
        columns = [_plain(batch.column(name)) for name in some]
        rows = pa.table(columns, names=[f"c{n}" for n in range(len(some))])
        asked = [
            f"count(c{n}), {f'sum(c{n})' if _is_number(column.type) else 'NULL'}, "
            f"(sum(hash(c{n})) FILTER (WHERE c{n} IS NOT NULL)) % {_CHECKSUMS}"
            for n, column in enumerate(columns)
        ]
        [answer] = engine.from_arrow(rows).aggregate(", ".join(asked)).fetchall()
        for n, (name, column) in enumerate(zip(some, columns, strict=True)):
            values, total, checksum = answer[3 * n : 3 * n + 3]
            one = ColumnSummary(
                name=name, type=_type_name(column.type), values=values, total=_finite(total), checksum=checksum or 0
            )
            found[name] = found[name].plus(one) if name in found else one


def _plain(column: pa.Array) -> pa.Array:
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _finite(total: float | None) -> float | None:
    return total if total is not None and math.isfinite(total) else None


def _type_name(kind: pa.DataType) -> str:
    """About what a spec calls it."""
    if pa.types.is_integer(kind):
        return "long"
    if pa.types.is_floating(kind):
        return "double"
    return "timestamp" if pa.types.is_timestamp(kind) else str(kind)
