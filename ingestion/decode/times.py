# ruff: noqa: S608 - the SQL is built of constants; field names pass through engine.pointer, values are bound
"""From the timestamp field to ``__time``: milliseconds since 1970 in UTC, cut down (also before 1970), never rounded.

| format | what is read |
|---|---|
| auto | ISO 8601, or a number (also in a string): milliseconds |
| iso | a date, then optionally ``T`` or a blank and a time, then optionally a zone (below) |
| millis | a number, also in a string |
| micro, nano | a number, also in a string: microseconds, nanoseconds |
| posix, ruby | a number of seconds, fractions too, also in a string |
| Joda's pattern, or one with ``%`` | DuckDB's strptime; no zone is UTC |

An ISO date is ``2025-06-01``; its time has hours, or also minutes, or also seconds, or also up to nine decimals, with
or without colons; its zone is ``Z``, ``UTC``, ``GMT`` or an offset (``+02``, ``+0200``, ``+02:00``); without one: UTC.
A time must be in the years 1 to 9999 and early enough that its segment's interval ends before year 10000.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.columns import NUMBER_PATTERN, TEXT, Values, cast
from ingestion.decode.engine import TEXTS, Engine, literal
from ingestion.decode.fields import Mask, flat, validity
from ingestion.specs import AnyGranularity, Granularity, TimestampSpec
from ingestion.specs.granularity import MAX_TIME, MIN_TIME
from ingestion.specs.joda import strptime_patterns

Times = npt.NDArray[np.int64]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FIRST_MS = (MIN_TIME - _EPOCH) // _MILLISECOND
_MONDAY_MS = 4 * 86_400_000
_MONTHS = {Granularity.MONTH: 1, Granularity.QUARTER: 3, Granularity.YEAR: 12}
_SHOWN = 60

_ISO_PATTERN = (
    r"'^(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2})(?::?(\d{2})(?::?(\d{2})(?:[.,](\d{1,9}))?)?)?)?"
    r"(?: ?(Z|z|UTC|GMT|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?))?$'"
)
_ISO_PARTS = f"regexp_extract(t, {_ISO_PATTERN}, ['day', 'hour', 'minute', 'second', 'part', 'zone'])"
_ISO_LOCAL = """epoch_ms(TRY_CAST(x.day || ' ' || coalesce(nullif(x.hour, ''), '00') || ':' ||
  coalesce(nullif(x.minute, ''), '00') || ':' || coalesce(nullif(x.second, ''), '00') || '.' ||
  left(x.part || '000', 3) AS TIMESTAMP))"""
_ISO_OFFSET = """CASE WHEN x.zone[1] IN ('+', '-') THEN (CASE x.zone[1] WHEN '-' THEN -1 ELSE 1 END) *
  (TRY_CAST(x.zone[2:3] AS BIGINT) * 60 + coalesce(TRY_CAST(replace(x.zone[4:], ':', '') AS BIGINT), 0)) * 60000
  ELSE 0 END"""
_ISO = f"CASE WHEN x.day <> '' THEN {_ISO_LOCAL} - {_ISO_OFFSET} END"
_IS_NUMBER = f"regexp_full_match(t, {NUMBER_PATTERN})"


def _scaled(scale: str, decimals: int = 6) -> str:
    """A number times or divided by something, cut down to whole milliseconds."""
    number = f"TRY_CAST(t AS DECIMAL(24, {decimals}))"
    return f"CASE WHEN {_IS_NUMBER} THEN TRY_CAST(floor({number} {scale}) AS BIGINT) END"


_MILLIS = _scaled("")
_NUMBERS = {
    "millis": _MILLIS,
    "posix": _scaled("* 1000", 9),
    "ruby": _scaled("* 1000", 9),
    # Whole first: the division is then one of integers, without rounding.
    "micro": f"CASE WHEN {_IS_NUMBER} THEN TRY_CAST(floor(TRY_CAST(t AS DECIMAL(24, 3))) AS HUGEINT) END",
    "nano": f"CASE WHEN {_IS_NUMBER} THEN TRY_CAST(floor(TRY_CAST(t AS DECIMAL(30, 3))) AS HUGEINT) END",
}
_PER_MILLI = {"micro": 1000, "nano": 1_000_000}
_STRPTIME = "(us - ((us % 1000) + 1000) % 1000) // 1000"


def query(time_format: str) -> str:
    """SQL over ``texts`` that gives every text's time in milliseconds, null where it can't be read."""
    source = f"SELECT {TEXT} AS t FROM texts"
    if time_format in _PER_MILLI:
        per = _PER_MILLI[time_format]
        whole = f"SELECT {_NUMBERS[time_format]} AS n FROM ({source})"
        return f"SELECT TRY_CAST((n - ((n % {per}) + {per}) % {per}) // {per} AS BIGINT) AS ms FROM ({whole})"
    if time_format in _NUMBERS:
        return f"SELECT {_NUMBERS[time_format]} AS ms FROM ({source})"
    if time_format == "iso":
        return f"SELECT {_ISO} AS ms FROM (SELECT {_ISO_PARTS} AS x FROM ({source}))"
    if time_format == "auto":
        number = f"SELECT {_MILLIS} AS number, {_ISO_PARTS} AS x FROM ({source})"
        return f"SELECT coalesce(number, {_ISO}) AS ms FROM ({number})"
    patterns = [time_format] if "%" in time_format else strptime_patterns(time_format)
    parsed = f"SELECT try_strptime(t, [{', '.join(map(literal, patterns))}]) AS p FROM ({source})"
    whole = f"SELECT CASE WHEN isfinite(p) THEN epoch_us(p) END AS us FROM ({parsed})"
    return f"SELECT {_STRPTIME} AS ms FROM ({whole})"


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
        self._sql = query(spec.format)
        self._missing_ms = None if spec.missingValue is None else (spec.missingValue - _EPOCH) // _MILLISECOND
        self._first = _FIRST_MS
        self._end = end_of_time(segment_granularity)

    def read(self, texts: pa.Array, wanted: Mask) -> ReadTimes:
        """The times of the ``wanted`` rows; ``texts`` is the field's JSON text, null where the record has none."""
        values = Values(texts)
        parsed = self._milliseconds(values)
        readable = validity(parsed)
        ms = np.asarray(parsed.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
        if self._missing_ms is not None and values.texts.null_count:
            missing = ~validity(values.texts)
            ms = np.where(missing, self._missing_ms, ms)
            readable = readable | missing
        inside = (ms >= self._first) & (ms < self._end)
        bad = np.flatnonzero(wanted & ~(readable & inside)).tolist()
        errors = {i: self._error(values.texts[i].as_py(), bool(readable[i])) for i in bad}
        return ReadTimes(ms, readable & inside, errors)

    def _milliseconds(self, values: Values) -> pa.Array:
        quick = self._quick(values)
        if quick is not None:
            return quick
        return flat(self._engine.run(self._sql, TEXTS, pa.table({"e": values.texts})).column(0)).cast(pa.int64())

    def _quick(self, values: Values) -> pa.Array | None:
        """What Arrow reads at once when all values are alike; None when DuckDB is to look at them."""
        if self._spec.format in ("auto", "iso") and values.strings == values.total:
            return None if values.unquoted is None else _iso(values.unquoted)
        if self._spec.format in ("auto", "millis") and values.numbers == values.total:
            return values.whole
        if values.numbers < values.total or values.whole is None:
            return None
        if self._spec.format in ("posix", "ruby"):
            return _thousandfold(values.whole)
        return _divided(values.whole, _PER_MILLI[self._spec.format]) if self._spec.format in _PER_MILLI else None

    def _error(self, text: str | None, readable: bool) -> str:
        column = self._spec.column
        if text is None and self._missing_ms is None:
            return f"field {_shown(column)!r} holds no time: it is missing or null"
        if not readable:
            return f"field {_shown(column)!r} holds no time of format {self._spec.format}: {_shown(text or '')}"
        last = _EPOCH + timedelta(milliseconds=self._end - 1)
        shown = f"{_shown(column)!r} is not between year 1 and {last:%Y-%m-%dT%H:%M:%S}Z: {_shown(text or '')}"
        return f"the time in field {shown}"


def _iso(texts: pa.Array) -> pa.Array | None:
    """ISO 8601 as Arrow reads it: all with a zone or all without, down to microseconds; else None."""
    first = pc.drop_null(texts)
    zoned = len(first) > 0 and first[0].as_py()[10:].strip("0123456789.:T ") != ""
    times = cast(texts, pa.timestamp("us", "UTC" if zoned else None))
    if times is None:
        return None
    micros = times.view(pa.int64())
    return pa.array(np.floor_divide(micros.fill_null(0).to_numpy(), 1000), mask=~validity(micros))


def _thousandfold(seconds: pa.Array) -> pa.Array | None:
    try:
        return pc.multiply_checked(seconds, 1000)
    except pa.ArrowInvalid:
        return None


def _divided(whole: pa.Array, by: int) -> pa.Array:
    return pa.array(np.floor_divide(whole.fill_null(0).to_numpy(), by), mask=~validity(whole))


def _shown(text: str) -> str:
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
