"""Records to rows, in this process: a reader makes JSON texts of them (see ``formats``), the stage here makes rows.

What is a record of JSON, and what is done with the odd ones:

- A record is one JSON object in UTF-8, or several (see ``multi_row``). null, an empty payload, other JSON values, and
  text that DuckDB's parser refuses (a lone surrogate, a raw control character, a comment) are unparseable. No payload
  at all is a tombstone, save in the format ``kafka``.
- A byte order mark is dropped. A record with a trailing comma is unparseable, unless the input format allows it.
- A record with NaN or Infinity, which are not JSON, is unparseable, read or not, unless the input format allows them:
  then they become null in a column, as does what is beyond a double in a numeric one, and the record is processed with
  an error.
- Of a field that stands twice in a record the first counts (in Druid the last): to look for one costs a tenth of all
  decoding. Where fields are discovered it costs nothing, and such a record is unparseable.
- Names that differ only by case are different fields.
- ``\\u0000`` is kept in values, and in names inside them. Nesting has no limit: nested values stay JSON text.
- A field with NUL in its name, or a name of more than 1,000 characters, is not discovered: its record is unparseable.
- A field named ``__time`` is not discovered: the name is the segment's own. One named ``__row`` is.
- At most 1,000 fields are discovered in a record; one with more is unparseable, whatever is read with it. A batch with
  more than that is read in parts; with more than 2,000 not at all (``TooWide``): each row would have all columns.
- A record that needs more memory than the decoder may have is unparseable; its neighbours are decoded without it.
- So is one that takes DuckDB too long, in processor time: seconds, of which its batch needs milliseconds. Where there
  are more of them than can be told apart in a few times as many seconds, nothing is decoded (``TooSlow``).
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestion.decode.counted_records import CountedRecords, undecided
from ingestion.decode.decoded import Decoded, join_decoded
from ingestion.decode.engine import Engine
from ingestion.decode.envelope import Envelope, take_records
from ingestion.decode.errors import DecoderBroken, TooSlow, TooWide, UnusableSchema
from ingestion.decode.exact_numbers import as_written
from ingestion.decode.expressions import BadExpression
from ingestion.decode.fields import MAX_IN_BATCH, FieldReader, Fields, Mask, TooManyFields
from ingestion.decode.formats import JSON, ReaderTools, create_reader, keeps_digits
from ingestion.decode.formats.access import Access
from ingestion.decode.formats.base import Texts
from ingestion.decode.formats.flatten import flatten_in_place
from ingestion.decode.message_window import MessageWindow
from ingestion.decode.metric_expressions import MetricExpressions
from ingestion.decode.multi_row import MultiRowReader
from ingestion.decode.named_fields import undiscovered_fields
from ingestion.decode.payloads import Diagnosis, decode_texts
from ingestion.decode.rowmaker import RowFields, RowMaker
from ingestion.decode.times import TimeReader, truncated
from ingestion.decode.transforms import TOO_LONG, UNDECIDED, FilterResult, Transformed, Transforms
from ingestion.decode.watchdog import Watchdog
from ingestion.rows import RECORD_TIME, ROW, TIME, TIME_TYPE
from ingestion.specs.formats.input_format import InputFormat, JsonInputFormat
from ingestion.specs.schema.data_schema import DataSchema, TimestampSpec

DEFAULT_MEMORY_LIMIT_BYTES = 1024 * 1024 * 1024
DEFAULT_BATCH_S = 5.0
_PORTIONS = 16  # rather than halves: what can't be interrupted costs its whole time at each level
_BUDGET = 4.0  # times as long, to find the records that are too slow
_MIN_S = 0.1  # for a single record
_EMPTY_RECORD_FACTOR = 20
_UNBOUNDED = MessageWindow()
_NO_ACCESS = Access()
_NO_TRANSFORMS = Transformed()
_FAULTS = (duckdb.Error, pa.ArrowException, MemoryError)
_GOOD_PAYLOADS = [b"{}", b'{"":1}']


class JsonDecoder:
    """Decodes batches of payloads of one format by a ``DataSchema``. Not thread-safe. Close it.

    ``memory_limit_bytes`` bounds DuckDB's memory. ``crash_marker`` is a failpoint for tests: a batch with a payload
    that contains it ends the process at once. ``access`` is what formats may use beside it. ``batch_s`` is how much
    processor time DuckDB may take for a batch; ``hang_s``: see ``Watchdog``. ``with_digits``: the numbers of records
    that are JSON keep their digits, too (see ``exact_numbers``). Raises ``UnusableSchema``.
    """

    def __init__(
        self,
        schema: DataSchema,
        memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES,
        crash_marker: bytes | None = None,
        input_format: InputFormat = JSON,
        access: Access = _NO_ACCESS,
        batch_s: float = DEFAULT_BATCH_S,
        hang_s: float | None = None,
        *,
        with_digits: bool = False,
    ) -> None:
        self._crash_marker = crash_marker
        wants_digits = with_digits or keeps_digits(input_format)
        self._compile = partial(_CompiledSchema, schema, memory_limit_bytes, input_format, access, wants_digits)
        self._several = MultiRowReader.of(input_format, memory_limit_bytes)
        self._batch_s = batch_s
        self._watchdog = Watchdog(_interrupter(self), hang_s)
        try:
            self._parts = self._compile()
            self._min_record_s = self._measure_record_s()
        except (duckdb.Error, UnicodeEncodeError, BadExpression) as error:
            self._watchdog.close()
            raise UnusableSchema(f"the dataSchema can't be used: {_first_line(error)}") from error

    def decode(
        self,
        payloads: Sequence[bytes | None],
        window: MessageWindow = _UNBOUNDED,
        envelope: Envelope | None = None,
    ) -> Decoded:
        """What becomes of every payload. ``envelope``: required by the format ``kafka``, unread by any other.

        Raises ``DecoderBroken`` when the fault is not in the records, ``RegistryUnreachable``, ``TooSlow``,
        ``TooWide``.
        """
        if self._crash_marker is not None and any(p and self._crash_marker in p for p in payloads):
            os._exit(70)
        decoded = self._decode_once(payloads, window, envelope)
        if self._several is None or not decoded.unparseable:
            return decoded
        return self._several.read(decoded, payloads, envelope, lambda rows, env: self._decode_once(rows, window, env))

    def close(self) -> None:
        """Free DuckDB's memory. The decoder is of no use afterwards."""
        self._watchdog.close()
        self._parts.close()

    def _measure_record_s(self) -> float:
        """How much processor time a record may take, the spec being what it is."""
        with self._watchdog.watching(self._batch_s * _BUDGET):
            began = time.thread_time()
            self._parts.try_out()
        return max(_MIN_S, (time.thread_time() - began) * _EMPTY_RECORD_FACTOR)

    def _decode_once(
        self, payloads: Sequence[bytes | None], window: MessageWindow, envelope: Envelope | None
    ) -> Decoded:
        """Each payload as one row."""
        self._give_up_at = time.thread_time() + self._batch_s * _BUDGET
        return self._decode_or_split(payloads, window, envelope, self._batch_s)

    def _decode_or_split(
        self, payloads: Sequence[bytes | None], window: MessageWindow, envelope: Envelope | None, seconds: float
    ) -> Decoded:
        """Splits a batch on which DuckDB fails (memory, time, internal error) until it finds the record at fault."""
        try:
            with self._watchdog.watching(seconds):
                return self._parts.decode(payloads, window, envelope)
        except TooManyFields as too_many:
            if too_many.fields > MAX_IN_BATCH:
                raise TooWide(f"{len(payloads)} records have {too_many.fields:,} fields to discover") from None
            return self._in_parts(payloads, window, envelope, seconds, -(-len(payloads) // 2))
        except duckdb.InterruptException as error:
            self._check_budget(len(payloads))
            return self._split(payloads, window, envelope, seconds, error)
        except _FAULTS as error:
            self._restart()
            return self._split(payloads, window, envelope, seconds, error)

    def _check_budget(self, records: int) -> None:
        if time.thread_time() > self._give_up_at:
            raise TooSlow(
                f"records can't be decoded in time: {records} of a batch were not within {self._batch_s * _BUDGET:g} s "
                "of processor time. Simplify the spec's expressions, patterns and paths"
            )

    def _split(
        self,
        payloads: Sequence[bytes | None],
        window: MessageWindow,
        envelope: Envelope | None,
        seconds: float,
        error: BaseException,
    ) -> Decoded:
        if len(payloads) < 2:
            self._check_good_record(error)
            message = f"the decoder failed on this record: {_reason(error, seconds)}"
            return Decoded(self._parts.no_rows(), dict.fromkeys(range(len(payloads)), message))
        size = -(-len(payloads) // _PORTIONS)
        return self._in_parts(payloads, window, envelope, max(seconds / 4, self._min_record_s), size)

    def _in_parts(
        self,
        payloads: Sequence[bytes | None],
        window: MessageWindow,
        envelope: Envelope | None,
        seconds: float,
        size: int,
    ) -> Decoded:
        parts = []
        for start in range(0, len(payloads), size):
            span = range(start, min(start + size, len(payloads)))
            part = self._decode_or_split(payloads[start : span.stop], window, take_records(envelope, span), seconds)
            parts.append(part.moved(span))
        return join_decoded(parts)

    def _check_good_record(self, error: BaseException) -> None:
        try:
            self._measure_record_s()
        except _FAULTS as second_error:
            raise DecoderBroken(f"DuckDB cannot decode even an empty object: {_first_line(second_error)}") from error

    def _restart(self) -> None:
        self._parts.close()
        self._parts = self._compile()


def _interrupter(decoder: JsonDecoder) -> Callable[[], None]:
    """Interrupts what the decoder does then. A watchdog's thread must not keep it alive until the process ends."""
    reference = weakref.ref(decoder)

    def interrupt() -> None:
        alive = reference()
        if alive is not None:
            alive._parts.interrupt()

    return interrupt


def _reason(error: BaseException, seconds: float) -> str:
    if isinstance(error, duckdb.InterruptException):
        return f"it takes more than {seconds:.1f} s of processor time"
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


class _CompiledSchema:
    """One connection and what is compiled on it."""

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
        self._diagnosis = Diagnosis(self._engine)

    def interrupt(self) -> None:
        self._engine.interrupt()

    def close(self) -> None:
        self._engine.close()

    def no_rows(self) -> pa.Table:
        return self._decoded(decode_texts([]), _UNBOUNDED).rows

    def try_out(self) -> None:
        """Go through all of it once: whatever is wrong with it, and not with a record, is raised."""
        self._engine.clear_interrupt()
        nothing: list[None] = [None] * len(_GOOD_PAYLOADS)
        self._reader.read(_GOOD_PAYLOADS, Envelope("", nothing, nothing, [()] * len(_GOOD_PAYLOADS)))
        self._decoded(decode_texts(_GOOD_PAYLOADS), _UNBOUNDED)

    def decode(self, payloads: Sequence[bytes | None], window: MessageWindow, envelope: Envelope | None) -> Decoded:
        self._engine.clear_interrupt()
        decoded = self._decoded(self._reader.read(payloads, envelope), window)
        if None not in payloads:
            return decoded
        without_value = [i for i, payload in enumerate(payloads) if payload is None]
        errors = {i: error for i, error in decoded.unparseable.items() if payloads[i] is not None}
        return replace(decoded, unparseable=errors, tombstones=without_value)

    def _decoded(self, read: Texts, window: MessageWindow) -> Decoded:
        texts, errors = read
        fields = self._fields.read(texts)
        refused = [i for i in np.flatnonzero(~fields.is_object).tolist() if i not in errors]
        errors |= self._diagnosis.errors(texts, refused)
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
        columns = columns if keeps_all else _filter_columns(columns, pa.array(is_kept))
        masks = {name: pa.array(matching.is_kept[is_kept]) for name, matching in counted.items()}
        kept_ms = ms if keeps_all else ms[is_kept]
        numbers = self._numbers.apply(columns, kept_ms, masks)
        alone = frozenset(n for n in made_fields.columns if _is_absent(fields.columns.get(n)))
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


def _is_absent(texts: pa.Array | None) -> bool:
    """Of a field as records have it."""
    return texts is None or texts.null_count == len(texts)


def _filter_columns(columns: dict[str, pa.Array], kept: pa.Array) -> dict[str, pa.Array]:
    return {name: column.filter(kept) for name, column in columns.items()}
