"""Values of named dimensions, by their types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from ingestion.decode.json_decoder import JsonDecoder
from ingestion.specs.schema.data_schema import DataSchema
from tests.support.decoded_fields import decode, schema_of
from tests.support.decoders import ANY_NUMBER, decoder_of

pytestmark = pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result")
JSON = pa.json_(pa.string())


def named(kind: str, *values: str) -> list[Any]:
    """What a dimension of ``kind`` makes of JSON ``values``, each in a record of one batch."""
    decoder = decoder_of(schema_of(dimensions=[{"name": "v", "type": kind}]), ANY_NUMBER)
    decoded = decode(decoder, *(f'"v":{v}' if v else "" for v in values))
    assert decoded.unparseable == {}
    assert decoded.rows.column_names == ["__row", "__time", "v"]
    column: list[Any] = decoded.rows.column("v").to_pylist()
    return column


VALUES = [
    "1",
    "1.9",
    "-1.9",
    '"12"',
    '" 12 "',
    '"1.0"',
    '"1.9"',
    '"x"',
    "true",
    "false",
    "null",
    "",  # missing
    "[1]",
    '{"a":1}',
    "NaN",
    "1e999",
    "9223372036854775807",
    "9223372036854775808",
    '"0x10"',
    '"1_000"',
    '""',
]
NAMED: dict[str, list[Any]] = {
    "long": [1, 1, -1, 12, None, 1, None, None, 1, 0, *[None] * 6, 2**63 - 1, 2**63 - 1, *[None] * 3],
    "double": [1.0, 1.9, -1.9, 12.0, None, 1.0, 1.9, *[None] * 9, 2.0**63, 2.0**63, *[None] * 3],
    "string": [
        *["1", "1.9", "-1.9", "12", " 12 ", "1.0", "1.9", "x", "true", "false", None, None, "1", "{a=1}"],
        *[None, "Infinity", "9223372036854775807", "9.223372036854776E18", "0x10", "1_000", ""],
    ],
    "json": [None if v in ("", "null") else v.replace("9223372036854775808", "9.223372036854776e+18") for v in VALUES],
}
NAMED["float"] = [9.223372e18 if v == 2.0**63 else v for v in NAMED["double"]]


@pytest.mark.parametrize("kind", NAMED)
def test_named_dimensions_in_one_mixed_batch(kind: str) -> None:
    assert named(kind, *VALUES) == NAMED[kind]


@pytest.mark.parametrize("kind", NAMED)
def test_named_dimensions_each_alone(kind: str) -> None:
    """A batch of one kind of values goes another way through the decoder, to the same result."""
    found = {value: named(kind, value) for value in VALUES}
    assert found == {value: [expected] for value, expected in zip(VALUES, NAMED[kind], strict=True)}


def test_faulty_values_are_told() -> None:
    decoder = JsonDecoder(
        schema_of(dimensions=[{"name": "v", "type": "long"}, {"name": "w", "type": "double"}]), input_format=ANY_NUMBER
    )
    decoded = decode(decoder, '"v":"x","w":[]', '"v":null', "", '"v":1.5,"w":2', '"w":"y"', '"w":NaN')
    decoder.close()
    assert decoded.processed_with_error == {
        0: "field 'v' is not a whole number",
        4: "field 'w' is not a number",
        5: "field 'w' is not a number",
    }
    assert len(decoded.rows) == 6


WHOLE_NUMBERS: list[tuple[str, int | None, int | None]] = [  # a value, as a dimension, as a metric
    *[("1.5", 1, 1), ("-0.5", 0, 0), ("1e-7", 0, 0), ("1.5e17", 15 * 10**16, 15 * 10**16)],
    *[("1e300", 2**63 - 1, 2**63 - 1), ("-9223372036854775809", -(2**63), -(2**63))],
    *[('"2.0"', 2, 2), ('"1e3"', 1000, 1000), ('"5."', 5, 5), ('"2.5"', None, 2), ('"-2.5"', None, -2)],
    *[('" 7 "', None, 7), ('"1,234"', None, 1234), ('"1d"', None, 1), ('"9223372036854775808"', None, 2**63 - 1)],
    *[("true", 1, None), ("false", 0, None), ('"true"', None, None), ("[1]", None, None), ('""', None, None)],
    *[('"x"', None, None), ('"9007199254740993"', 2**53 + 1, 2**53 + 1), ('"9007199254740993.0"', None, 2**53)],
]


@pytest.mark.parametrize("among", [[], ['"v":7'], ['"v":"8"', '"v":2.5']])
def test_whole_numbers_of_dimensions_and_of_metrics(among: list[str]) -> None:
    """Whatever is read with it. What became null is told; what was cut or clamped is not, as in Druid."""
    found = {value: whole_numbers(value, among) for value, _, _ in WHOLE_NUMBERS}
    wanted = {value: [(d, d is None), (m, m is None)] for value, d, m in WHOLE_NUMBERS}
    assert found == wanted


def whole_numbers(value: str, among: list[str]) -> list[tuple[Any, bool]]:
    """The value that a number has as a dimension and as a metric, and whether the loss of it is reported."""
    longs = {"dimensionsSpec": {"dimensions": [{"name": "v", "type": "long"}]}}
    sums = {
        "dimensionsSpec": {"dimensions": ["x"]},
        "metricsSpec": [{"type": "longSum", "name": "s", "fieldName": "v"}],
    }
    found = []
    for columns, name in ((longs, "v"), (sums, "s")):
        schema = {"dataSource": "d", "timestampSpec": {"column": "t"}, **columns}
        decoded = decode(decoder_of(DataSchema.model_validate(schema), ANY_NUMBER), f'"v":{value}', *among)
        found.append((decoded.rows.column(name)[0].as_py(), 0 in decoded.processed_with_error))
    return found


@pytest.mark.parametrize(
    ("value", "dimension", "metric"),
    [
        *[
            ('"1.9"', 1.9, 1.9),
            ('" 7 "', None, 7.0),
            ('"1,234.5"', None, 1234.5),
            ('"1d"', 1.0, 1.0),
            ('".5"', 0.5, 0.5),
        ],
        *[("true", None, None), ('"NaN"', None, None), ("NaN", None, None), ("1e999", None, None), ("[]", None, None)],
    ],
)
@pytest.mark.parametrize("kind", ["double", "float"])
def test_numbers_of_dimensions_and_of_metrics(
    kind: str, value: str, dimension: float | None, metric: float | None
) -> None:
    numbers = {"dimensionsSpec": {"dimensions": [{"name": "v", "type": kind}]}}
    sums = {
        "dimensionsSpec": {"dimensions": ["x"]},
        "metricsSpec": [{"type": f"{kind}Sum", "name": "s", "fieldName": "v"}],
    }
    for columns, name, expected in ((numbers, "v", dimension), (sums, "s", metric)):
        schema = {"dataSource": "d", "timestampSpec": {"column": "t"}, **columns}
        decoded = decode(decoder_of(DataSchema.model_validate(schema), ANY_NUMBER), f'"v":{value}')
        assert decoded.rows.column(name)[0].as_py() == expected
        assert (0 in decoded.processed_with_error) is (expected is None)


def test_a_float_has_the_digits_of_a_float() -> None:
    """And is null where it is beyond one."""
    assert named("float", "0.1", "123456789", "16777217", "1e39") == [0.1, 123456792.0, 16777216.0, None]
    assert named("double", "0.1", "123456789", "16777217", "1e39") == [0.1, 123456789.0, 16777217.0, 1e39]


BEYOND = "field 'v' has a number that is too large for a double"
ROUNDED = "field 'v' is rounded: it has more digits than a double can store"


@pytest.mark.parametrize(
    ("values", "stored", "told"),
    [
        (["1e400"], [None], {0: BEYOND}),
        (["-1e400", "1"], [None, 1.0], {0: BEYOND}),
        (["NaN", "1.5"], [None, 1.5], {0: BEYOND}),
        (["Infinity", "-Infinity"], [None, None], {0: BEYOND, 1: BEYOND}),
        (["9223372036854775807", "-9223372036854775808"], [2**63 - 1, -(2**63)], {}),
        (["9223372036854775808"], [2.0**63], {}),  # a power of two, which a double holds
        (["9223372036854775809"], [2.0**63], {0: ROUNDED}),
        (["123456789012345678901", "1"], [123456789012345678901.0, 1.0], {0: ROUNDED}),
        (["9007199254740993", "1.5"], [2.0**53, 1.5], {0: ROUNDED}),
        (["9007199254740992", "1.5"], [2.0**53, 1.5], {}),
        (["9007199254740993", "7"], [9007199254740993, 7], {}),
        (["1e400", '"x"'], ["Infinity", "x"], {}),
        (["123456789012345678901", '"x"'], ["1.2345678901234568E20", "x"], {}),
        (["1e400", "[]"], ["1e400", "[]"], {}),
        (["null", "1.5"], [None, 1.5], {}),
    ],
)
@pytest.mark.parametrize("named_so", [False, True])
def test_a_number_that_its_column_does_not_hold_is_told(
    values: list[str], stored: list[Any], told: dict[int, str], named_so: bool
) -> None:
    """Where the column's type is chosen by the values: discovered, or of type auto."""
    by_name: dict[str, Any] = {"dimensions": [{"name": "v", "type": "auto"}]}
    decoder = JsonDecoder(schema_of(**by_name if named_so else {"useSchemaDiscovery": True}), input_format=ANY_NUMBER)
    decoded = decode(decoder, *(f'"v":{v}' for v in values))
    decoder.close()
    held = decoded.rows.column("v").to_pylist()
    assert held == stored
    assert [type(v) for v in held] == [type(v) for v in stored]
    assert decoded.processed_with_error == told


def test_the_arrow_types_of_named_dimensions() -> None:
    kinds = ["string", "long", "float", "double", "json", "auto"]
    decoder = JsonDecoder(schema_of(dimensions=[{"name": k, "type": k} for k in kinds]), input_format=ANY_NUMBER)
    for decoded in (decode(decoder, ""), decode(decoder), decode(decoder, '"auto":null')):
        assert decoded.rows.schema.types[2:] == [pa.string(), pa.int64(), pa.float64(), pa.float64(), JSON, pa.string()]
    assert decode(decoder, '"auto":1').rows.schema.field("auto").type == pa.int64()
    decoder.close()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        *[("1.10", "1.1"), ("1e5", "100000.0"), ("1E7", "1.0E7"), ("1E-7", "1.0E-7"), ("-0.0", "-0.0"), ("1.0", "1.0")],
        *[
            ("0.1234567890123456789", "0.12345678901234568"),
            ("123", "123"),
            ("18446744073709551617", "1.8446744073709552E19"),
        ],
    ],
)
def test_numbers_in_a_string_dimension_are_as_java_writes_them(written: str, expected: str) -> None:
    assert named("string", written, '"x"', "true") == [expected, "x", "true"]
    assert named("string", written) == [expected]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"b":{"c":[1.50,"x"]},"a":null,"t":true}', "{b={c=[1.5, x]}, a=null, t=true}"),
        ("{}", "{}"),
        ('[{"a":1}]', "{a=1}"),
        ("[null]", None),
        ("[]", None),
        ('["a\\n[1e3"]', "a\n[1e3"),
    ],
)
def test_objects_and_lists_of_one_in_a_string_dimension(value: str, expected: str | None) -> None:
    assert named("string", value, '"x"', "7") == [expected, "x", "7"]


def test_whole_numbers_beyond_a_long_are_doubles_in_json() -> None:
    value = '{"a":[9223372036854775808,9223372036854775807],"s":"9223372036854775808 \u00e9"}'
    expected = '{"a":[9.223372036854776e+18,9223372036854775807],"s":"9223372036854775808 é"}'
    assert named("json", value, "1", '"9223372036854775808"') == [expected, "1", '"9223372036854775808"']
    deep = "[" * 20_000 + "9223372036854775808" + "]" * 20_000
    assert named("json", deep) == [deep]
    assert named("string", deep) == [deep]
