"""What a segment file's footer says of its columns: sizes, compression, statistics, without what is masked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ingestion.segments.errors import DamagedSegment
from ingestion.segments.names import iso
from ingestion.segments.numbered_files import OpenedFile
from ingestion.specs.messages.newest_rows import Footer, FooterColumn, RowsOrder
from ingestion.specs.messages.protocol import Column

_MOST_TEXT = 80  # characters of a least or greatest value
_TEXTS = frozenset({"string", "strings", "json"})


def footer_of(file: OpenedFile, order: RowsOrder) -> Footer:
    """Its footer, as the order's user may see it. Raises ``DamagedSegment`` if it is no Parquet file."""
    columns = file.columns()
    with file.open() as opened:
        try:
            told = pq.ParquetFile(opened).metadata
        except (pa.ArrowException, OSError) as error:
            raise DamagedSegment(f"{file.registered.path} can't be read as Parquet: {error}") from error
    chunks: dict[str, list[Any]] = {column.name: [] for column in columns}
    for name, chunk in _chunks(told):
        chunks.get(name, []).append(chunk)
    return Footer(
        rows=told.num_rows,
        row_groups=told.num_row_groups,
        written_by=str(told.created_by or ""),
        columns=[_column(column, chunks[column.name], order) for column in columns],
    )


def _chunks(told: Any) -> Iterator[tuple[str, Any]]:
    """Each column's part of each row group, by the column's name: names may hold dots, so places say whose it is."""
    tops = [told.schema.column(n).path for n in range(told.num_columns)]
    names = told.schema.to_arrow_schema().names
    owners = _owners(tops, names)
    for group in range(told.num_row_groups):
        for n in range(told.num_columns):
            yield owners[n], told.row_group(group).column(n)


def _owners(paths: list[str], names: list[str]) -> list[str]:
    """Columns of segments are flat, or lists: each has one leaf, in the order of the schema."""
    return names if len(paths) == len(names) else [path.partition(".")[0] for path in paths]


def _column(column: Column, chunks: list[Any], order: RowsOrder) -> FooterColumn:
    codecs = sorted({str(chunk.compression).lower() for chunk in chunks})
    found = FooterColumn(
        name=column.name,
        type=column.type,
        compression=", ".join(codecs),
        compressed_bytes=sum(chunk.total_compressed_size for chunk in chunks),
        uncompressed_bytes=sum(chunk.total_uncompressed_size for chunk in chunks),
    )
    if role := order.role_that_sees(column.name):
        return found.model_copy(update={"role": role})
    statistics = [chunk.statistics for chunk in chunks]
    if not statistics or any(one is None for one in statistics):
        return found
    known = all(one.has_null_count for one in statistics)
    nulls = sum(one.null_count for one in statistics) if known else None
    if order.masked and column.type in _TEXTS:
        return found.model_copy(update={"nulls": nulls, "masked": True})
    without = column.type in ("strings", "json") or column.type.startswith("COMPLEX<")
    ends = {} if without else _ends(statistics)
    return found.model_copy(update={"nulls": nulls, **ends})


def _ends(statistics: list[Any]) -> dict[str, Any]:
    """The least and the greatest value; without, where a row group with values does not say."""
    told = [one for one in statistics if one.has_min_max]
    if not told or any(one.num_values and not one.has_min_max for one in statistics):
        return {}
    return {"least": _shown(min(one.min for one in told)), "greatest": _shown(max(one.max for one in told))}


def _shown(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value.replace(tzinfo=UTC) if value.tzinfo is None else value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return f"{value[:_MOST_TEXT]}…" if isinstance(value, str) and len(value) > _MOST_TEXT else value
