"""The columns of a batch's rows: named dimensions, discovered ones, metrics; and which values were no good."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.columns import ColumnTyper, Values
from ingestion.decode.dimension_casts import cast_column
from ingestion.decode.engine import Engine
from ingestion.decode.java_texts import NO_JSON
from ingestion.decode.sketch_columns import sketch_column
from ingestion.rows import RECORD_TIME
from ingestion.specs.schema.data_schema import DataSchema, DimensionSchema
from ingestion.specs.schema.metrics import Metric, StringMetric, unfiltered_metric
from ingestion.specs.schema.sketch_metrics import SketchMetric

_NUMBERS = {"long": "a whole number", "float": "a number", "double": "a number"}
_MANY_DIGITS = r"^-?[0-9]{16,}$"
_MIN_LENGTH_TO_ROUND = 16  # characters


@dataclass(frozen=True)
class RowFields:
    """The fields of ``count`` records as JSON texts, null where a record has none."""

    texts: Mapping[str, pa.Array]
    count: int
    counted: Mapping[str, pa.Array] = field(
        default_factory=dict
    )  # of which records alone a metric is made, by its name
    transform_only: frozenset[str] = (
        frozenset()
    )  # fields that transforms made and no record has: they are not discovered


@dataclass
class RowColumns:
    """Columns in the order of the segment."""

    columns: list[tuple[str, pa.Array]] = field(default_factory=list)
    faults: dict[int, str] = field(default_factory=dict)  # what is wrong with a field of a row, by row
    discovered: list[str] = field(default_factory=list)


class RowMaker:
    """Makes columns by a ``DataSchema``."""

    def __init__(self, engine: Engine, schema: DataSchema, read: Iterable[str] = ()) -> None:
        """``read``: fields that are read beside those that the schema names, and not discovered."""
        self._dimensions = schema.dimensionsSpec.dimensions
        self._metrics = schema.metricsSpec
        self._discovers = schema.dimensionsSpec.discovers
        self._discovers_strings = schema.dimensionsSpec.discovers_strings
        self._undiscovered = {*schema.undiscovered, *(d.name for d in self._dimensions), *read}
        self._typer = ColumnTyper(engine)
        self.needs_record_time = schema.granularitySpec.rollup and any(
            m.aggregation in ("first", "last") for m in self._metrics
        )
        if self.needs_record_time:
            self._undiscovered.add(RECORD_TIME)

    @property
    def names(self) -> list[str]:
        """The fields that the named columns are made of."""
        return [*(d.name for d in self._dimensions), *(m.field for m in self._metrics if m.field is not None)]

    @property
    def numbers(self) -> frozenset[str]:
        """The fields that named columns of numbers alone are made of."""
        kinds: list[tuple[str, str]] = [(d.name, d.type) for d in self._dimensions]
        kinds += [(m.field, m.kind) for m in self._metrics if m.field is not None]
        return frozenset(name for name, _ in kinds) - {name for name, kind in kinds if kind not in _NUMBERS}

    def make(self, fields: RowFields) -> RowColumns:
        """The columns of these records' rows."""
        row_columns = RowColumns()
        values = {name: Values(fields.texts[name]) for name in dict.fromkeys(self.names)}
        for dimension in self._dimensions:
            self._add_dimension(row_columns, dimension, values[dimension.name])
        if self._discovers:
            self._discover(row_columns, fields)
        for metric in self._metrics:
            self._add_metric(row_columns, metric, values, fields)
        return row_columns

    def _add_dimension(self, row_columns: RowColumns, dimension: DimensionSchema, values: Values) -> None:
        name, kind = dimension.name, dimension.type
        if dimension.cast_target is not None:
            converted = cast_column(self._typer, values, dimension.cast_target)
            _note_fault(row_columns, converted.failed, f"field {name!r} can't be cast to {dimension.castToType}")
            row_columns.columns.append((name, converted.column))
            return
        column = self._typer.typed(values, kind, lists=dimension.multiValueHandling)
        _note_faults(row_columns, values, column, kind, f"field {name!r}")
        row_columns.columns.append((name, column))

    def _discover(self, row_columns: RowColumns, fields: RowFields) -> None:
        """Discovered dimensions in the order they were first met."""
        hidden = self._undiscovered | fields.transform_only
        others = {name: Values(texts) for name, texts in fields.texts.items() if name not in hidden}
        for name, values in others.items():
            if values.total:
                row_columns.discovered.append(name)
                self._add_discovered(row_columns, values, name)

    def _add_discovered(self, row_columns: RowColumns, values: Values, name: str) -> None:
        if not self._discovers_strings:
            column = self._typer.discovered(values)
            _note_faults(row_columns, values, column, "auto", f"field {name!r}")
            row_columns.columns.append((name, column))
        elif name and (values := values.without_nested()).total:
            column = self._typer.typed(values, "string", lists="SORTED_ARRAY")
            _note_faults(row_columns, values, column, "string", f"field {name!r}")
            if column.null_count < len(column):
                row_columns.columns.append((name, column))

    def _add_metric(
        self, row_columns: RowColumns, metric: Metric, values: Mapping[str, Values], fields: RowFields
    ) -> None:
        counted = fields.counted.get(metric.name)
        if metric.field is None:
            ones = pa.array(np.ones(fields.count, np.int64))
            row_columns.columns.append((metric.name, ones if counted is None else counted.cast(pa.int64())))
            return
        raw = values[metric.field]
        if counted is not None:
            raw = Values(pc.if_else(counted, raw.texts, None))
        unfiltered = unfiltered_metric(metric)
        if isinstance(unfiltered, SketchMetric):
            row_columns.columns.append((metric.name, self._sketches(row_columns, raw, unfiltered)))
            return
        column = self._typer.typed(raw, metric.kind, "metric")
        subject = f"field {metric.field!r}" if metric.made_from is None else f"the expression of metric {metric.name!r}"
        _note_faults(row_columns, raw, column, metric.kind, subject)
        if isinstance(unfiltered, StringMetric):
            column = cut_texts(column, unfiltered.maxStringBytes)
        row_columns.columns.append((metric.name, column))

    def _sketches(self, row_columns: RowColumns, raw: Values, metric: SketchMetric) -> pa.Array:
        sketches = sketch_column(self._typer, raw, metric)
        _note_fault(row_columns, sketches.faults, f"field {metric.field!r} {sketches.problem}")
        return sketches.column


def _note_faults(row_columns: RowColumns, values: Values, column: pa.Array, kind: str, subject: str) -> None:
    """Rows that hold something which the column does not. ``subject``: where it comes from."""
    if kind == "auto":
        if pa.types.is_floating(column.type):
            _note_lost(row_columns, values.texts, column, f"{subject} has a number that is too large for a double")
            _note_rounded(row_columns, values.texts, column, subject)
        return
    if kind == "string" and values.numbers:
        _note_fault(row_columns, _matching(values.texts, NO_JSON), f"{subject} is not JSON: NaN or Infinity")
    if kind not in _NUMBERS:
        return
    _note_lost(row_columns, values.texts, column, f"{subject} is not {_NUMBERS[kind]}")


def _note_lost(row_columns: RowColumns, texts: pa.Array, column: pa.Array, fault: str) -> None:
    if column.null_count != texts.null_count:
        _note_fault(row_columns, pc.and_(texts.is_valid(), column.is_null()), fault)


def _note_rounded(row_columns: RowColumns, texts: pa.Array, column: pa.Array, subject: str) -> None:
    """Whole numbers that are another one in a column of doubles."""
    if (pc.max(pc.binary_length(texts)).as_py() or 0) < _MIN_LENGTH_TO_ROUND:
        return
    wide = np.flatnonzero(_matching(texts, _MANY_DIGITS).to_numpy(zero_copy_only=False))
    for row in wide.tolist():
        value = column[row].as_py()
        if value is not None and int(texts[row].as_py()) != value:
            row_columns.faults.setdefault(row, f"{subject} is rounded: it has more digits than a double can store")


def _matching(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(texts, pattern).fill_null(False)


def _note_fault(row_columns: RowColumns, where: pa.Array, fault: str) -> None:
    for row in np.flatnonzero(where.to_numpy(zero_copy_only=False)).tolist():
        row_columns.faults.setdefault(row, fault)


def cut_texts(column: pa.Array, most_bytes: int) -> pa.Array:
    """Texts of that many bytes at most; no character is cut in two."""
    if (pc.max(pc.binary_length(column)).as_py() or 0) <= most_bytes:
        return column
    shortened = [None if t is None else t.encode()[:most_bytes].decode(errors="ignore") for t in column.to_pylist()]
    return pa.array(shortened, pa.string())
