"""Druid's functions of times. A time is a TIMESTAMPTZ; its fields are those of the query's zone, or of a named one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from sqlglot import exp

from ingestion.decode.druid_datetimes import BadTime, parse_granularity, parse_zone, to_datetime
from ingestion.decode.druid_times import period_parts, timestamp_parse
from ingestion.decode.druid_values import EvaluationFailed
from ingestion.query.druid.values import Kind, Refused, SpecialFunction, call, kind_of, literal_text, of_kind, sql, text
from ingestion.specs.schema.intervals import interval_ms
from ingestion.specs.schema.joda import split_pattern

PERIODS = {"SECOND": "PT1S", "MINUTE": "PT1M", "HOUR": "PT1H", "DAY": "P1D", "WEEK": "P1W", "MONTH": "P1M"}
PERIODS |= {"QUARTER": "P3M", "YEAR": "P1Y"}
_SAME_FIELDS = "SECOND MINUTE HOUR DAY DOY WEEK MONTH QUARTER YEAR ISOYEAR DECADE CENTURY MILLENNIUM ISODOW"
# Of the time ``v``, whose clock shows ``local``.
_FIELDS = {unit: f"date_part('{unit.lower()}', local)" for unit in _SAME_FIELDS.split()} | {
    "DOW": "date_part('isodow', local)",
    "EPOCH": "CAST(floor(epoch_ms(v) / 1000) AS BIGINT)",
    "MILLISECOND": "date_part('millisecond', local) % 1000",
    "MICROSECOND": "date_part('microsecond', local) % 1000000",
}
# Joda's letters, by how many there are, in strftime's.
_STRFTIME = {"yyyy": "%Y", "YYYY": "%Y", "y": "%Y", "yy": "%y", "MM": "%m", "M": "%-m", "MMM": "%b", "MMMM": "%B"}
_STRFTIME |= {"dd": "%d", "d": "%-d", "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "mm": "%M", "m": "%-M"}
_STRFTIME |= {"ss": "%S", "s": "%-S", "SSS": "%g", "EEE": "%a", "E": "%a", "EEEE": "%A", "a": "%p", "DDD": "%j"}
_STRFTIME |= {"e": "%u", "ww": "%V", "xxxx": "%G"}
# Of what try_strptime and the cast take, what Joda's ISO parser takes too.
_DAY = r"\d{4}-\d{2}-\d{2}"
_ISO_TIME = rf"{_DAY}([T ]\d{{2}}:\d{{2}}(:\d{{2}}([.,]\d+)?)?)?(Z|[+-]\d{{2}}(:?\d{{2}})?)?"


def _has(arguments: list[exp.Expr], place: int) -> bool:
    return len(arguments) > place and not isinstance(arguments[place], exp.Null)


def _zone(arguments: list[exp.Expr], place: int, zone: str) -> str:
    if not _has(arguments, place):
        return zone
    name = literal_text(arguments[place], "a time zone")
    try:
        parse_zone(name)
    except BadTime as error:
        raise Refused(str(error)) from None
    return name


def as_time(value: exp.Expr) -> exp.Expr:
    """A time of a value of any kind, as CAST(… AS TIMESTAMP)."""
    kind = kind_of(value)
    if kind in ("long", "double"):
        return of_kind("time", sql("timezone('UTC', make_timestamp_ms(CAST(v AS BIGINT)))", v=value))
    if kind == "text":
        return of_kind("time", exp.TryCast(this=value.copy(), to=exp.DataType.build("TIMESTAMPTZ", dialect="duckdb")))
    return value


def floor(value: exp.Expr, period: str, zone: str, origin: exp.Expr | None = None) -> exp.Expr:
    """The start of the period that has the time. Raises ``Refused`` for what is no period."""
    try:
        granularity = parse_granularity(period, None, None if zone == "UTC" else zone)
    except BadTime as error:
        raise Refused(str(error)) from None
    months, rest = period_parts(granularity.period)
    value = as_time(value)
    is_clock = not months and not rest.days
    where = text("UTC" if is_clock else zone)
    if period in ("PT1H", "PT1M", "PT1S") and origin is None:
        unit = {"H": "hour", "M": "minute", "S": "second"}[period[-1]]
        return of_kind("time", sql(f"date_trunc('{unit}', v)" if zone == "UTC" else _in_zone(unit, zone), v=value))
    first = "TIMESTAMP '1970-01-05'" if period == "P1W" else "TIMESTAMP '1970-01-01'"
    if origin is not None:
        first = f"timezone({where}, o)"
    elif is_clock and zone != "UTC":
        first = f"timezone('UTC', timezone({text(zone)}, {first}))"
    bucket = f"timezone({where}, time_bucket({interval(period)}, timezone({where}, v), {first}))"
    return of_kind("time", sql(bucket, v=value, o=as_time(origin or exp.Null())))


def _in_zone(unit: str, zone: str) -> str:
    """Hours of zones whose offset has minutes begin by their own clock."""
    return f"v - (timezone({text(zone)}, v) - date_trunc('{unit}', timezone({text(zone)}, v)))"


def ceil(value: exp.Expr, period: str, zone: str, origin: exp.Expr | None = None) -> exp.Expr:
    """The end of the period that has the time, or the time if a period starts there."""
    start = floor(value, period, zone, origin)
    end = shift(start, period, exp.Literal.number(1), zone)
    return of_kind("time", sql("CASE WHEN s = v THEN s ELSE e END", s=start, v=as_time(value), e=end))


def interval(period: str) -> str:
    """SQL of an ISO 8601 period."""
    try:
        months, rest = period_parts(period)
    except BadTime as error:
        raise Refused(str(error)) from None
    seconds = int((rest - timedelta(days=rest.days)).total_seconds())
    parts = [(months, "months"), (rest.days, "days"), (seconds, "seconds")]
    return f"INTERVAL '{' '.join(f'{number} {unit}' for number, unit in parts if number)}'"


def shift(value: exp.Expr, period: str, step: exp.Expr, zone: str) -> exp.Expr:
    """Months and days are the zone's."""
    by_clock = period.startswith("PT") or zone == "UTC"
    where = "'UTC'" if by_clock else text(zone)
    template = f"timezone({where}, timezone({where}, v) + n * {interval(period)})"
    return of_kind("time", sql(template, v=as_time(value), n=step))


def _rounding(change: Callable[[exp.Expr, str, str, exp.Expr | None], exp.Expr]) -> SpecialFunction:
    def build(arguments: list[exp.Expr], zone: str) -> exp.Expr:
        origin = arguments[2] if _has(arguments, 2) else None
        return change(arguments[0], literal_text(arguments[1], "a period"), _zone(arguments, 3, zone), origin)

    return build


def _time_shift(arguments: list[exp.Expr], zone: str) -> exp.Expr:
    return shift(arguments[0], literal_text(arguments[1], "a period"), arguments[2], _zone(arguments, 3, zone))


def extract(unit: str, value: exp.Expr, zone: str) -> exp.Expr:
    """A field of a time. Raises ``Refused`` for one that is not known."""
    if unit not in _FIELDS:
        raise Refused(f"{unit} is not one of {', '.join(_FIELDS)}.")
    at = as_time(value)
    return of_kind("long", sql(_FIELDS[unit], v=at, local=sql(f"timezone({text(zone)}, v)", v=at)))


def _time_extract(arguments: list[exp.Expr], zone: str) -> exp.Expr:
    return extract(literal_text(arguments[1], "a unit").upper(), arguments[0], _zone(arguments, 2, zone))


def _strftime(pattern: str) -> str:
    parts = []
    for run, literal in split_pattern(pattern):
        if run and run not in _STRFTIME:
            raise Refused(f"{run!r} in the pattern {pattern!r} is not supported.")
        parts.append(_STRFTIME[run] if run else literal.replace("%", "%%"))
    return "".join(parts)


def _time_format(arguments: list[exp.Expr], zone: str) -> exp.Expr:
    where = _zone(arguments, 2, zone)
    if _has(arguments, 1):
        pattern = _strftime(literal_text(arguments[1], "a pattern"))
    elif where in ("UTC", "Etc/UTC"):
        pattern = "%Y-%m-%dT%H:%M:%S.%g+00:00"
    else:
        raise Refused("TIME_FORMAT in another time zone than UTC needs a pattern.")
    template = f"strftime(timezone({text(where)}, v), {text(pattern)})"
    return of_kind("text", sql(template, v=as_time(arguments[0])))


def _time_parse(arguments: list[exp.Expr], zone: str) -> exp.Expr:
    where = _zone(arguments, 2, zone)
    source = arguments[0]
    pattern = literal_text(arguments[1], "a pattern") if _has(arguments, 1) else None
    if isinstance(source, exp.Literal):
        try:
            at = timestamp_parse(source.name, pattern, where)
        except BadTime as error:
            raise Refused(str(error)) from None
        except EvaluationFailed:  # a clock skips it
            at = None
        return moment(at if isinstance(at, int) else None)
    if pattern is not None:
        template = f"timezone({text(where)}, try_strptime(v, {text(_strftime(pattern))}))"
        return of_kind("time", sql(template, v=source))
    # What has no zone is of this one. Years, months and hours alone are completed, as the cast does not know them.
    whole = rf"""CASE WHEN regexp_full_match(v, '\d{{4}}') THEN v || '-01-01'
    WHEN regexp_full_match(v, '\d{{4}}-\d{{2}}') THEN v || '-01'
    WHEN regexp_full_match(v, '{_DAY}[T ]\d{{2}}') THEN v || ':00'
    WHEN regexp_full_match(v, '{_ISO_TIME}') THEN v END"""
    return of_kind("time", sql(f"try_cast({whole} AS TIMESTAMPTZ)", v=source))


def moment(ms: int | None) -> exp.Expr:
    """A constant time."""
    if ms is None:
        return of_kind("time", sql("CAST(NULL AS TIMESTAMPTZ)"))
    at = to_datetime(ms).isoformat(timespec="milliseconds")
    return of_kind("time", sql(f"CAST('{at}' AS TIMESTAMPTZ)"))


def _time_in_interval(arguments: list[exp.Expr], zone: str) -> exp.Expr:
    written = literal_text(arguments[1], "an interval")
    try:
        start, end = interval_ms(written, parse_zone(zone))
    except ValueError as error:
        raise Refused(f"{error}.") from None
    return of_kind("boolean", sql("(v >= s AND v < e)", v=as_time(arguments[0]), s=moment(start), e=moment(end)))


def _unit(value: exp.Expr) -> str:
    unit = value.name.upper().removeprefix("SQL_TSI_")
    if unit not in PERIODS:
        raise Refused(f"{unit} is not one of {', '.join(PERIODS)}.")
    return unit


def _timestamp_add(arguments: list[exp.Expr], zone: str) -> exp.Expr:
    return shift(arguments[2], PERIODS[_unit(arguments[0])], arguments[1], zone)


def _timestamp_diff(arguments: list[exp.Expr], zone: str) -> exp.Expr:
    start, end = (f"timezone({text(zone)}, {name})" for name in ("s", "e"))
    template = f"date_sub('{_unit(arguments[0]).lower()}', {start}, {end})"
    return of_kind("long", sql(template, s=as_time(arguments[1]), e=as_time(arguments[2])))


def _edge(function: str, arguments: list[exp.Expr]) -> exp.Expr:
    table = next((column.table for column in arguments[0].find_all(exp.Column)), "")
    at = exp.column("__time", table=table or None, quoted=True)
    kind: Kind = kind_of(arguments[0])
    return of_kind(kind, call(function, arguments[0], at))


TIME_FUNCTIONS: dict[str, tuple[int, int, SpecialFunction]] = {
    "TIME_FLOOR": (2, 4, _rounding(floor)),
    "TIME_CEIL": (2, 4, _rounding(ceil)),
    "TIME_SHIFT": (3, 4, _time_shift),
    "TIME_EXTRACT": (2, 3, _time_extract),
    "TIME_FORMAT": (1, 3, _time_format),
    "TIME_PARSE": (1, 3, _time_parse),
    "TIME_IN_INTERVAL": (2, 2, _time_in_interval),
    "TIMESTAMPADD": (3, 3, _timestamp_add),
    "TIMESTAMPDIFF": (3, 3, _timestamp_diff),
    "LATEST": (1, 2, lambda arguments, zone: _edge("arg_max_null", arguments)),
    "EARLIEST": (1, 2, lambda arguments, zone: _edge("arg_min_null", arguments)),
}
