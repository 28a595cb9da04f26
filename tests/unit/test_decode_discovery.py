"""What discovery makes of the fields of a batch, and which columns there are."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.decode.decoded import join_decoded
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow
from ingestion.rows import row_indexes
from ingestion.specs.schema.data_schema import DataSchema
from tests.support.decoded_fields import decode, schema_of
from tests.support.decoders import ANY_NUMBER

pytestmark = pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result")
JSON = pa.json_(pa.string())


@pytest.fixture(scope="module")
def discovering() -> Iterator[JsonDecoder]:
    made = JsonDecoder(schema_of(useSchemaDiscovery=True), input_format=ANY_NUMBER)
    yield made
    made.close()


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
    assert row_indexes(join_decoded([decoded, decoded.moved([2, 3])]).rows).tolist() == [0, 1, 2, 3]


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


@settings(max_examples=80)
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


def test_parts_are_joined_under_types_that_hold_all_values() -> None:
    """By a decoder of its own: columns come in the order in which it has met them."""
    with closing(JsonDecoder(schema_of(useSchemaDiscovery=True))) as new:
        parts = [
            decode(new, '"n":1,"s":"x","j":{"a":1},"b":true'),
            decode(new, '"n":1.5,"s":2,"j":"x","b":true,"late":1'),
            decode(new, ""),
        ]
    whole = join_decoded([parts[0], parts[1].moved([1]), parts[2].moved([2])])
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
