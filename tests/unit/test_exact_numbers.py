"""Numbers that are no doubles: how they stand in a record's JSON text, and that they are found there again."""

from __future__ import annotations

import json
import math
import random
import struct
from decimal import Decimal

import pyarrow as pa
import pytest

from ingestion.decode.druid_values import number_text
from ingestion.decode.exact_numbers import (
    NumberToken,
    as_written,
    decimal_number,
    may_hold_exact_number,
    parse_number,
    single_number,
)


def token_of(decimal: str) -> str:
    made = decimal_number(Decimal(decimal))
    assert isinstance(made, NumberToken)
    return made.token


@pytest.mark.parametrize("written", ["0.10", "12.50", "0.00", "-7.00", "12345678.5", "0.0001", "1234567890123456.78"])
@pytest.mark.parametrize("noughts", ["", "0", "00000000000000000000"])
def test_a_decimal_keeps_its_digits_and_is_a_json_number(written: str, noughts: str) -> None:
    token = token_of(written + noughts)
    assert number_text(parse_number(token)) == written + noughts
    assert Decimal(token) == Decimal(written)
    assert json.loads(token) == float(written)


def test_any_decimal_and_any_float_is_found_again() -> None:
    dice = random.Random(7)
    for _ in range(2_000):
        digits, scale = (
            dice.randrange(-(10 ** dice.randrange(1, 40)), 10 ** dice.randrange(1, 40)),
            dice.randrange(1, 30),
        )
        value = Decimal(f"{digits}e-{scale}")
        assert number_text(parse_number(token_of(str(value)))) == format(value, "f")
        [single] = struct.unpack("f", struct.pack("I", dice.randrange(2**32)))
        if math.isfinite(single):
            token = single_number(single).token
            text = number_text(parse_number(token))
            assert float(token) == single
            assert struct.pack("f", float(text)) == struct.pack("f", single)
            assert len(text) <= len(number_text(single))


@pytest.mark.parametrize("digits", ["0.1", "12345678.5", "1e-07", "1e+16", "0.30000000000000004", "100.0"])
def test_a_double_is_not_taken_for_another_number(digits: str) -> None:
    assert type(parse_number(digits)) is float
    assert may_hold_exact_number(pa.array([f'{{"a":{digits}}}'])).to_pylist() == [False]


@pytest.mark.parametrize("written", ["1E-1000000000", "-1E+1000000000", "7E-1001"])
def test_a_decimal_that_is_near_no_double_is_a_text(written: str) -> None:
    assert decimal_number(Decimal(written)) == written


@pytest.mark.parametrize(("written", "expected"), [("0E-1001", "0.0"), ("1." + 1001 * "0", "1.0")])
def test_a_decimal_of_many_places_is_left_to_the_double_that_is_near(written: str, expected: str) -> None:
    assert token_of(written) == expected


@pytest.mark.parametrize(
    ("record", "name", "read", "expected"),
    [
        ('{"a":0.10,"b":1}', "a", "0.1", "0.10"),
        ('{"a":"0.10,","b":0.10}', "a", '"0.10,"', '"0.10,"'),
        ('{"in":{"a":0.20},"a":0.10}', "a", "0.1", "0.10"),  # not the one within
        ('{"in":{"a":0.20}}', "in", '{"a":0.2}', '{"a":0.20}'),
        ('{"a":0.10,"a":0.20}', "a", "0.1", "0.10"),  # the first of two
        ('{"x":"{","a":0.10}', "a", "0.1", "0.10"),
        ('{"x":"\\\\"a\\\\":0.20,","a":0.10}', "a", "0.1", "0.10"),
        ('{"ba":0.20,"a.b":0.10,"a":0.30}', "a.b", "0.1", "0.10"),
        ('{"a\\\\"":0.10}', 'a"', "0.1", "0.10"),
        ('{"\\\\\\\\E":0.10}', "\\E", "0.1", "0.10"),
        ('{"a":1e-07,"b":0.10}', "a", "1e-7", "1e-7"),
        ('{"a":[0.10,null]}', "a", "[0.1,null]", "[0.10,null]"),
        ('{"a":12345678901234567890E0}', "a", "12345678901234567000.0", "12345678901234567890E0"),
    ],
)
def test_a_field_is_the_number_that_stands_in_the_record(record: str, name: str, read: str, expected: str) -> None:
    texts = pa.array([record.replace("\\\\", "\\"), None, '{"a":0.5}'])
    json.loads(texts[0].as_py())
    columns = {name: pa.array([read, None, "0.5"])}
    assert as_written(texts, columns, [])[name].to_pylist() == [expected, None, "0.5"]


def test_a_column_of_numbers_needs_decimals_alone() -> None:
    texts = pa.array(['{"a":0.10000000149011612e0}', '{"a":1234567890123456.78E0}'])
    columns = {"a": pa.array(["0.10000000149011612", "1234567890123456.8"])}
    assert as_written(texts, columns, ["a"])["a"].to_pylist() == ["0.10000000149011612", "1234567890123456.78E0"]
