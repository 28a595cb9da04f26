"""Records to rows, in this process: a reader makes JSON texts of them (see ``formats``), the stage here makes rows.

What is a record of JSON, and what is done with the odd ones:

- A record is one JSON object in UTF-8. null, an empty payload, other JSON values, several values, and text that
  DuckDB's parser refuses (a lone surrogate, a raw control character, a comment) are unparseable.
- A byte order mark is dropped; a trailing comma is let pass, as DuckDB does.
- NaN and Infinity, which are not JSON but are widely written, are read and become null in a numeric column.
- Of a field that stands twice in a record the first counts. Names that differ only by case are different fields.
- ``\\u0000`` is kept in values and names. Nesting has no limit: nested values are kept as JSON text, unopened.
- A field named ``__time`` is not discovered: the name is the segment's own. One named ``__row`` is.
- At most 1,000 fields are discovered in a batch; a record that holds a rarer one beyond them is unparseable.
- A record that needs more memory than the decoder may have is unparseable; its neighbours are decoded without it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestion.decode.columns import ColumnTyper, Values
from ingestion.decode.decoded import ROW, TIME, TIME_TYPE, Decoded, joined
from ingestion.decode.engine import Engine
from ingestion.decode.envelope import Envelope, taken
from ingestion.decode.errors import DecoderBroken, UnusableSchema
from ingestion.decode.fields import FieldReader, Fields, Mask
from ingestion.decode.filters import FilterRunner
from ingestion.decode.formats import JSON, Access, Tools, reader_of
from ingestion.decode.formats.base import Texts
from ingestion.decode.payloads import Diagnosis, texts_of
from ingestion.decode.times import TimeReader, truncated
from ingestion.decode.window import MessageWindow
from ingestion.specs import DataSchema, InputFormat

DEFAULT_MEMORY_LIMIT_BYTES = 1024 * 1024 * 1024
_UNBOUNDED = MessageWindow()
_NO_ACCESS = Access()
_FAULTS = (duckdb.Error, pa.ArrowException, MemoryError)
_GOOD = [b"{}", b'{"":1}']


class JsonDecoder:
    """Decodes batches of payloads of one format by a ``DataSchema``. Not thread-safe. Close it.

    ``memory_limit_bytes`` bounds DuckDB's memory. ``crash_marker`` is a failpoint for tests: a batch with a payload
    that contains it ends the process at once. ``access`` is what formats may use beside it. Raises ``UnusableSchema``.
    """

    def __init__(
        self,
        schema: DataSchema,
        memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES,
        crash_marker: bytes | None = None,
        input_format: InputFormat = JSON,
        access: Access = _NO_ACCESS,
    ) -> None:
        self._crash_marker = crash_marker
        self._made = partial(_Parts, schema, memory_limit_bytes, input_format, access)
        try:
            self._parts = self._made()
            self._parts.try_out()
        except (duckdb.Error, UnicodeEncodeError) as error:
            raise UnusableSchema(f"the dataSchema can't be used: {_first_line(error)}") from error

    def decode(
        self,
        payloads: Sequence[bytes | None],
        window: MessageWindow = _UNBOUNDED,
        envelope: Envelope | None = None,
    ) -> Decoded:
        """What becomes of every payload. ``envelope``: required by the format ``kafka``, unread by any other.

        Raises ``DecoderBroken`` when the fault is not in the records, ``RegistryUnreachable``.
        """
        if self._crash_marker is not None and any(p and self._crash_marker in p for p in payloads):
            os._exit(70)
        return self._decode_or_split(payloads, window, envelope)

    def close(self) -> None:
        """Free DuckDB's memory. The decoder is of no use afterwards."""
        self._parts.close()

    def _decode_or_split(
        self, payloads: Sequence[bytes | None], window: MessageWindow, envelope: Envelope | None
    ) -> Decoded:
        """A batch that DuckDB gives up on (memory, an internal error) is halved until the cause stands alone."""
        try:
            return self._parts.decode(payloads, window, envelope)
        except _FAULTS as error:
            self._start_anew()
            return self._split(payloads, window, envelope, error)

    def _split(
        self,
        payloads: Sequence[bytes | None],
        window: MessageWindow,
        envelope: Envelope | None,
        error: BaseException,
    ) -> Decoded:
        if len(payloads) < 2:
            self._check_by_a_good_record(error)
            message = f"the decoder gives up on this record: {_first_line(error)}"
            return Decoded(self._parts.no_rows(), dict.fromkeys(range(len(payloads)), message))
        middle = len(payloads) // 2
        second_half = range(middle, len(payloads))
        first = self._decode_or_split(payloads[:middle], window, taken(envelope, range(middle)))
        second = self._decode_or_split(payloads[middle:], window, taken(envelope, second_half))
        return joined([first, second.moved(second_half)])

    def _check_by_a_good_record(self, error: BaseException) -> None:
        try:
            self._parts.try_out()
        except _FAULTS as again:
            raise DecoderBroken(f"DuckDB decodes not even an empty object: {_first_line(again)}") from error

    def _start_anew(self) -> None:
        self._parts.close()
        self._parts = self._made()


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


class _Parts:
    """One connection and what is compiled on it."""

    def __init__(
        self,
        schema: DataSchema,
        memory_limit_bytes: int,
        input_format: InputFormat,
        access: Access,
    ) -> None:
        self._engine = Engine(memory_limit_bytes)
        self._reader = reader_of(input_format, Tools.of(self._engine, schema, access))
        dimensions = schema.dimensionsSpec
        self._time_column = schema.timestampSpec.column
        self._granularity = schema.granularitySpec
        self._kinds = {d.name: d.type for d in dimensions.dimensions}
        self._discovers = dimensions.discovers
        self._unstored = {*dimensions.dimensionExclusions, self._time_column, TIME}
        self._fields = FieldReader(
            self._engine, [self._time_column, *self._kinds], self._discovers, self._unstored.__contains__
        )
        self._times = TimeReader(self._engine, schema.timestampSpec, self._granularity.segmentGranularity)
        condition = schema.transformSpec.filter
        self._filter = None if condition is None else FilterRunner(self._engine, condition)
        self._typer = ColumnTyper(self._engine)
        self._diagnosis = Diagnosis(self._engine)

    def close(self) -> None:
        self._engine.close()

    def no_rows(self) -> pa.Table:
        return self._decoded(texts_of([]), _UNBOUNDED).rows

    def try_out(self) -> None:
        """Go through all of it once: whatever is wrong with it, and not with a record, is raised."""
        nothing: list[None] = [None] * len(_GOOD)
        self._reader.read(_GOOD, Envelope("", nothing, nothing, [()] * len(_GOOD)))
        self._decoded(texts_of(_GOOD), _UNBOUNDED)

    def decode(self, payloads: Sequence[bytes | None], window: MessageWindow, envelope: Envelope | None) -> Decoded:
        return self._decoded(self._reader.read(payloads, envelope), window)

    def _decoded(self, read: Texts, window: MessageWindow) -> Decoded:
        texts, errors = read
        fields = self._fields.read(texts)
        refused = [i for i in np.flatnonzero(~fields.is_object).tolist() if i not in errors]
        errors |= self._diagnosis.errors(texts, refused)
        times = self._times.read(fields.columns[self._time_column], fields.is_object)
        errors |= times.errors
        good = fields.is_object & times.readable
        matching = self._matching(texts, times.ms, good)
        kept = matching & _inside(times.ms, window)
        fields, kept, beyond = self._discover(texts, fields, kept)
        ms = truncated(times.ms, self._granularity.queryGranularity, self._granularity.segmentGranularity)
        return Decoded(
            rows=self._rows(texts, fields, ms, kept),
            unparseable=dict(sorted((errors | beyond).items())),
            filtered=np.flatnonzero(good & ~matching).tolist(),
            outside_window=np.flatnonzero(matching & ~_inside(times.ms, window)).tolist(),
        )

    def _matching(self, texts: pa.Array, ms: npt.NDArray[np.int64], good: Mask) -> Mask:
        if self._filter is None:
            return good
        matching = good.copy()
        matching[good] = self._filter.matches(texts.filter(pa.array(good)), pa.array(ms[good]))
        return matching

    def _discover(self, texts: pa.Array, fields: Fields, kept: Mask) -> tuple[Fields, Mask, dict[int, str]]:
        if not self._discovers:
            return fields, kept, {}
        changed, beyond = self._fields.learn(texts, fields, kept)
        if beyond:
            kept = kept.copy()
            kept[list(beyond)] = False
        return (self._fields.read(texts) if changed else fields), kept, beyond

    def _rows(self, texts: pa.Array, fields: Fields, ms: npt.NDArray[np.int64], kept: Mask) -> pa.Table:
        index = np.flatnonzero(kept).astype(np.int32)
        whole = len(index) == len(kept)
        columns = fields.columns if whole else _filtered(fields.columns, pa.array(kept))
        dimensions = self._dimensions(columns, partial(_record_text, texts, index))
        time = pa.array(ms if whole else ms[kept], pa.int64()).view(TIME_TYPE)
        names = [ROW, TIME, *(name for name, _ in dimensions)]
        return pa.table([pa.array(index), time, *(column for _, column in dimensions)], names=names)

    def _dimensions(self, texts: dict[str, pa.Array], record_text: partial[str]) -> list[tuple[str, pa.Array]]:
        """The named dimensions in their order, then the discovered ones in the order they were first met."""
        named = [
            (name, self._typer.typed(Values(texts[name]), kind, name, record_text))
            for name, kind in self._kinds.items()
        ]
        return named + self._discovered(texts, record_text) if self._discovers else named

    def _discovered(self, texts: dict[str, pa.Array], record_text: partial[str]) -> list[tuple[str, pa.Array]]:
        others = ((n, t) for n, t in texts.items() if n not in self._unstored and n not in self._kinds)
        values = {name: Values(column) for name, column in others}
        held = {name: v for name, v in values.items() if v.total}
        self._fields.forget_all_but(held)
        return [(name, self._typer.discovered(v, name, record_text)) for name, v in held.items()]


def _inside(ms: npt.NDArray[np.int64], window: MessageWindow) -> Mask:
    inside = np.ones(len(ms), np.bool_)
    if window.earliest_ms is not None:
        inside &= ms >= window.earliest_ms
    if window.latest_ms is not None:
        inside &= ms < window.latest_ms
    return inside


def _filtered(columns: dict[str, pa.Array], kept: pa.Array) -> dict[str, pa.Array]:
    return {name: column.filter(kept) for name, column in columns.items()}


def _record_text(texts: pa.Array, index: npt.NDArray[np.int32], row: int) -> str:
    return str(texts[int(index[row])].as_py())
