"""Reads the segments of a job, sorts and merges their rows, and writes the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.compaction.inputs import Inputs, unify_schemas
from ingestion.errors import IngestionError
from ingestion.rows import JSON_TYPE, LIST_TYPE, TIME, TIME_TYPE
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.table_shape import Shape, flat, mergers_of
from ingestion.segments.writer import Target, write_interval
from ingestion.sketches.merging import Merger
from ingestion.sketches.types import SketchType, sketches
from ingestion.specs.messages.compaction import CompactionJob
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.schema.data_schema import EXTENTS
from ingestion.specs.schema.metrics import BY_TIME

MEMORY_BYTES = 512 * 1024 * 1024  # for sorting and grouping; what is more goes to disk
_BATCH_ROWS = 65_536
_LONG_SUM = "(((sum({0})::HUGEINT % {1} + {1} + {2}) % {1}) - {2})::BIGINT"  # as in Druid, it wraps around
_MODULUS = "18446744073709551616::HUGEINT"
_HALF = "9223372036854775808::HUGEINT"
_EXTENT_FIELDS = [pa.field(name, pa.int64()) for name in EXTENTS]
_EXTENT_AGGREGATES = dict(zip(EXTENTS, ("first", "first", "last", "last"), strict=True))


class MergeFailed(IngestionError):
    """The rows can't be merged."""


@dataclass(frozen=True)
class Merged:
    """What a merge has written and read: rows by segment, and of each count metric the sum before and after."""

    files: list[SegmentFile]
    read: dict[UUID, int]
    counted: dict[str, tuple[int, int]]


def merge(
    job: CompactionJob, storage: DeepStorage, scratch: Path, ids: ColumnIds, memory_bytes: int = MEMORY_BYTES
) -> Merged:
    """Write the rows of the job's segments as files of ``max_rows_per_segment`` rows at most.

    ``scratch``: a folder for what does not fit into memory, and files on their way. Raises ``DeepStorageError``,
    ``DamagedSegment`` for a file that is not what was registered, ``LacksExtents`` for one whose rows can't be rolled
    up, ``MergeFailed``, and what asking for ids does.
    """
    how = {m.name: m.aggregation for m in job.data_schema.metricsSpec}
    fields = unify_schemas(job.schemas)
    if job.rollup and not BY_TIME.isdisjoint(how.values()):
        fields += _EXTENT_FIELDS
    counts = [name for name, aggregate in how.items() if aggregate == "count"] if job.rollup else []
    inputs = Inputs(storage, job.segments, fields, counts)
    written = _CountSums(counts, fields)
    target = Target(job.data_schema, job.version, storage, scratch, job.max_rows_per_segment, job.index_spec, ids)
    engine = _open_engine(scratch, memory_bytes)
    try:
        engine.register("rows", inputs.reader())
        statement = rollup_sql(fields, how) if job.rollup else sort_sql(fields, how)
        mergers = mergers_of(job.data_schema) if job.rollup else {}
        tables = (written.with_sums(t) for t in _typed_tables(engine.sql(statement), fields, mergers))
        interval = (job.interval_start, job.interval_end)
        files = write_interval(tables, interval, Shape(rollup=False, aggregations=how, lead=0), target)
    except duckdb.Error as error:
        if inputs.problem is not None:
            raise inputs.problem from error
        raise MergeFailed(f"DuckDB can't merge the rows: {error}") from error
    finally:
        engine.close()
    if not files:
        raise MergeFailed("the segments have no rows")
    return Merged(files, inputs.rows, {name: (inputs.sums[name], written.sums[name]) for name in counts})


def sort_sql(fields: Sequence[pa.Field], how: Mapping[str, str]) -> str:
    """By time, then by the dimensions in their order, nulls last; JSON and lists have none."""
    keys = [f"c{i}" for i, f in enumerate(fields, 1) if f.name not in how and not _has_no_order(f.type)]
    return f"SELECT * FROM rows ORDER BY {_order_by_sql(['c0', *keys])}"  # noqa: S608 - of our own names


def rollup_sql(fields: Sequence[pa.Field], how: Mapping[str, str]) -> str:
    """A row for each time and dimensions, in the same order; in the end the texts of JSON and lists decide.

    Where a metric is a first or last value, ``fields`` has the extents too.
    """
    named, how = list(enumerate(fields, 1)), {**how, **_EXTENT_AGGREGATES}
    moments = _extent_keys({f.name: f"c{i}" for i, f in named})
    values = ["c0", *(_value_sql(f"c{i}", f, how.get(f.name, ""), moments) for i, f in named)]
    dimensions = [(f"c{i}", f.type) for i, f in named if f.name not in how]
    keys = ["c0", *(c for c, _ in dimensions)]
    ordered = ["c0", *(c for c, kind in dimensions if not _has_no_order(kind))]
    texts = [f"CAST({c} AS VARCHAR)" for c, kind in dimensions if _has_no_order(kind)]
    selected = ", ".join(values)
    order = _order_by_sql([*ordered, *texts])
    return f"SELECT {selected} FROM rows GROUP BY {', '.join(keys)} ORDER BY {order}"  # noqa: S608 - likewise


def _extent_keys(columns: Mapping[str, str]) -> dict[str, str]:
    """By what the first of rows is the least, and the last the greatest: a time, and of equal ones the order."""
    if EXTENTS[0] not in columns:
        return {}
    places = [columns[name] for name in EXTENTS]
    return {
        how: f"({time}::HUGEINT * {_MODULUS} + {order})"
        for how, time, order in (("first", *places[:2]), ("last", *places[2:]))
    }


def _value_sql(column: str, field: pa.Field, how: str, moments: Mapping[str, str]) -> str:
    if not how:
        return column
    if how in BY_TIME:
        chosen = "arg_min_null" if how == "first" else "arg_max_null"
        return f"{chosen}({column}, {moments[how]}) AS {column}"
    if isinstance(field.type, SketchType):
        return f"list({column}) FILTER ({column} IS NOT NULL) AS {column}"  # of which ``_typed_tables`` makes one
    if how in ("count", "sum"):
        is_long = field.type == pa.int64()
        merged = _LONG_SUM.format(column, _MODULUS, _HALF) if is_long else f"sum({column})"
    else:
        merged = f"{'any_value' if how == 'any' else how}({column})"
    return f"{merged} AS {column}"


def _order_by_sql(keys: Sequence[str]) -> str:
    return ", ".join(f"{key} ASC NULLS LAST" for key in keys)


def _has_no_order(kind: pa.DataType) -> bool:
    return bool(kind in (JSON_TYPE, LIST_TYPE))


def _open_engine(scratch: Path, memory_bytes: int) -> duckdb.DuckDBPyConnection:
    folder = scratch / "sorting"
    folder.mkdir(parents=True, exist_ok=True)
    return duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{memory_bytes}B",
            "threads": 1,
            "temp_directory": str(folder),
            "preserve_insertion_order": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
        },
    )


def _typed_tables(
    rows: duckdb.DuckDBPyRelation, fields: Sequence[pa.Field], mergers: Mapping[str, Merger]
) -> Iterator[pa.Table]:
    """Under their own names and in their own types again. Of a column in ``mergers`` come lists of sketches."""
    names = [TIME, *(f.name for f in fields)]
    for batch in rows.to_arrow_reader(_BATCH_ROWS):
        columns = pa.Table.from_batches([batch]).columns
        times = columns[0].cast(TIME_TYPE)
        typed = [_typed_column(c, f, mergers) for c, f in zip(columns[1:], fields, strict=True)]
        yield pa.table([times, *typed], names=names)


def _typed_column(
    column: pa.ChunkedArray, field: pa.Field, mergers: Mapping[str, Merger]
) -> pa.Array | pa.ChunkedArray:
    if not isinstance(field.type, SketchType):
        return column.cast(field.type)
    if field.name in mergers:
        return mergers[field.name].merged_lists(flat(column))
    return sketches(flat(column), field.type)


class _CountSums:
    """Adds up the counts of what is written."""

    def __init__(self, counts: Sequence[str], fields: Sequence[pa.Field]) -> None:
        self._places = {f.name: i for i, f in enumerate(fields, 1) if f.name in counts}
        self.sums = dict.fromkeys(counts, 0)

    def with_sums(self, rows: pa.Table) -> pa.Table:
        for name, place in self._places.items():
            self.sums[name] += pc.sum(rows.column(place)).as_py() or 0
        return rows
