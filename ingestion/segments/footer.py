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

_MAX_TEXT = 80  # characters of a least or greatest value
_TEXTS = frozenset({"string", "strings", "json"})


def read_footer(file: OpenedFile, order: RowsOrder) -> Footer:
    """Its footer, as the order's user may see it. Raises ``DamagedSegment`` if it is no Parquet file."""
    columns = file.columns()
    with file.open() as opened:
        try:
            metadata = pq.ParquetFile(opened).metadata
        except (pa.ArrowException, OSError) as error:
            raise DamagedSegment(f"{file.registered.path} can't be read as Parquet: {error}") from error
    chunks: dict[str, list[Any]] = {column.name: [] for column in columns}
    for name, chunk in _column_chunks(metadata):
        chunks.get(name, []).append(chunk)
    return Footer(
        rows=metadata.num_rows,
        row_groups=metadata.num_row_groups,
        written_by=str(metadata.created_by or ""),
        columns=[_footer_column(column, chunks[column.name], order) for column in columns],
    )


def _column_chunks(metadata: Any) -> Iterator[tuple[str, Any]]:
    """Each column's part of each row group, by the column's name: names may hold dots, so places say whose it is."""
    tops = [metadata.schema.column(n).path for n in range(metadata.num_columns)]
    names = metadata.schema.to_arrow_schema().names
    owners = _column_names(tops, names)
    for group in range(metadata.num_row_groups):
        for n in range(metadata.num_columns):
            yield owners[n], metadata.row_group(group).column(n)


def _column_names(paths: list[str], names: list[str]) -> list[str]:
    """Columns of segments are flat, or lists: each has one leaf, in the order of the schema."""
    return names if len(paths) == len(names) else [path.partition(".")[0] for path in paths]


def _footer_column(column: Column, chunks: list[Any], order: RowsOrder) -> FooterColumn:
    codecs = sorted({str(chunk.compression).lower() for chunk in chunks})
    footer_column = FooterColumn(
        name=column.name,
        type=column.type,
        compression=", ".join(codecs),
        compressed_bytes=sum(chunk.total_compressed_size for chunk in chunks),
        uncompressed_bytes=sum(chunk.total_uncompressed_size for chunk in chunks),
    )
    if role := order.role_that_sees(column.name):
        return footer_column.model_copy(update={"role": role})
    statistics = [chunk.statistics for chunk in chunks]
    if not statistics or any(chunk_statistics is None for chunk_statistics in statistics):
        return footer_column
    have_null_counts = all(chunk_statistics.has_null_count for chunk_statistics in statistics)
    nulls = sum(chunk_statistics.null_count for chunk_statistics in statistics) if have_null_counts else None
    if order.masked and column.type in _TEXTS:
        return footer_column.model_copy(update={"nulls": nulls, "masked": True})
    without = column.type in ("strings", "json") or column.type.startswith("COMPLEX<")
    ends = {} if without else _min_max(statistics)
    return footer_column.model_copy(update={"nulls": nulls, **ends})


def _min_max(statistics: list[Any]) -> dict[str, Any]:
    """The least and the greatest value; without, where a row group with values does not say."""
    with_min_max = [chunk_statistics for chunk_statistics in statistics if chunk_statistics.has_min_max]
    if not with_min_max or any(
        chunk_statistics.num_values and not chunk_statistics.has_min_max for chunk_statistics in statistics
    ):
        return {}
    return {
        "least": _display_value(min(chunk_statistics.min for chunk_statistics in with_min_max)),
        "greatest": _display_value(max(chunk_statistics.max for chunk_statistics in with_min_max)),
    }


def _display_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value.replace(tzinfo=UTC) if value.tzinfo is None else value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return f"{value[:_MAX_TEXT]}…" if isinstance(value, str) and len(value) > _MAX_TEXT else value
