"""Numbers that stand in a record's JSON text with more than a double holds: the digits that they were written with.

Formats that know decimals and floats of 32 bits (Avro, Protobuf, Parquet, ORC) write a record's numbers so:

| in the record's text | what it is | as a text |
|---|---|---|
| ``12.50`` | a decimal between 0.001 and 10,000,000, in up to 15 characters | as it stands |
| ``1234567890123456.78E0`` | any other decimal | ``1234567890123456.78`` |
| ``0.10000000149011612e0`` | a float of 32 bits | ``0.1``: the shortest that gives it back, as in Java |
| all others | a double, or a whole number | as Java writes it |

All of them are JSON. DuckDB reads doubles and writes these, so such numbers are read beside it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_DECIMAL, _SINGLE = "E0", "e0"
_MIN_SINGLE = float(np.finfo(np.float32).smallest_subnormal)
_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1
_LONG_DIGITS = 19
_LONGEST_EXPONENT = 1_000
_LONGEST_PLAIN, _SHORT = 15, 7  # characters; in the latter there are six digits, which a float of 32 bits holds
# Only such texts may hold a number that no double is written as: the others are not looked at.
_MAY_HOLD_ONE = r"[0-9][eE]0[,}\]]|\.[0-9]+0[,}\]]"
_A_NUMBER = r"(?P<token>-?[0-9][0-9.]*(?:[eE]0)?)[,}]"
_MAY_BE_ONE = r"(?s)^([0-9]|[^\"].*[0-9])[.eE]"
MARKED = r"[0-9][eE]0([,}\]]|$)"


class NumberToken:
    """A number that is written into a JSON text as ``token``. It is no float, so that encoders ask how."""

    __slots__ = ("token",)  # there may be many in a record

    def __init__(self, token: str) -> None:
        self.token = token


class ExactNumber(float):
    """A number as a double, with its ``token`` in the JSON text, and its ``text`` in a column of texts."""

    token: str
    text: str

    @classmethod
    def of(cls, token: str, text: str) -> ExactNumber:
        number = cls(token)
        number.token, number.text = token, text
        return number


def decimal_number(value: Decimal) -> NumberToken | str:
    """All digits that it was written with; of one with a very long exponent the double, or a text if none is near."""
    if abs(int(value.as_tuple().exponent)) > _LONGEST_EXPONENT:
        double = float(value)
        return NumberToken(json.dumps(double)) if math.isfinite(double) and bool(double) == bool(value) else str(value)
    digits = format(value, "f")
    if "." not in digits:
        return NumberToken(digits if _MIN_LONG <= int(value) <= _MAX_LONG else digits + _DECIMAL)
    return NumberToken(digits if len(digits) <= _LONGEST_PLAIN and _is_plain(float(digits)) else digits + _DECIMAL)


def single_number(value: float) -> NumberToken:
    """A float of 32 bits: the double that it is, marked where its own text may be another one."""
    if not math.isfinite(value):
        return NumberToken(json.dumps(value))
    plain = repr(value)
    if len(plain) <= _SHORT and _is_plain(value):
        return NumberToken(plain)
    return NumberToken((plain if "e" not in plain else format(Decimal(plain), "f")) + _SINGLE)


def parse_number(token: str) -> float:
    """Of a JSON number that is not whole; for ``json.loads`` (``parse_float``)."""
    if token.endswith(_DECIMAL):
        return ExactNumber.of(token, token[: -len(_DECIMAL)])
    value = float(token)
    if token.endswith(_SINGLE):
        return ExactNumber.of(token, single_text(value))
    doubles = repr(value)
    is_decimal = doubles != token and "e" not in token.lower() and "e" not in doubles
    return ExactNumber.of(token, token) if is_decimal else value


def stored_json(text: str) -> Any:
    """The value of a JSON text in a column, with a ``NumberToken`` for each number that no double is written as."""
    return json.loads(text, parse_float=_parse_stored, parse_int=_parse_stored_integer)


def _parse_stored(digits: str) -> float | NumberToken | str:
    value = float(digits)
    return value if "e" in digits.lower() or repr(value) == digits else decimal_number(Decimal(digits))


def _parse_stored_integer(digits: str) -> int | NumberToken | str:
    return int(digits) if len(digits) < _LONG_DIGITS else decimal_number(Decimal(digits))


def single_text(value: float) -> str:
    """A float of 32 bits as Java writes it."""
    single = np.float32(value)
    if value == 0 or _is_plain(value):
        return str(np.format_float_positional(single, unique=True, trim="0"))
    if abs(value) == _MIN_SINGLE:
        return "1.4E-45" if value > 0 else "-1.4E-45"  # not the shortest
    return str(np.format_float_scientific(single, unique=True, trim="0", exp_digits=1)).replace("e+", "E").upper()


def to_json_text(value: Any, *, marked: bool = False) -> str:
    """A JSON text without blanks, of numbers with their own digits.

    ``marked``: as they stand in a record, where NaN and Infinity may stand, too. Else these raise ``ValueError``.
    """
    if isinstance(value, dict):
        inner = (f"{json.dumps(k, ensure_ascii=False)}:{to_json_text(v, marked=marked)}" for k, v in value.items())
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ",".join(to_json_text(v, marked=marked) for v in value) + "]"
    if isinstance(value, ExactNumber):
        return value.token if marked else value.text
    return json.dumps(value, ensure_ascii=False, allow_nan=marked)


def may_hold_exact_number(texts: pa.Array) -> pa.Array:
    """Which of these records' JSON texts are worth a look for numbers that no double is written as."""
    return pc.match_substring_regex(texts, _MAY_HOLD_ONE).fill_null(False)


def as_written(texts: pa.Array, columns: Mapping[str, pa.Array], numbers: Collection[str]) -> dict[str, pa.Array]:
    """The fields of records' JSON texts, with the numbers in them as they stand there.

    ``numbers``: fields that become numbers alone, for which a float of 32 bits is what DuckDB writes.
    """
    candidates = may_hold_exact_number(texts)
    if not pc.any(candidates).as_py():
        return dict(columns)
    records = _Records(texts)
    marked = pc.and_(candidates, pc.match_substring(texts, _DECIMAL)) if numbers else candidates
    return {
        name: records.column(name, column, marked if name in numbers else candidates)
        for name, column in columns.items()
    }


class _Records:
    """Records' JSON texts, each read when it is first needed."""

    def __init__(self, texts: pa.Array) -> None:
        self._texts = texts
        self._flat = pc.equal(pc.count_substring(texts, "{"), 1).fill_null(False)
        self._read: dict[int, Any] = {}

    def column(self, name: str, column: pa.Array, candidates: pa.Array) -> pa.Array:
        """A field's text. For candidates with a number, the text as it is written."""
        may_be_number = pc.and_(candidates, pc.match_substring_regex(column, _MAY_BE_ONE)).fill_null(False)
        single = pc.and_(may_be_number, pc.match_substring_regex(column, "^[-0-9]")).fill_null(False)
        if "\\" not in name:
            single = pc.and_(single, self._flat)
            column = self._numbers(name, column, single)
            may_be_number = pc.and_not(may_be_number, single)
        places = np.flatnonzero(may_be_number.to_numpy(zero_copy_only=False)).tolist()
        if not places:
            return column
        exact_texts = [_field_text(name, column[at].as_py(), self._record(at)) for at in places]
        return pc.replace_with_mask(column, may_be_number, pa.array(exact_texts, pa.string()))

    def _numbers(self, name: str, column: pa.Array, is_number: pa.Array) -> pa.Array:
        """In records without a nested object, the name is before the number and in no text."""
        if not pc.any(is_number).as_py():
            return column
        pattern = rf"\Q{json.dumps(name, ensure_ascii=False)}\E:{_A_NUMBER}"
        tokens = pc.struct_field(pc.extract_regex(self._texts.filter(is_number), pattern), "token")
        return pc.replace_with_mask(column, is_number, pc.coalesce(tokens, column.filter(is_number)))

    def _record(self, at: int) -> Any:
        if at not in self._read:
            try:
                self._read[at] = json.loads(
                    self._texts[at].as_py(), parse_float=parse_number, object_pairs_hook=_keep_first
                )
            except (ValueError, RecursionError):
                self._read[at] = {}
        return self._read[at]


def _field_text(name: str, otherwise: str, record: Any) -> str:
    try:
        return to_json_text(record[name], marked=True)
    except (LookupError, ValueError, RecursionError):
        return otherwise


def _keep_first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's members. The first of two equal names counts, as in DuckDB."""
    return dict(reversed(pairs)) if len({name for name, _ in pairs}) < len(pairs) else dict(pairs)


def _is_plain(value: float) -> bool:
    """Whether Java writes it without an exponent."""
    return value == 0 or 1e-3 <= abs(value) < 1e7
