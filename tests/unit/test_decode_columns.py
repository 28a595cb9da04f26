"""Values: named dimensions with their types, and what discovery makes of the fields of a batch."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.decode import Decoded, JsonDecoder, MessageWindow, row_indexes
from ingestion.decode.decoded import joined
from ingestion.specs import DataSchema
from tests.support.decoders import decoder_of

pytestmark = pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result")
JSON = pa.json_(pa.string())


def schema_of(**dimensions_spec: Any) -> DataSchema:
    return DataSchema.model_validate(
        {"dataSource": "d", "timestampSpec": {"column": "t"}, "dimensionsSpec": dimensions_spec}
    )


@pytest.fixture(scope="module")
def discovering() -> Iterator[JsonDecoder]:
    made = JsonDecoder(schema_of(useSchemaDiscovery=True))
    yield made
    made.close()


def decode(decoder: JsonDecoder, *fields: str) -> Decoded:
    """Decode records with a good time and these ``fields`` (the inside of a JSON object)."""
    payloads = [("{" + ",".join(['"t":0', f] if f else ['"t":0']) + "}").encode() for f in fields]
    return decoder.decode(payloads, MessageWindow())


def named(kind: str, *values: str) -> list[Any]:
    """What a dimension of ``kind`` makes of JSON ``values``, each in a record of one batch."""
    decoder = decoder_of(schema_of(dimensions=[{"name": "v", "type": kind}]))
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


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [(k, v, e) for k, column in NAMED.items() for v, e in zip(VALUES, column, strict=True)],
)
def test_named_dimensions_each_alone(kind: str, value: str, expected: Any) -> None:
    """A batch of one kind of values goes another way through the decoder, to the same result."""
    assert named(kind, value) == [expected]


def test_faulty_values_are_told() -> None:
    decoder = JsonDecoder(schema_of(dimensions=[{"name": "v", "type": "long"}, {"name": "w", "type": "double"}]))
    decoded = decode(decoder, '"v":"x","w":[]', '"v":null', "", '"v":1.5,"w":2', '"w":"y"', '"w":NaN')
    decoder.close()
    assert decoded.processed_with_error == {
        0: "field 'v' is not a whole number",
        4: "field 'w' is not a number",
        5: "field 'w' is not a number",
    }
    assert len(decoded.rows) == 6


@pytest.mark.parametrize(
    ("value", "dimension", "metric"),
    [
        *[("1.5", 1, 1), ("-0.5", 0, 0), ("1e-7", 0, 0), ("1.5e17", 15 * 10**16, 15 * 10**16)],
        *[("1e300", 2**63 - 1, 2**63 - 1), ("-9223372036854775809", -(2**63), -(2**63))],
        *[('"2.0"', 2, 2), ('"1e3"', 1000, 1000), ('"5."', 5, 5), ('"2.5"', None, 2), ('"-2.5"', None, -2)],
        *[('" 7 "', None, 7), ('"1,234"', None, 1234), ('"1d"', None, 1), ('"9223372036854775808"', None, 2**63 - 1)],
        *[("true", 1, None), ("false", 0, None), ('"true"', None, None), ("[1]", None, None), ('""', None, None)],
        *[('"x"', None, None), ('"9007199254740993"', 2**53 + 1, 2**53 + 1), ('"9007199254740993.0"', None, 2**53)],
    ],
)
@pytest.mark.parametrize("among", [[], ['"v":7'], ['"v":"8"', '"v":2.5']])
def test_whole_numbers_of_dimensions_and_of_metrics(
    value: str, dimension: int | None, metric: int | None, among: list[str]
) -> None:
    """Whatever is read with it. What became null is told; what was cut or clamped is not, as in Druid."""
    longs = {"dimensionsSpec": {"dimensions": [{"name": "v", "type": "long"}]}}
    sums = {
        "dimensionsSpec": {"dimensions": ["x"]},
        "metricsSpec": [{"type": "longSum", "name": "s", "fieldName": "v"}],
    }
    for columns, name, expected in ((longs, "v", dimension), (sums, "s", metric)):
        schema = {"dataSource": "d", "timestampSpec": {"column": "t"}, **columns}
        decoded = decode(decoder_of(DataSchema.model_validate(schema)), f'"v":{value}', *among)
        assert decoded.rows.column(name)[0].as_py() == expected
        assert (0 in decoded.processed_with_error) is (expected is None)


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
        decoded = decode(decoder_of(DataSchema.model_validate(schema)), f'"v":{value}')
        assert decoded.rows.column(name)[0].as_py() == expected
        assert (0 in decoded.processed_with_error) is (expected is None)


def test_a_float_has_the_digits_of_a_float() -> None:
    """And is null where it is beyond one."""
    assert named("float", "0.1", "123456789", "16777217", "1e39") == [0.1, 123456792.0, 16777216.0, None]
    assert named("double", "0.1", "123456789", "16777217", "1e39") == [0.1, 123456789.0, 16777217.0, 1e39]


BEYOND = "field 'v' holds a number that is beyond a double"
ROUNDED = "field 'v' is rounded: it has more digits than a double holds"


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
    decoder = JsonDecoder(schema_of(**by_name if named_so else {"useSchemaDiscovery": True}))
    decoded = decode(decoder, *(f'"v":{v}' for v in values))
    decoder.close()
    held = decoded.rows.column("v").to_pylist()
    assert held == stored
    assert [type(v) for v in held] == [type(v) for v in stored]
    assert decoded.processed_with_error == told


def test_the_arrow_types_of_named_dimensions() -> None:
    kinds = ["string", "long", "float", "double", "json", "auto"]
    decoder = JsonDecoder(schema_of(dimensions=[{"name": k, "type": k} for k in kinds]))
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


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["1", "-2"], pa.int64(), [1, -2]),
        (["1", "2.5"], pa.float64(), [1.0, 2.5]),
        (["9223372036854775807", "1"], pa.int64(), [2**63 - 1, 1]),
        (["9223372036854775808", "1"], pa.float64(), [float(2**63), 1.0]),
        (["123456789012345678901234567890"], pa.float64(), [123456789012345678901234567890.0]),
        (["true", "false"], pa.bool_(), [True, False]),
        (['"a"', '"1"'], pa.string(), ["a", "1"]),
        (["1", '"a"'], pa.string(), ["1", "a"]),
        (["1.10", '"a"'], pa.string(), ["1.1", "a"]),
        (["true", "1"], pa.string(), ["true", "1"]),
        (["true", '"a"'], pa.string(), ["true", "a"]),
        (['{"x":1}', "null"], JSON, ['{"x":1}', None]),
        (["[1,2]", "[]"], JSON, ["[1,2]", "[]"]),
        (['{"x":1}', "1", '"a"', "true"], JSON, ['{"x":1}', "1", '"a"', "true"]),
        (["null", "2", ""], pa.int64(), [None, 2, None]),
        (["null", "nan", "1"], pa.float64(), [None, None, 1.0]),
        (["NaN", "Infinity", "-Infinity", "1e999"], pa.float64(), [None, None, None, None]),
    ],
)
def test_discovered_types(discovering: JsonDecoder, values: list[str], kind: pa.DataType, expected: list[Any]) -> None:
    rows = decode(discovering, *(f'"v":{v}' if v else "" for v in values)).rows
    assert rows.schema.field("v").type == kind
    assert rows.column("v").to_pylist() == expected


def test_types_are_those_of_the_batch_alone(discovering: JsonDecoder) -> None:
    for values, kind in (("1", pa.int64()), ('"x"', pa.string()), ("1.5", pa.float64()), ("[]", JSON)):
        assert decode(discovering, f'"w":{values}').rows.schema.field("w").type == kind


def test_fields_without_a_value_are_left_out(discovering: JsonDecoder) -> None:
    assert decode(discovering, '"gone":null,"here":1', "").rows.column_names == ["__row", "__time", "here"]


def test_only_stored_records_say_what_columns_there_are() -> None:
    schema = DataSchema.model_validate(
        {
            "dataSource": "d",
            "timestampSpec": {"column": "t"},
            "dimensionsSpec": {"useSchemaDiscovery": True},
            "transformSpec": {"filter": {"type": "null", "column": "drop"}},
        }
    )
    decoder = JsonDecoder(schema)
    rows = decode(decoder, '"drop":1,"v":"text","other":1', '"v":2').rows
    decoder.close()
    assert rows.to_pydict()["v"] == [2]
    assert rows.column_names == ["__row", "__time", "v"]


def test_named_dimensions_come_first_and_discovered_ones_as_met() -> None:
    schema = schema_of(
        dimensions=["b", {"name": "t", "type": "long"}], useSchemaDiscovery=True, dimensionExclusions=["x"]
    )
    decoder = JsonDecoder(schema)
    rows = decode(decoder, '"z":1,"x":1,"a":2', '"b":3,"c":4,"__time":5').rows
    decoder.close()
    assert rows.column_names == ["__row", "__time", "b", "t", "z", "a", "c"]
    assert rows.column("t").to_pylist() == [0, 0]


def test_without_discovery_only_named_dimensions_are_stored() -> None:
    decoder = JsonDecoder(schema_of(dimensions=["b"]))
    rows = decode(decoder, '"a":1,"b":2').rows
    decoder.close()
    assert rows.column_names == ["__row", "__time", "b"]


NAMES = [
    "",
    "a",
    "A",
    "a.b",
    "a/b",
    "a~1b",
    'q"',
    "q'",
    "$",
    "$.a",
    "*",
    "0",
    "-",
    " ",
    "\n",
    "é",
    "😀",
    "\\",
    "\0",
    "a\0",
]
NAMES += ["c0", "l", "j", "counts", "is_object", "records", "select", "__row_", "x" * 1000]


def test_any_name_is_a_column_of_its_own() -> None:
    """But for NUL in one that is discovered, and control characters in one that is named."""
    nameable = [name for name in NAMES if name and min(name) >= " "]
    for schema, names in (
        (schema_of(useSchemaDiscovery=True), [n for n in NAMES if "\0" not in n]),
        (schema_of(dimensions=[{"name": n, "type": "long"} for n in nameable]), nameable),
    ):
        expected = {name: index for index, name in enumerate(names)}
        decoder = JsonDecoder(schema)
        rows = decoder.decode([json.dumps({"t": 0, **expected}).encode()], MessageWindow()).rows
        decoder.close()
        assert {name: rows.column(name)[0].as_py() for name in rows.column_names[2:]} == expected


def test_fields_named_like_the_decoders_own_columns(discovering: JsonDecoder) -> None:
    """``__time`` is not discovered; ``__row`` is, right of the decoder's own column of that name."""
    decoded = decode(discovering, '"__row":"mine","__time":"no"', "")
    assert decoded.rows.column_names == ["__row", "__time", "__row"]
    assert row_indexes(decoded.rows).tolist() == [0, 1]
    assert decoded.rows.column(2).to_pylist() == ["mine", None]
    assert row_indexes(joined([decoded, decoded.moved([2, 3])]).rows).tolist() == [0, 1, 2, 3]


def test_a_named_dimension_may_be_called_row() -> None:
    decoder = JsonDecoder(schema_of(dimensions=["__row"]))
    rows = decode(decoder, '"__row":"mine"').rows
    decoder.close()
    assert rows.column(2).to_pylist() == ["mine"]


def test_a_time_column_named_row_is_only_the_time() -> None:
    schema = DataSchema.model_validate({"dataSource": "d", "timestampSpec": {"column": "__row"}})
    decoder = JsonDecoder(schema)
    rows = decoder.decode([b'{"__row":0,"a":1}'], MessageWindow()).rows
    decoder.close()
    assert rows.column_names == ["__row", "__time", "a"]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LONGS = st.integers(-(2**63), 2**63 - 1)
FLAT = st.none() | st.booleans() | LONGS | st.floats(allow_nan=False, allow_infinity=False)
VALUE = FLAT | TEXTS | st.lists(LONGS | TEXTS, max_size=3) | st.dictionaries(TEXTS, LONGS, max_size=2)
RECORDS = st.lists(st.dictionaries(TEXTS.filter(lambda n: n not in ("t", "__time", "__row")), VALUE, max_size=4))


def expected_column(values: list[Any]) -> tuple[pa.DataType, list[Any]]:
    """The rules of discovery, said again in Python; text and numbers of the nested values are compared parsed."""
    held = [v for v in values if v is not None]
    kinds = {"json" if isinstance(v, list | dict) else type(v).__name__ for v in held}
    if "json" in kinds:
        return JSON, values
    if kinds == {"bool"} or kinds == {"str"}:
        return (pa.bool_() if kinds == {"bool"} else pa.string()), values
    if kinds == {"int"}:
        return pa.int64(), values
    if kinds <= {"int", "float"}:
        return pa.float64(), [None if v is None else float(v) for v in values]
    return pa.string(), [v if v is None or isinstance(v, str | float) else json.dumps(v) for v in values]


@settings(max_examples=200)
@given(records=RECORDS, ascii_only=st.booleans())
def test_what_is_written_is_read(discovering: JsonDecoder, records: list[dict[str, Any]], ascii_only: bool) -> None:
    payloads = [json.dumps({"t": 0, **r}, ensure_ascii=ascii_only).encode() for r in records]
    decoded = discovering.decode(payloads, MessageWindow())
    assert list(decoded.unparseable) == [i for i, r in enumerate(records) if any("\0" in name for name in r)]
    rows, records = decoded.rows, [r for r in records if not any("\0" in name for name in r)]
    names = {n for r in records for n, v in r.items() if v is not None}
    assert set(rows.column_names[2:]) == names
    for name in names:
        kind, values = expected_column([r.get(name) for r in records])
        column = rows.column(name)
        read = column.to_pylist()
        assert column.type == kind
        if kind == JSON:
            read = [None if v is None else json.loads(v) for v in read]
        assert [_same(a, b) for a, b in zip(read, values, strict=True)] == [True] * len(values)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, float):
        return float(one) == other
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, float(other), rel_tol=0, abs_tol=0)
    return bool(one == other and isinstance(one, bool) == isinstance(other, bool))


def test_parts_are_joined_under_types_that_hold_all_values(discovering: JsonDecoder) -> None:
    parts = [
        decode(discovering, '"n":1,"s":"x","j":{"a":1},"b":true'),
        decode(discovering, '"n":1.5,"s":2,"j":"x","b":true,"late":1'),
        decode(discovering, ""),
    ]
    whole = joined([parts[0], parts[1].moved([1]), parts[2].moved([2])])
    assert whole.rows.schema.types[2:] == [pa.float64(), pa.string(), JSON, pa.bool_(), pa.int64()]
    assert whole.rows.to_pydict() | {"__time": None} == {
        "__row": [0, 1, 2],
        "__time": None,
        "n": [1.0, 1.5, None],
        "s": ["x", "2", None],
        "j": ['{"a":1}', '"x"', None],
        "b": [True, True, None],
        "late": [None, 1, None],
    }
