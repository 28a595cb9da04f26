"""A ``dataSchema`` compiled for DuckDB: texts of records to rows, all of them in the same steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestion.decode.counted_records import CountedRecords, undecided
from ingestion.decode.decoded import Decoded
from ingestion.decode.engine import Engine
from ingestion.decode.envelope import Envelope
from ingestion.decode.exact_numbers import as_written
from ingestion.decode.fields import FieldReader, Fields, Mask, filter_columns, is_absent
from ingestion.decode.formats import ReaderTools, create_reader
from ingestion.decode.formats.access import Access
from ingestion.decode.formats.base import Texts
from ingestion.decode.formats.flatten import flatten_in_place
from ingestion.decode.message_window import UNBOUNDED, MessageWindow
from ingestion.decode.metric_expressions import MetricExpressions
from ingestion.decode.named_fields import undiscovered_fields
from ingestion.decode.payloads import NOT_AN_OBJECT, decode_texts, explain_text
from ingestion.decode.rowmaker import RowFields, RowMaker
from ingestion.decode.times import TimeReader, truncated
from ingestion.decode.transforms import TOO_LONG, UNDECIDED, FilterResult, Transformed, Transforms
from ingestion.rows import RECORD_TIME, ROW, TIME, TIME_TYPE
from ingestion.specs.formats.input_format import InputFormat, JsonInputFormat
from ingestion.specs.schema.data_schema import DataSchema, TimestampSpec

_NO_TRANSFORMS = Transformed()
_GOOD_PAYLOADS = [b"{}", b'{"":1}']


class CompiledSchema:
    """One connection and what is compiled on it. Raises ``duckdb.Error``, ``BadExpression``."""

    def __init__(
        self,
        schema: DataSchema,
        memory_limit_bytes: int,
        input_format: InputFormat,
        access: Access,
        with_digits: bool,
    ) -> None:
        self._engine = Engine(memory_limit_bytes)
        self._with_digits = with_digits
        input_format, places = flatten_in_place(schema, input_format, keeps_digits=with_digits)
        tools = ReaderTools.of(self._engine, schema, access, keeps_digits=with_digits)
        self._reader = create_reader(input_format, tools)
        # Of other formats, and flattened, a field that stands twice is one that hides another.
        self._keeps_doubles = isinstance(input_format, JsonInputFormat) and input_format.flattenSpec is None
        self._time_column = schema.timestampSpec.column
        self._granularity = schema.granularitySpec
        self._numbers = MetricExpressions(self._engine, schema.metricsSpec)
        hidden = undiscovered_fields(self._engine, schema, input_format).union(self._numbers.fields)
        self._maker = RowMaker(self._engine, schema, hidden)
        self._transforms = Transforms(self._engine, schema.transformSpec)
        self._counted = CountedRecords(self._engine, schema)
        self._discovers = schema.dimensionsSpec.discovers
        self._fields = FieldReader(
            self._engine,
            [
                self._time_column,
                *(name for name in self._maker.names if name not in self._numbers.field_names),
                *self._transforms.fields,
                *self._counted.fields,
                *self._numbers.fields,
            ],
            self._discovers,
            schema.undiscovered.union(hidden).__contains__,
            places,
        )
        self._times = TimeReader(self._engine, schema.timestampSpec, self._granularity.segmentGranularity)
        self._is_time_transformed = TIME in self._transforms.names
        # Druid's expressions make numbers alone.
        in_sql = any(t.name == TIME and t.language == "sql" for t in schema.transformSpec.transforms)
        made_spec = TimestampSpec(column=TIME, format="auto" if in_sql else "millis")
        self._transformed_times = TimeReader(self._engine, made_spec, self._granularity.segmentGranularity)

    def interrupt(self) -> None:
        self._engine.interrupt()

    def close(self) -> None:
        self._engine.close()

    def no_rows(self) -> pa.Table:
        return self._decoded(decode_texts([]), UNBOUNDED).rows

    def try_out(self) -> None:
        """Go through all of it once: whatever is wrong with it, and not with a record, is raised."""
        self._engine.clear_interrupt()
        nothing: list[None] = [None] * len(_GOOD_PAYLOADS)
        self._reader.read(_GOOD_PAYLOADS, Envelope("", nothing, nothing, [()] * len(_GOOD_PAYLOADS)))
        self._decoded(decode_texts(_GOOD_PAYLOADS), UNBOUNDED)

    def decode(self, payloads: Sequence[bytes | None], window: MessageWindow, envelope: Envelope | None) -> Decoded:
        self._engine.clear_interrupt()
        decoded = self._decoded(self._reader.read(payloads, envelope), window)
        if None not in payloads:
            return decoded
        without_value = [i for i, payload in enumerate(payloads) if payload is None]
        errors = {i: error for i, error in decoded.unparseable.items() if payloads[i] is not None}
        return replace(decoded, unparseable=errors, tombstones=without_value)

    def reasons(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> list[str]:
        """Why each of these is no JSON object."""
        self._engine.clear_interrupt()
        texts, errors = self._reader.read(payloads, envelope)
        return [errors.get(i) or explain_text(self._engine, text.as_py()) for i, text in enumerate(texts)]

    def _decoded(self, read: Texts, window: MessageWindow) -> Decoded:
        texts, errors = read
        fields = self._fields.read(texts)
        refused = [i for i in np.flatnonzero(~fields.is_object).tolist() if i not in errors]
        errors |= dict.fromkeys(refused, NOT_AN_OBJECT)
        times = self._times.read(fields.columns[self._time_column], fields.is_object)
        errors |= times.errors
        good = fields.is_object & times.readable
        transformed = self._transform(texts, fields, np.where(good, times.ms, 0))
        if transformed.too_long:
            errors |= {i: TOO_LONG for i in transformed.too_long if i not in errors}
            good[list(transformed.too_long)] = False
        if self._is_time_transformed:
            times = self._transformed_times.read(transformed.columns.pop(TIME), good)
            errors |= times.errors
            good &= times.readable
        filtered = self._transforms.matching(texts, fields.columns, transformed, times.ms, good)
        if filtered.undetermined:
            errors |= dict.fromkeys(filtered.undetermined, UNDECIDED)
            good[list(filtered.undetermined)] = False
        matching = filtered.is_kept
        inside = window.holds(times.ms)
        is_kept = matching & inside
        fields, is_kept, beyond = self._discover(texts, fields, is_kept)
        counted = self._counted.by_metric(texts, fields.columns, transformed, times.ms, is_kept)
        if self._with_digits:
            fields = replace(fields, columns=as_written(texts, fields.columns, self._maker.numbers))
        rows, faults = self._rows(fields, transformed, times.ms, is_kept, counted)
        return Decoded(
            rows=rows,
            unparseable=dict(sorted((errors | beyond).items())),
            filtered=np.flatnonzero(good & ~matching).tolist(),
            outside_window=np.flatnonzero(matching & ~inside).tolist(),
            processed_with_error=faults,
        )

    def _transform(self, texts: pa.Array, fields: Fields, ms: npt.NDArray[np.int64]) -> Transformed:
        return self._transforms.apply(texts, fields.columns, ms) if self._transforms.names else _NO_TRANSFORMS

    def _discover(self, texts: pa.Array, fields: Fields, is_kept: Mask) -> tuple[Fields, Mask, dict[int, str]]:
        if not self._discovers:
            return fields, is_kept, {}
        changed, beyond = self._fields.learn(texts, fields, is_kept)
        if beyond:
            is_kept = is_kept.copy()
            is_kept[list(beyond)] = False
        fields = self._fields.read(texts) if changed else fields
        doubled = self._fields.with_doubles(fields, is_kept) if self._keeps_doubles else {}
        if doubled:
            is_kept = is_kept.copy()
            is_kept[list(doubled)] = False
        return fields, is_kept, beyond | doubled

    def _rows(
        self,
        fields: Fields,
        made_fields: Transformed,
        ms: npt.NDArray[np.int64],
        is_kept: Mask,
        counted: dict[str, FilterResult],
    ) -> tuple[pa.Table, dict[int, str]]:
        """The rows of the kept records, and by index what is wrong with some of them."""
        index = np.flatnonzero(is_kept).astype(np.int32)
        keeps_all = len(index) == len(is_kept)
        columns = {**fields.columns, **made_fields.columns} if made_fields.columns else fields.columns
        columns = columns if keeps_all else filter_columns(columns, pa.array(is_kept))
        masks = {name: pa.array(matching.is_kept[is_kept]) for name, matching in counted.items()}
        kept_ms = ms if keeps_all else ms[is_kept]
        numbers = self._numbers.apply(columns, kept_ms, masks)
        alone = frozenset(n for n in made_fields.columns if is_absent(fields.columns.get(n)))
        row_columns = self._maker.make(RowFields({**columns, **numbers.columns}, len(index), masks, alone))
        if self._discovers:
            self._fields.forget_all_but(row_columns.discovered)
        cut = truncated(kept_ms, self._granularity.queryGranularity, self._granularity.segmentGranularity)
        named_columns = [(ROW, pa.array(index)), (TIME, _to_time_column(cut)), *row_columns.columns]
        if self._maker.needs_record_time:
            named_columns.append((RECORD_TIME, _to_time_column(kept_ms)))
        rows = pa.table([column for _, column in named_columns], names=[name for name, _ in named_columns])
        faults = {int(index[row]): fault for row, fault in (numbers.faults | row_columns.faults).items()}
        return rows, undecided(counted) | made_fields.faults(is_kept) | faults


def _to_time_column(ms: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(ms, pa.int64()).view(TIME_TYPE)
