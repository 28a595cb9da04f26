"""JSON values as the texts that Java, and so Druid, makes of them in a string: doubles, maps and lists."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.druid_values import java_text
from ingestion.decode.exact_numbers import MARKED, ExactNumber, parse_number, to_json_text

# Numbers that Java writes in another way than JSON has them, and what holds others.
_OTHER = r"^-?[0-9]+[.eE]|^-?[0-9]{19}|^[\[{]|^[-+]?[NnIi]"
# Numbers from 0.001 to 10,000,000, and nought: Java writes no exponent.
_PLAIN = r"^-?([1-9][0-9]{0,6}\.[0-9]+|0\.(0{0,2}[1-9][0-9]*|0+))$"
NO_JSON = r"^[-+]?[NnIi]"  # NaN, Infinity: DuckDB lets them pass
# Of what is no JSON in a list or an object, as INF and nan, which DuckDB lets pass too, or is nested too deep.
UNREADABLE = (ValueError, RecursionError)
_MAY_HOLD_ONE = r"(?s)^\[.*[\[{]"
_LONG_WHOLE = r"[0-9]{19}"


def with_java_texts(texts: pa.Array, jsons: pa.Array) -> pa.Array:
    """``texts`` with Java's for those whose JSON text is a number with a fraction, an object or an array."""
    other = pc.match_substring_regex(jsons, _OTHER).fill_null(False)
    other = pc.and_not(other, pc.match_substring_regex(jsons, _PLAIN).fill_null(False))
    if not pc.any(other).as_py():
        return texts
    java_texts = [_java_text(json_text) for json_text in jsons.filter(other).to_pylist()]
    return pc.replace_with_mask(texts, other, pa.array(java_texts, pa.string()))


def are_nested(jsons: pa.Array) -> pa.Array:
    """Which JSON texts are objects, or arrays that hold objects or arrays."""
    nested = pc.starts_with(jsons, "{").fill_null(False)
    suspects = pc.match_substring_regex(jsons, _MAY_HOLD_ONE).fill_null(False)
    if not pc.any(suspects).as_py():
        return nested
    holds_nested = [_holds_nested(json_text) for json_text in jsons.filter(suspects).to_pylist()]
    return pc.replace_with_mask(nested, suspects, pa.array(holds_nested, pa.bool_()))


def _holds_nested(json_array: str) -> bool:
    try:
        return any(isinstance(value, dict | list) for value in json.loads(json_array))
    except UNREADABLE:
        return True


def array_elements(json_array: str) -> list[str | None]:
    """The texts of an array's values; the array itself as the only one where it can't be read."""
    try:
        values = json.loads(json_array, parse_int=long_or_double, parse_float=parse_number)
    except UNREADABLE:
        return [json_array]
    return [None if value is None else java_text(value) for value in values]


def with_doubles(jsons: pa.Array) -> pa.Array:
    """JSON texts in which whole numbers that are beyond a long are doubles, and decimals have their digits."""
    long = pc.match_substring_regex(jsons, f"{_LONG_WHOLE}|{MARKED}").fill_null(False)
    if not pc.any(long).as_py():
        return jsons
    rewritten = [_with_doubles(json_text) for json_text in jsons.filter(long).to_pylist()]
    return pc.replace_with_mask(jsons, long, pa.array(rewritten, pa.string()))


def _java_text(json_text: str) -> str | None:
    if re.match(NO_JSON, json_text):
        return None
    try:
        return java_text(json.loads(json_text, parse_int=long_or_double, parse_float=parse_number))
    except UNREADABLE:
        return json_text


def _with_doubles(json_text: str) -> str:
    changed = False

    def parse_integer(digits: str) -> int | float:
        nonlocal changed
        number = long_or_double(digits)
        changed |= isinstance(number, float)
        return number

    def parse_decimal(digits: str) -> float:
        nonlocal changed
        number = parse_number(digits)
        changed |= isinstance(number, ExactNumber) and number.text != digits
        return number

    try:
        value: Any = json.loads(json_text, parse_int=parse_integer, parse_float=parse_decimal)
        return to_json_text(value) if changed else json_text
    except UNREADABLE:
        return json_text


def long_or_double(digits: str) -> int | float:
    """A long, or a double where that is beyond one."""
    number = int(digits) if len(digits) < 400 else float("inf")
    return number if -(2**63) <= number < 2**63 else float(digits)
