"""``FUNCTIONS``: which of Druid's functions are taken, with how many arguments, and what must be written out.

Each was held against a real Druid (``tests/golden``). What decides which of its arguments are evaluated, or takes
functions as arguments, is in ``druid_evaluator``; its arguments are counted here.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ingestion.decode import druid_arrays as arrays
from ingestion.decode import druid_datetimes, joda_patterns, joda_reader
from ingestion.decode import druid_math as maths
from ingestion.decode import druid_nested as nested
from ingestion.decode import druid_patterns as patterns
from ingestion.decode import druid_strings as strings
from ingestion.decode import druid_times as times
from ingestion.decode.druid_format import format_
from ingestion.decode.druid_operators import BINARY, negative
from ingestion.decode.druid_values import Array, EvaluationFailed, Nested, Value, as_double, is_true, to_long

MAX_ARGUMENTS = 100
Call = Callable[..., Value]
Check = Callable[[str], object]
_KINDS = ("LONG", "DOUBLE", "STRING", "ARRAY<LONG>", "ARRAY<DOUBLE>", "ARRAY<STRING>")


@dataclass(frozen=True)
class Function:
    """What a function does, and what it takes."""

    call: Call | None
    # How many arguments.
    min_arguments: int
    max_arguments: int
    # By place, what checks an argument that has to be a text, written out.
    literal_checks: Mapping[int, Check] | None = None


def _accept_any(text: str) -> None:
    """Whatever it is."""


def _check_kind(text: str) -> None:
    if text.upper() not in _KINDS:
        raise ValueError(f"{text!r} is not one of {', '.join(_KINDS)}")


def _check_unit(text: str) -> None:
    if text.upper() not in times.UNITS:
        raise ValueError(f"{text!r} is not one of {', '.join(times.UNITS)}")


def _check_period(text: str) -> None:
    druid_datetimes.parse_granularity(text, None, None)


def _check_joda_pattern(text: str) -> None:
    joda_reader.reader(text, None)


def _check_subnet(text: str) -> object:
    if "/" not in text:
        raise ValueError(f"{text!r} is not a subnet such as 10.0.0.0/8")
    return ipaddress.ip_network(text, strict=False)


def _check_like(text: str) -> None:
    patterns.like(text, None)


def _is_distinct(left: Value, right: Value) -> int:
    if left is None or right is None:
        return int((left is None) != (right is None))
    return int(not BINARY["=="](left, right))


def _parse_ipv4(text: str) -> ipaddress.IPv4Address | None:
    """Of a dotted text; leading zeros and blanks are let pass."""
    parts = text.strip().split(".")
    if len(parts) != 4 or not all(p.isascii() and p.isdigit() and len(p) <= 3 and int(p) < 256 for p in parts):
        return None
    return ipaddress.IPv4Address(".".join(str(int(p)) for p in parts))


def _to_ipv4(value: Value) -> ipaddress.IPv4Address | None:
    if isinstance(value, str):
        return _parse_ipv4(value)
    if isinstance(value, int) and 0 <= value < 2**32:
        return ipaddress.IPv4Address(value)
    return None


def ipv4_match(value: Value, subnet: Value) -> Value:
    address = _to_ipv4(value)
    return int(address is not None and address in ipaddress.ip_network(str(subnet), strict=False))


def ipv4_parse(value: Value) -> Value:
    address = _to_ipv4(value)
    return None if address is None else int(address)


def ipv4_stringify(value: Value) -> Value:
    address = _to_ipv4(value)
    return value if isinstance(value, str) and address is not None else None if address is None else str(address)


def ipv6_match(value: Value, subnet: Value) -> Value:
    if not isinstance(value, str) or ":" not in value:
        return 0
    try:
        return int(ipaddress.ip_address(value) in ipaddress.ip_network(str(subnet), strict=False))
    except ValueError:
        return 0


def _human_readable(step: int, units: tuple[str, ...]) -> Call:
    def to_text(value: Value, places: Value = 2) -> Value:
        if isinstance(value, Array | Nested) or not isinstance(places, int) or not 0 <= places <= 3:
            raise EvaluationFailed
        if isinstance(value, str) and as_double(value) is not None:
            raise EvaluationFailed
        if not isinstance(value, int | float):
            return None
        long = to_long(value) if isinstance(value, float) else value
        size, unit = float(abs(long)), 0
        while size >= step and unit < len(units) - 1:
            size, unit = size / step, unit + 1
        if not unit:
            return f"{long} {units[0]}".strip()
        exact = abs(long) / step**unit
        return f"{'-' if long < 0 else ''}{exact:.{places}f} {units[unit]}"

    return to_text


_BYTES = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_PLAIN = ("", "K", "M", "G", "T", "P", "E")


def _unary_function(function: Callable[[float], float]) -> Function:
    return Function(maths.unary_double(function), 1, 1)


def _binary_function(function: Callable[[float, float], float]) -> Function:
    return Function(maths.binary_double(function), 2, 2)


def _bitwise_function(function: Callable[[int, int], int]) -> Function:
    return Function(maths.binary_bits(function), 2, 2)


_ZONE: Check = druid_datetimes.parse_zone
FUNCTIONS: Mapping[str, Function] = {
    **{sign: Function(call, 2, 2) for sign, call in BINARY.items()},
    "-": Function(BINARY["-"], 1, 2),
    "unary -": Function(negative, 1, 1),
    "!": Function(lambda v: None if v is None else int(not is_true(v)), 1, 1),
    "&&": Function(None, 2, 2),
    "||": Function(None, 2, 2),
    # general
    "case_searched": Function(None, 2, MAX_ARGUMENTS),
    "case_simple": Function(None, 3, MAX_ARGUMENTS),
    "cast": Function(arrays.cast_to, 2, 2, {1: _check_kind}),
    "coalesce": Function(None, 1, MAX_ARGUMENTS),
    "if": Function(None, 3, 3),
    "isdistinctfrom": Function(_is_distinct, 2, 2),
    "isfalse": Function(lambda v: int(v is not None and not is_true(v)), 1, 1),
    "isnull": Function(lambda v: int(v is None), 1, 1),
    "istrue": Function(lambda v: int(is_true(v)), 1, 1),
    "like": Function(strings.like_, 2, 3, {1: _check_like, 2: _accept_any}),
    "notdistinctfrom": Function(lambda a, b: 1 - _is_distinct(a, b), 2, 2),
    "notfalse": Function(lambda v: int(v is None or is_true(v)), 1, 1),
    "notnull": Function(lambda v: int(v is not None), 1, 1),
    "nottrue": Function(lambda v: int(not is_true(v)), 1, 1),
    "nvl": Function(None, 2, 2),
    # texts
    "concat": Function(strings.concat, 0, MAX_ARGUMENTS),
    "contains_string": Function(strings.contains, 2, 2, {1: _accept_any}),
    "format": Function(format_, 1, MAX_ARGUMENTS),
    "icontains_string": Function(strings.icontains, 2, 2, {1: _accept_any}),
    "left": Function(strings.left, 2, 2),
    "lower": Function(strings.lower, 1, 1),
    "lpad": Function(strings.lpad, 3, 3),
    "ltrim": Function(strings.ltrim, 1, 2),
    "parse_long": Function(strings.parse_long, 1, 2),
    "regexp_extract": Function(strings.regexp_extract, 2, 3, {1: patterns.pattern}),
    "regexp_like": Function(strings.regexp_like, 2, 2, {1: patterns.pattern}),
    "regexp_replace": Function(strings.regexp_replace, 3, 3, {1: patterns.pattern}),
    "repeat": Function(strings.repeat, 2, 2),
    "replace": Function(strings.replace, 3, 3),
    "reverse": Function(strings.reverse, 1, 1),
    "right": Function(strings.right, 2, 2),
    "rpad": Function(strings.rpad, 3, 3),
    "rtrim": Function(strings.rtrim, 1, 2),
    "strlen": Function(strings.strlen, 1, 1),
    "strpos": Function(strings.strpos, 2, 3),
    "substring": Function(strings.substring, 3, 3),
    "trim": Function(strings.trim, 1, 2),
    "upper": Function(strings.upper, 1, 1),
    # times
    "subtract_months": Function(times.subtract_months, 3, 3, {2: _ZONE}),
    "timestamp": Function(times.timestamp, 1, 2, {1: _check_joda_pattern}),
    "timestamp_ceil": Function(times.timestamp_ceil, 2, 4, {1: _check_period, 3: _ZONE}),
    "timestamp_extract": Function(times.timestamp_extract, 2, 3, {1: _check_unit, 2: _ZONE}),
    "timestamp_floor": Function(times.timestamp_floor, 2, 4, {1: _check_period, 3: _ZONE}),
    "timestamp_format": Function(times.timestamp_format, 1, 3, {1: joda_patterns.writer, 2: _ZONE}),
    "timestamp_parse": Function(times.timestamp_parse, 1, 3, {1: _check_joda_pattern, 2: _ZONE}),
    "timestamp_shift": Function(times.timestamp_shift, 3, 4, {1: times.period_parts, 3: _ZONE}),
    "unix_timestamp": Function(times.unix_timestamp, 1, 2, {1: _check_joda_pattern}),
    # numbers
    "abs": Function(maths.absolute, 1, 1),
    "acos": _unary_function(math.acos),
    "asin": _unary_function(math.asin),
    "atan": _unary_function(math.atan),
    "atan2": _binary_function(math.atan2),
    "bitwiseand": _bitwise_function(lambda a, b: a & b),
    "bitwisecomplement": Function(maths.complement, 1, 1),
    "bitwiseconvertdoubletolongbits": Function(maths.double_to_bits, 1, 1),
    "bitwiseconvertlongbitstodouble": Function(maths.bits_to_double, 1, 1),
    "bitwiseor": _bitwise_function(lambda a, b: a | b),
    "bitwiseshiftleft": _bitwise_function(maths.shift_left),
    "bitwiseshiftright": _bitwise_function(maths.shift_right),
    "bitwisexor": _bitwise_function(lambda a, b: a ^ b),
    "cbrt": _unary_function(math.cbrt),
    "ceil": Function(maths.rounding(math.ceil), 1, 1),
    "copysign": _binary_function(math.copysign),
    "cos": _unary_function(math.cos),
    "cosh": _unary_function(math.cosh),
    "cot": _unary_function(maths.cot),
    "div": Function(maths.binary_number(maths.divide, maths.divide_to_long), 2, 2),
    "exp": _unary_function(math.exp),
    "expm1": _unary_function(math.expm1),
    "floor": Function(maths.rounding(math.floor), 1, 1),
    "getexponent": Function(maths.exponent, 1, 1),
    "hypot": _binary_function(maths.hypot),
    "log": Function(maths.logarithm(math.log), 1, 1),
    "log10": Function(maths.logarithm(math.log10), 1, 1),
    "log1p": Function(maths.logarithm(math.log1p, -1.0), 1, 1),
    "max": Function(maths.binary_number(max, maths.greatest), 2, 2),
    "min": Function(maths.binary_number(min, maths.least), 2, 2),
    "nextafter": _binary_function(math.nextafter),
    "nextup": _unary_function(lambda v: math.nextafter(v, math.inf)),
    "pi": Function(lambda: math.pi, 0, 0),
    "pow": Function(maths.pow_, 2, 2),
    "remainder": _binary_function(maths.remainder),
    "rint": _unary_function(maths.rint),
    "round": Function(maths.round_half_up, 1, 2),
    "safe_divide": Function(maths.binary_number(maths.safe_divide, maths.safe_quotient), 2, 2),
    "scalb": Function(maths.scalb, 2, 2),
    "signum": _unary_function(maths.signum),
    "sin": _unary_function(math.sin),
    "sinh": _unary_function(maths.sinh),
    "sqrt": _unary_function(math.sqrt),
    "tan": _unary_function(math.tan),
    "tanh": _unary_function(math.tanh),
    "todegrees": _unary_function(math.degrees),
    "toradians": _unary_function(math.radians),
    "ulp": _unary_function(math.ulp),
    # arrays
    "array": Function(arrays.array, 1, MAX_ARGUMENTS),
    "array_append": Function(arrays.array_append, 2, 2),
    "array_concat": Function(arrays.array_concat, 2, 2),
    "array_contains": Function(arrays.array_contains, 2, 2),
    "array_length": Function(arrays.array_length, 1, 1),
    "array_offset": Function(arrays.array_offset, 2, 2),
    "array_offset_of": Function(arrays.array_offset_of, 2, 2),
    "array_ordinal": Function(arrays.array_ordinal, 2, 2),
    "array_ordinal_of": Function(arrays.array_ordinal_of, 2, 2),
    "array_overlap": Function(arrays.array_overlap, 2, 2),
    "array_prepend": Function(arrays.array_prepend, 2, 2),
    "array_set_add": Function(arrays.array_set_add, 2, 2),
    "array_set_add_all": Function(arrays.array_set_add_all, 2, 2),
    "array_slice": Function(arrays.array_slice, 2, 3),
    "array_to_mv": Function(arrays.to_text_array, 1, 1),
    "array_to_string": Function(arrays.array_to_string, 2, 2),
    "mv_harmonize_nulls": Function(arrays.to_text_array_or_null, 1, 1),
    "mv_to_array": Function(arrays.to_text_array, 1, 1),
    "scalar_in_array": Function(arrays.scalar_in_array, 2, 2),
    "string_to_array": Function(arrays.string_to_array, 2, 2, {1: patterns.pattern}),
    # functions as arguments
    "all": Function(None, 2, 2),
    "any": Function(None, 2, 2),
    "cartesian_fold": Function(None, 3, MAX_ARGUMENTS),
    "cartesian_map": Function(None, 2, MAX_ARGUMENTS),
    "filter": Function(None, 2, 2),
    "fold": Function(None, 3, 3),
    "map": Function(None, 2, 2),
    # nested values
    "json_keys": Function(nested.json_keys, 2, 2, {1: nested.parse_path}),
    "json_merge": Function(nested.json_merge, 2, MAX_ARGUMENTS),
    "json_object": Function(nested.json_object, 0, MAX_ARGUMENTS),
    "json_query": Function(nested.json_query, 2, 2, {1: nested.parse_path}),
    "json_query_array": Function(nested.json_query_array, 2, 2, {1: nested.parse_path}),
    "json_value": Function(nested.json_value, 2, 3, {1: nested.parse_path, 2: _check_kind}),
    "parse_json": Function(nested.parse_json, 1, 1),
    "to_json_string": Function(nested.to_json_string, 1, 1),
    "try_parse_json": Function(nested.try_parse_json, 1, 1),
    # the others
    "greatest": Function(maths.reduction(max, maths.greatest, first=False), 0, MAX_ARGUMENTS),
    "least": Function(maths.reduction(min, maths.least, first=True), 0, MAX_ARGUMENTS),
    "human_readable_binary_byte_format": Function(_human_readable(1024, _BINARY), 1, 2),
    "human_readable_decimal_byte_format": Function(_human_readable(1000, _BYTES), 1, 2),
    "human_readable_decimal_format": Function(_human_readable(1000, _PLAIN), 1, 2),
    "ipv4_match": Function(ipv4_match, 2, 2, {1: _check_subnet}),
    "ipv4_parse": Function(ipv4_parse, 1, 1),
    "ipv4_stringify": Function(ipv4_stringify, 1, 1),
    "ipv6_match": Function(ipv6_match, 2, 2, {1: _check_subnet}),
}
