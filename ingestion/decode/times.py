# ruff: noqa: S608 - the SQL is built of constants; field names pass through engine.pointer, values are bound
"""From the timestamp field to ``__time``: milliseconds since 1970 in UTC, as Druid reads them, never rounded.

| format | what is read |
|---|---|
| auto | a number, or a string of digits: milliseconds; else ISO 8601 with ``T`` or a blank |
| iso | ISO 8601 with ``T``; a whole number that is none: milliseconds |
| millis, posix | a number (its fraction is cut off), or a whole one in a string: milliseconds, seconds |
| micro, nano | a number (its fraction is cut off), or a whole one in a string; cut towards 1970 |
| ruby | a number of seconds, fractions too, also in a string |
| Joda's pattern | see ``joda_reader`` |
| a pattern with ``%`` | DuckDB's strptime |

A time without a zone is in UTC. DuckDB and Arrow read what is written plainly, ``druid_timestamps`` the rest. A time
must be in the years 1 to 9999 and early enough that its segment's interval ends before year 10000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode import druid_timestamps, joda_patterns
from ingestion.decode.columns import AS_TEXT, Values, cast
from ingestion.decode.engine import TEXTS, Engine, sql_literal
from ingestion.decode.fields import Mask, flat, validity
from ingestion.decode.numbers import NUMBER_PATTERN, TEXT
from ingestion.specs.schema.data_schema import TimestampSpec
from ingestion.specs.schema.granularity import MAX_TIME, MIN_TIME, Granularity
from ingestion.specs.schema.joda import split_pattern, strptime_patterns
from ingestion.specs.schema.periods import AnyGranularity

Times = npt.NDArray[np.int64]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FIRST_MS = (MIN_TIME - _EPOCH) // _MILLISECOND
_MONDAY_MS = 4 * 86_400_000
_MONTHS = {Granularity.MONTH: 1, Granularity.QUARTER: 3, Granularity.YEAR: 12}
_SHOWN = 60
_DATE = len("2025-06-01")
_UP_TO_HOUR = len("2025-06-01T00")

# ISO 8601 as it is mostly written. {between}: the letters that may stand before the clock.
_ISO_PATTERN = (
    r"'^(\d{{4}}-\d{{2}}-\d{{2}})(?:[{between}]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,](\d{{1,9}}))?)?"
    r"(Z|z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?$'"
)
_ISO_PARTS = f"regexp_extract(t, {_ISO_PATTERN}, ['day', 'hour', 'minute', 'second', 'part', 'zone'])"
_ISO_LOCAL = """epoch_ms(TRY_CAST(x.day || ' ' || coalesce(nullif(x.hour, ''), '00') || ':' ||
  coalesce(nullif(x.minute, ''), '00') || ':' || coalesce(nullif(x.second, ''), '00') || '.' ||
  left(x.part || '000', 3) AS TIMESTAMP))"""
_ISO_OFFSET = """CASE WHEN x.zone[1] IN ('+', '-') THEN (CASE x.zone[1] WHEN '-' THEN -1 ELSE 1 END) *
  (TRY_CAST(x.zone[2:3] AS BIGINT) * 60 + coalesce(TRY_CAST(replace(x.zone[4:], ':', '') AS BIGINT), 0)) * 60000
  ELSE 0 END"""
_ISO = f"CASE WHEN x.day <> '' THEN {_ISO_LOCAL} - {_ISO_OFFSET} END"
_BETWEEN = {"auto": "Tt ", "iso": "Tt"}
# Digits alone: of ``iso`` they are a year unless they are more than a year has.
_DIGITS = {"auto": "'[0-9]+'", "iso": "'[0-9]{10,}'"}

_WRITTEN_WHOLE = r"""'\s*"?\s*[-+]?[0-9]+\s*"?\s*'"""
_WHOLE = f"""CASE
  WHEN regexp_full_match(t, {_WRITTEN_WHOLE}) THEN TRY_CAST(regexp_extract(t, '[-+]?[0-9]+') AS BIGINT)
  WHEN NOT starts_with(e, '"') AND regexp_full_match(t, {NUMBER_PATTERN})
  THEN TRY_CAST(trunc(TRY_CAST(t AS DOUBLE)) AS BIGINT) END"""
_DOUBLE = f"""CASE WHEN regexp_full_match(regexp_replace(t, '[dDfF]\\s*$', ''), {NUMBER_PATTERN})
  THEN TRY_CAST(regexp_replace(t, '[dDfF]\\s*$', '') AS DOUBLE) END"""
_PER_MILLI = {"micro": 1000, "nano": 1_000_000}
_NUMBERS = {
    "millis": "n",
    "posix": "TRY_CAST(CAST(n AS HUGEINT) * 1000 AS BIGINT)",
    **{name: f"n // {per}" for name, per in _PER_MILLI.items()},
}
_STRPTIME = "(us - ((us % 1000) + 1000) % 1000) // 1000"


def time_query(time_format: str) -> str | None:
    """SQL over ``texts`` that gives times in milliseconds, null where it reads none; None if DuckDB is no help."""
    source = f"SELECT e, {TEXT} AS t FROM texts"
    if time_format == "ruby":
        return f"SELECT TRY_CAST(trunc({_DOUBLE} * 1000) AS BIGINT) AS ms FROM ({source})"
    if time_format in _NUMBERS:
        return f"SELECT {_NUMBERS[time_format]} AS ms FROM (SELECT {_WHOLE} AS n FROM ({source}))"
    if time_format in _BETWEEN:
        return _query_of_iso(time_format, source)
    if "%" in time_format:
        return _query_of_strptime(f"try_strptime(t, [{sql_literal(time_format)}])", source)
    return _query_of_joda(time_format, source)


def _query_of_joda(time_format: str, source: str) -> str | None:
    """Of patterns with a year alone; strptime's parts that are not there are those of 1900."""
    shape, patterns = joda_patterns.shape(time_format), strptime_patterns(time_format)
    if shape is None or not patterns or not {"y", "Y"} & {run[:1] for run, _ in split_pattern(time_format)}:
        return None
    condition = f"regexp_full_match(t, {sql_literal(shape)})"
    if all(p.endswith("%z") for p in patterns):  # with an offset it takes the 31st of a month that has 30 days
        local = f"regexp_replace(t, '{joda_patterns.OFFSET}$', '')"
        condition += f" AND {_strptime(local, [p.removesuffix('%z') for p in patterns])} IS NOT NULL"
    elif any("%z" in p for p in patterns):
        return None
    return _query_of_strptime(f"CASE WHEN {condition} THEN {_strptime('t', patterns)} END", source)


def _strptime(text: str, patterns: list[str]) -> str:
    return f"try_strptime({text}, [{', '.join(map(sql_literal, patterns))}])"


def _query_of_iso(time_format: str, source: str) -> str:
    """Numbers of ``auto`` lose their fraction; of ``iso`` one that has any is no time."""
    numbers = _WHOLE if time_format == "auto" else "TRY_CAST(t AS BIGINT)"
    are_numbers = f"regexp_full_match(t, {_DIGITS[time_format]})"
    if time_format == "auto":
        are_numbers += """ OR NOT starts_with(e, '"')"""
    parts = f"{_ISO_PARTS.format(between=_BETWEEN[time_format])} AS x"
    texts = f"SELECT e, t, {parts} FROM ({source})"
    return f"SELECT CASE WHEN {are_numbers} THEN {numbers} ELSE {_ISO} END AS ms FROM ({texts})"


def _query_of_strptime(parsed: str, source: str) -> str:
    micros = f"SELECT CASE WHEN isfinite(p) THEN epoch_us(p) END AS us FROM (SELECT {parsed} AS p FROM ({source}))"
    return f"SELECT {_STRPTIME} AS ms FROM ({micros})"


@dataclass(frozen=True)
class ReadTimes:
    """The times of a batch."""

    ms: Times  # meaningful where ``readable``
    readable: Mask
    errors: dict[int, str]  # by index, why the others are not


class TimeReader:
    """Reads a batch's timestamp field by its ``TimestampSpec``."""

    def __init__(self, engine: Engine, spec: TimestampSpec, segment_granularity: AnyGranularity) -> None:
        self._engine = engine
        self._spec = spec
        self._sql = time_query(spec.format)
        numbers_or_ours = spec.format in (*_NUMBERS, "ruby") or "%" in spec.format
        self._one_by_one = None if numbers_or_ours else druid_timestamps.reader(spec.format)
        self._missing_ms = None if spec.missingValue is None else (spec.missingValue - _EPOCH) // _MILLISECOND
        self._first = _FIRST_MS
        self._end = end_of_time(segment_granularity)

    def read(self, texts: pa.Array, is_wanted: Mask) -> ReadTimes:
        """The times of the ``is_wanted`` rows; ``texts`` is the field's JSON text, null where the record has none."""
        values = Values(texts)
        parsed = self._milliseconds(values)
        readable = validity(parsed)
        ms = np.asarray(parsed.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
        if self._missing_ms is not None and values.texts.null_count:
            missing = ~validity(values.texts)
            ms = np.where(missing, self._missing_ms, ms)
            readable = readable | missing
        inside = (ms >= self._first) & (ms < self._end)
        bad = np.flatnonzero(is_wanted & ~(readable & inside)).tolist()
        errors = {i: self._error(values.texts[i].as_py(), bool(readable[i])) for i in bad}
        return ReadTimes(ms, readable & inside, errors)

    def _milliseconds(self, values: Values) -> pa.Array:
        quick = self._read_uniform(values)
        if quick is not None:
            return quick
        table = pa.table({"e": values.texts})
        times = pa.nulls(len(values.texts), pa.int64())
        if self._sql is not None:
            times = flat(self._engine.run(self._sql, TEXTS, table).column(0)).cast(pa.int64())
        if self._one_by_one is None or times.null_count == values.texts.null_count:
            return times
        return self._read_remaining(self._one_by_one, values.texts, times)

    def _read_remaining(self, read: Callable[[str], int | None], texts: pa.Array, times: pa.Array) -> pa.Array:
        """And those of the other texts that hold a time."""
        is_left = validity(texts) & ~validity(times)
        written = flat(self._engine.run(AS_TEXT, TEXTS, pa.table({"e": texts.filter(pa.array(is_left))})).column(0))
        read_times = pa.array(map(read, written.to_pylist()), pa.int64())
        return pc.replace_with_mask(times, pa.array(is_left), read_times)

    def _read_uniform(self, values: Values) -> pa.Array | None:
        """What Arrow reads at once when all values are alike; None when DuckDB is to look at them."""
        if self._spec.format in _BETWEEN and values.strings == values.total:
            plain = values.unquoted is not None and _is_plain(values.unquoted, self._spec.format == "auto")
            return _parse_iso(values.unquoted) if plain else None
        if self._spec.format in ("auto", "millis") and values.numbers == values.total:
            return values.integers
        if values.numbers < values.total or values.integers is None:
            return None
        if self._spec.format in ("posix", "ruby"):
            return _thousandfold(values.integers)
        return _divide(values.integers, _PER_MILLI[self._spec.format]) if self._spec.format in _PER_MILLI else None

    def _error(self, text: str | None, readable: bool) -> str:
        column = self._spec.column
        if text is None and self._missing_ms is None:
            return f"field {_shorten(column)!r} has no time: it is missing or null"
        if not readable:
            return f"field {_shorten(column)!r} has no time of format {self._spec.format}: {_shorten(text or '')}"
        last = _EPOCH + timedelta(milliseconds=self._end - 1)
        shown = f"{_shorten(column)!r} is not between year 1 and {last:%Y-%m-%dT%H:%M:%S}Z: {_shorten(text or '')}"
        return f"the time in field {shown}"


def _parse_iso(texts: pa.Array) -> pa.Array | None:
    """ISO 8601 as Arrow reads it: all with a zone or all without, down to microseconds; else None."""
    first = pc.drop_null(texts)
    zoned = len(first) > 0 and first[0].as_py()[10:].strip("0123456789.:T ") != ""
    times = cast(texts, pa.timestamp("us", "UTC" if zoned else None))
    if times is None:
        return None
    micros = times.view(pa.int64())
    return pa.array(np.floor_divide(micros.fill_null(0).to_numpy(), 1000), mask=~validity(micros))


def _is_plain(texts: pa.Array, blank: bool) -> bool:
    """Whether no text has an hour without minutes or a clock without colons, nor, unless it may, a blank for the T.

    Arrow reads such times, Druid other ones or none.
    """
    if not len(texts):
        return True
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    starts, lengths = ends[:-1], np.diff(ends)
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    clocked = starts[lengths > _DATE]
    if not clocked.size:
        return True
    if lengths[lengths > _DATE].min() <= _UP_TO_HOUR or (data[clocked + _UP_TO_HOUR] != ord(":")).any():
        return False
    return blank or bool((data[clocked + _DATE] != ord(" ")).all())


def _thousandfold(seconds: pa.Array) -> pa.Array | None:
    try:
        return pc.multiply_checked(seconds, 1000)
    except pa.ArrowInvalid:
        return None


def _divide(dividends: pa.Array, by: int) -> pa.Array:
    numbers = dividends.fill_null(0).to_numpy()
    return pa.array(np.where(numbers < 0, -(-numbers // by), numbers // by), mask=~validity(dividends))


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def end_of_time(segment_granularity: AnyGranularity) -> int:
    """The first millisecond whose segment interval would end after year 9999 (a datetime can't say its end)."""
    if segment_granularity is Granularity.ALL or not isinstance(segment_granularity, Granularity):
        return (MAX_TIME - _EPOCH) // _MILLISECOND
    last = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
    return int(bucket_starts(np.array([last], np.int64), segment_granularity)[0])


def bucket_starts(ms: Times, granularity: AnyGranularity) -> Times:
    """The start of every time's bucket, as ``Granularity.bucket`` has it, for arrays of milliseconds."""
    if not isinstance(granularity, Granularity):
        fixed = granularity.fixed_ms
        return _starts_one_by_one(ms, granularity) if fixed is None else _equal_starts(ms, *fixed)
    if granularity is Granularity.NONE:
        return ms
    if granularity is Granularity.ALL:
        return np.full_like(ms, _FIRST_MS)
    seconds = granularity.fixed_seconds
    if seconds is None:
        return _month_starts(ms, _MONTHS[granularity])
    return _equal_starts(ms, _MONDAY_MS if granularity is Granularity.WEEK else 0, seconds * 1000)


def _equal_starts(ms: Times, origin: int, width: int) -> Times:
    return np.asarray(np.maximum(origin + np.floor_divide(ms - origin, width) * width, _FIRST_MS), np.int64)


def _starts_one_by_one(ms: Times, granularity: AnyGranularity) -> Times:
    """One look into the calendar for each bucket, not for each time."""
    times, places = np.unique(ms, return_inverse=True)
    starts = np.empty_like(times)
    at = 0
    while at < len(times):
        start, end = granularity.bucket(_EPOCH + timedelta(milliseconds=int(times[at])))
        after = int(np.searchsorted(times, (end - _EPOCH) // _MILLISECOND))
        starts[at:after] = (start - _EPOCH) // _MILLISECOND
        at = after
    return np.asarray(starts[places], np.int64)


def _month_starts(ms: Times, months: int) -> Times:
    since_1970 = ms.astype("datetime64[ms]").astype("datetime64[M]").astype(np.int64)
    first = np.floor_divide(since_1970, months) * months
    return first.astype("datetime64[M]").astype("datetime64[ms]").astype(np.int64)


def truncated(ms: Times, query_granularity: AnyGranularity, segment_granularity: AnyGranularity) -> Times:
    """Times cut to ``query_granularity``, but never out of their segment's interval (as in Druid)."""
    if query_granularity is Granularity.NONE:
        return ms
    return np.maximum(bucket_starts(ms, query_granularity), bucket_starts(ms, segment_granularity))
