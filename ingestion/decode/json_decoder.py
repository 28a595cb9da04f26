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
import pyarrow as pa

from ingestion.decode.compiled_schema import CompiledSchema
from ingestion.decode.decoded import Decoded, join_decoded
from ingestion.decode.envelope import Envelope, take_records
from ingestion.decode.errors import DecoderBroken, TooSlow, TooWide, UnusableSchema
from ingestion.decode.expressions import BadExpression
from ingestion.decode.fields import MAX_IN_BATCH, TooManyFields
from ingestion.decode.formats import JSON, keeps_digits
from ingestion.decode.formats.access import Access
from ingestion.decode.message_window import UNBOUNDED, MessageWindow
from ingestion.decode.multi_row import MultiRowReader
from ingestion.decode.payloads import MAX_EXPLAINED, NOT_AN_OBJECT
from ingestion.decode.watchdog import Watchdog
from ingestion.specs.formats.input_format import InputFormat
from ingestion.specs.schema.data_schema import DataSchema

DEFAULT_MEMORY_LIMIT_BYTES = 1024 * 1024 * 1024
DEFAULT_BATCH_S = 5.0
_PORTIONS = 16  # rather than halves: what can't be interrupted costs its whole time at each level
_BUDGET = 4.0  # times as long, to find the records that are too slow
_MIN_S = 0.1  # for a single record
_EMPTY_RECORD_FACTOR = 20
_NO_ACCESS = Access()
_FAULTS = (duckdb.Error, pa.ArrowException, MemoryError)


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
        self._compile = partial(CompiledSchema, schema, memory_limit_bytes, input_format, access, wants_digits)
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
        window: MessageWindow = UNBOUNDED,
        envelope: Envelope | None = None,
    ) -> Decoded:
        """What becomes of every payload. ``envelope``: required by the format ``kafka``, unread by any other.

        Raises ``DecoderBroken`` when the fault is not in the records, ``RegistryUnreachable``, ``TooSlow``,
        ``TooWide``.
        """
        if self._crash_marker is not None and any(p and self._crash_marker in p for p in payloads):
            os._exit(70)
        decoded = self._decode_once(payloads, window, envelope)
        if self._several is not None and decoded.unparseable:
            decoded = self._several.read(decoded, payloads, envelope, partial(self._decode_rows, window))
        return self._explained(decoded, payloads, envelope)

    def _decode_rows(self, window: MessageWindow, rows: Sequence[bytes | None], envelope: Envelope | None) -> Decoded:
        return self._explained(self._decode_once(rows, window, envelope), rows, envelope)

    def _explained(self, decoded: Decoded, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Decoded:
        """With what is wrong with the first of those that are no JSON objects."""
        errors = decoded.unparseable
        indexes = [i for i, error in errors.items() if error == NOT_AN_OBJECT][:MAX_EXPLAINED]
        if not indexes:
            return decoded
        try:
            with self._watchdog.watching(self._batch_s):
                reasons = self._parts.reasons([payloads[i] for i in indexes], take_records(envelope, indexes))
        except _FAULTS:
            self._restart()
            return decoded
        return replace(decoded, unparseable=errors | dict(zip(indexes, reasons, strict=True)))

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
