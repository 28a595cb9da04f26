"""Druid's functions of times. A time is a TIMESTAMPTZ; its fields are those of the query's zone, or of a named one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dateutil.relativedelta import relativedelta
from sqlglot import exp

from ingestion.decode.druid_datetimes import BadTime, iso_ms, parse_granularity, parse_zone, to_datetime
from ingestion.decode.druid_times import period_parts
from ingestion.decode.joda_reader import reader
from ingestion.query.druid.values import Kind, Refused, SpecialFunction, call, kind_of, literal_text, of_kind, sql, text
from ingestion.specs.schema.joda import split_pattern

PERIODS = {"SECOND": "PT1S", "MINUTE": "PT1M", "HOUR": "PT1H", "DAY": "P1D", "WEEK": "P1W", "MONTH": "P1M"}
PERIODS |= {"QUARTER": "P3M", "YEAR": "P1Y"}
_FIELDS = {
    unit: unit.lower() for unit in ("SECOND", "MINUTE", "HOUR", "DAY", "DOY", "WEEK", "MONTH", "QUARTER", "YEAR")
}
_FIELDS |= {unit: unit.lower() for unit in ("ISOYEAR", "DECADE", "CENTURY", "MILLENNIUM", "EPOCH", "ISODOW")}
_FIELDS |= {"DOW": "isodow"}
# Joda's letters, by how many there are, in strftime's.
_STRFTIME = {"yyyy": "%Y", "YYYY": "%Y", "y": "%Y", "yy": "%y", "MM": "%m", "M": "%-m", "MMM": "%b", "MMMM": "%B"}
_STRFTIME |= {"dd": "%d", "d": "%-d", "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "mm": "%M", "m": "%-M"}
_STRFTIME |= {"ss": "%S", "s": "%-S", "SSS": "%g", "EEE": "%a", "E": "%a", "EEEE": "%A", "a": "%p", "DDD": "%j"}
_STRFTIME |= {"e": "%u", "ww": "%V", "xxxx": "%G"}
# Of what try_strptime and the cast take, what Joda's ISO parser takes too.
_DAY = r"\d{4}-\d{2}-\d{2}"
_ISO_TIME = rf"{_DAY}([T ]\d{{2}}:\d{{2}}(:\d{{2}}([.,]\d+)?)?)?(Z|[+-]\d{{2}}(:?\d{{2}})?)?"


def _zone(arguments: list[exp.Expr], place: int, zone: str) -> str:
    if len(arguments) <= place or isinstance(arguments[place], exp.Null):
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
    local = "timezone('UTC', v)" if not months and not rest.days and zone != "UTC" else f"timezone({text(zone)}, v)"
    zone_back = "'UTC'" if not months and not rest.days else text(zone)
    if period in ("PT1H", "PT1M", "PT1S") and origin is None:
        unit = {"H": "hour", "M": "minute", "S": "second"}[period[-1]]
        return of_kind("time", sql(f"date_trunc('{unit}', v)" if zone == "UTC" else _in_zone(unit, zone), v=value))
    first = "TIMESTAMP '1970-01-05'" if period == "P1W" else "TIMESTAMP '1970-01-01'"
    if zone_back == "'UTC'" and zone != "UTC":
        first = f"timezone('UTC', timezone({text(zone)}, {first}))"
    if origin is not None:
        first = local.replace("v)", "o)")
    bucket = f"timezone({zone_back}, time_bucket({interval(period)}, {local}, {first}))"
    return of_kind("time", sql(bucket, v=value, **({} if origin is None else {"o": as_time(origin)})))


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


def _time_floor(arguments: list[exp.Expr], zone: str) -> exp.Expr:
    origin = arguments[2] if len(arguments) > 2 and not isinstance(arguments[2], exp.Null) else None
    return floor(arguments[0], literal_text(arguments[1], "a period"), _zone(arguments, 3, zone), origin)


def _time_ceil(arguments: list[exp.Expr], zone: str) -> exp.Expr:
    origin = arguments[2] if len(arguments) > 2 and not isinstance(arguments[2], exp.Null) else None
    return ceil(arguments[0], literal_text(arguments[1], "a period"), _zone(arguments, 3, zone), origin)


def _time_shift(arguments: list[exp.Expr], zone: str) -> exp.Expr:
    return shift(arguments[0], literal_text(arguments[1], "a period"), arguments[2], _zone(arguments, 3, zone))


def extract(unit: str, value: exp.Expr, zone: str) -> exp.Expr:
    """A field of a time. Raises ``Refused`` for one that is not known."""
    local = f"timezone({text(zone)}, v)"
    if unit == "MILLISECOND":
        return of_kind("long", sql(f"date_part('millisecond', {local}) % 1000", v=as_time(value)))
    if unit == "MICROSECOND":
        return of_kind("long", sql(f"date_part('microsecond', {local}) % 1000000", v=as_time(value)))
    if unit not in _FIELDS:
        raise Refused(f"{unit} is not one of {', '.join([*_FIELDS, 'MILLISECOND', 'MICROSECOND'])}.")
    source = (
        "CAST(floor(epoch_ms(v) / 1000) AS BIGINT)" if unit == "EPOCH" else f"date_part('{_FIELDS[unit]}', {local})"
    )
    return of_kind("long", sql(source, v=as_time(value)))


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
    if len(arguments) > 1 and not isinstance(arguments[1], exp.Null):
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
    has_pattern = len(arguments) > 1 and not isinstance(arguments[1], exp.Null)
    pattern = literal_text(arguments[1], "a pattern") if has_pattern else ""
    if isinstance(source, exp.Literal):
        try:
            read = reader(pattern, where) if has_pattern else lambda value: iso_ms(value, parse_zone(where), blank=True)
        except BadTime as error:
            raise Refused(str(error)) from None
        return moment(read(source.name))
    if has_pattern:
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
    start, end = _ends(written, zone)
    return of_kind("boolean", sql("(v >= s AND v < e)", v=as_time(arguments[0]), s=moment(start), e=moment(end)))


def _ends(written: str, zone: str) -> tuple[int, int]:
    first, _, last = written.partition("/")
    try:
        where = parse_zone(zone)
        if first.startswith("P"):
            end = iso_ms(last, where)
            return (_moved(end, first, -1, zone), end) if end is not None else _no_interval(written)
        start = iso_ms(first, where)
        if start is None:
            return _no_interval(written)
        stop = _moved(start, last, 1, zone) if last.startswith("P") else iso_ms(last, where)
        return (start, stop) if stop is not None else _no_interval(written)
    except (BadTime, OverflowError):
        return _no_interval(written)


def _no_interval(written: str) -> tuple[int, int]:
    raise Refused(f"{written!r} is not an interval such as 2026-01-01/P1D.")


def _moved(ms: int, period: str, sign: int, zone: str) -> int:
    months, rest = period_parts(period)
    local = to_datetime(ms).astimezone(parse_zone(zone)).replace(tzinfo=None)
    moved: datetime = local + sign * relativedelta(months=months) + sign * rest
    at = moved.replace(tzinfo=parse_zone(zone)).astimezone(UTC)
    return int(at.timestamp() * 1000)


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
    "TIME_FLOOR": (2, 4, _time_floor),
    "TIME_CEIL": (2, 4, _time_ceil),
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
