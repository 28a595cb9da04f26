"""Dimensions: strings of several values, what is discovered and what is not, fields that come, change and go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from ingestion.decode.decoded import Decoded, join_decoded
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow
from ingestion.segments.batch import write_segments
from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segment
from ingestion.specs.messages.protocol import Column
from ingestion.specs.schema.data_schema import DataSchema
from tests.support.column_ids import some_ids
from tests.support.decoders import ANY_NUMBER, decoder_of

LISTS = pa.list_(pa.string())


def schema_of(more: dict[str, Any] | None = None, **dimensions_spec: Any) -> DataSchema:
    return DataSchema.model_validate(
        {"dataSource": "d", "timestampSpec": {"column": "t"}, "dimensionsSpec": dimensions_spec, **(more or {})}
    )


def decoded_with(schema: DataSchema, *fields: str) -> Decoded:
    """Records with a good time and these ``fields`` (the inside of a JSON object)."""
    payloads = [("{" + ",".join(['"t":0', f] if f else ['"t":0']) + "}").encode() for f in fields]
    return decoder_of(schema, ANY_NUMBER).decode(payloads, MessageWindow())


def tags(handling: str | None, *values: str) -> pa.ChunkedArray:
    dimension = {"name": "tags"} | ({} if handling is None else {"multiValueHandling": handling})
    return decoded_with(schema_of(dimensions=[dimension]), *(f'"tags":{v}' for v in values)).rows.column("tags")


@pytest.mark.parametrize(
    ("handling", "expected"),
    [
        (None, ["a", "b", "b", "c"]),
        ("SORTED_ARRAY", ["a", "b", "b", "c"]),
        ("sorted_array", ["a", "b", "b", "c"]),
        ("SORTED_SET", ["a", "b", "c"]),
        ("ARRAY", ["b", "a", "c", "b"]),
    ],
)
def test_several_values_in_the_order_that_the_spec_says(handling: str | None, expected: list[str]) -> None:
    assert tags(handling, '["b","a","c","b"]').to_pylist() == [expected]


@pytest.mark.parametrize(
    ("handling", "expected"), [("ARRAY", ["x", None]), ("SORTED_ARRAY", [None, "x"]), ("SORTED_SET", [None, "x"])]
)
def test_nulls_among_the_values(handling: str, expected: list[str | None]) -> None:
    assert tags(handling, '["x",null]').to_pylist() == [expected]


def test_a_batch_with_an_array_has_a_column_of_lists() -> None:
    column = tags("ARRAY", '["b"]', '"a"', "7", "true", "null", "[]", '{"k":1}', '[1,2.5,false,{"k":1}]')
    assert column.type == LISTS
    lists = [["b"], ["a"], ["7"], ["true"], None, None, ["{k=1}"], ["1", "2.5", "false", "{k=1}"]]
    assert column.to_pylist() == lists


@pytest.mark.parametrize("handling", ["ARRAY", "SORTED_ARRAY", "SORTED_SET"])
def test_a_list_of_null_is_null_also_beside_lists(handling: str) -> None:
    assert tags(handling, '["a","b"]', "[null]", "null", "[]").to_pylist() == [["a", "b"], None, None, None]


def test_arrays_of_one_make_no_lists() -> None:
    column = tags("SORTED_SET", '["b"]', '"a"', "[null]", "[]", "null", "[1.50]")
    assert column.type == pa.string()
    assert column.to_pylist() == ["b", "a", None, None, None, "1.5"]


def test_a_batch_without_an_array_has_a_column_of_texts() -> None:
    column = tags(None, '"a"', "7", '{"k":1}')
    assert column.type == pa.string()
    assert column.to_pylist() == ["a", "7", "{k=1}"]


def test_texts_and_lists_are_joined_as_lists() -> None:
    schema = schema_of(dimensions=["tags"])
    one = decoded_with(schema, '"tags":"a"', '"tags":null')
    two = decoded_with(schema, '"tags":["b","c"]').moved([2])
    assert join_decoded([one, two]).rows.column("tags").to_pylist() == [["a"], None, ["b", "c"]]


def test_lists_are_stored_and_told(tmp_path: Path) -> None:
    columns, rows = stored(tmp_path, schema_of(dimensions=["tags"]), '"tags":["b","a"]', '"tags":"c"')
    assert columns == [Column(name="__time", type="timestamp"), Column(name="tags", type="strings")]
    assert sorted(rows.column("tags").to_pylist()) == [["a", "b"], ["c"]]


def stored(folder: Path, schema: DataSchema, *fields: str) -> tuple[list[Column], pa.Table]:
    """The columns and rows of the one segment of such records."""
    storage = LocalStorage(folder / "deep")
    (file,) = write_segments(
        decoded_with(schema, *fields).rows,
        np.zeros(len(fields), np.int64),
        np.arange(len(fields)),
        schema=schema,
        version="v",
        storage=storage,
        scratch=folder / "s",
        ids=some_ids(),
    )
    return file.columns, read_segment(storage, file.path)


def test_a_list_of_null_rolls_up_with_null(tmp_path: Path) -> None:
    more = {"metricsSpec": [{"type": "count", "name": "n"}], "granularitySpec": {"rollup": True}}
    tags_of_four = ('"tags":["a","b"]', '"tags":[null]', '"tags":null', "")
    _, rows = stored(tmp_path, schema_of(more, dimensions=["tags"]), *tags_of_four)
    found = zip(rows.column("tags").to_pylist(), rows.column("n").to_pylist(), strict=True)
    assert sorted(found, key=str) == [(None, 3), (["a", "b"], 1)]


def test_arrays_elsewhere_stay_json() -> None:
    schema = schema_of(
        dimensions=[{"name": "j", "type": "json"}, {"name": "a", "type": "auto"}], useSchemaDiscovery=True
    )
    rows = decoded_with(schema, '"j":[1],"a":[2],"found":[3]').rows
    assert rows.to_pylist()[0] | {"__time": None} == {
        "__row": 0,
        "__time": None,
        "j": "[1]",
        "a": "[2]",
        "found": "[3]",
    }


def test_a_bitmap_index_is_taken_without_effect() -> None:
    schema = schema_of(dimensions=[{"name": "a", "createBitmapIndex": False, "type": "string"}])
    assert decoded_with(schema, '"a":1').rows.column("a").to_pylist() == ["1"]


def test_spatial_dimensions_are_refused_with_a_reason() -> None:
    with pytest.raises(ValidationError, match="Parquet has no spatial index: add the coordinates"):
        schema_of(spatialDimensions=[{"dimName": "place", "dims": ["lat", "long"]}])
    assert schema_of(spatialDimensions=[]).dimensionsSpec.discovers


@pytest.mark.parametrize(
    ("spec", "columns"),
    [
        ({}, ["a", "b", "x"]),
        ({"dimensions": [], "dimensionExclusions": ["x"]}, ["a", "b"]),
        ({"dimensions": ["b"]}, ["b"]),
        ({"dimensions": ["b"], "dimensionExclusions": ["x"]}, ["b"]),
        ({"dimensions": ["b"], "useSchemaDiscovery": True}, ["b", "a", "x"]),
        ({"dimensions": ["b"], "includeAllDimensions": True, "dimensionExclusions": ["x"]}, ["b", "a"]),
        ({"dimensions": ["absent"]}, ["absent"]),
    ],
)
def test_which_fields_become_columns(spec: dict[str, Any], columns: list[str]) -> None:
    assert decoded_with(schema_of(**spec), '"a":1,"b":2,"x":3').rows.column_names[2:] == columns


def test_as_in_druid_fields_and_names_of_metrics_are_not_discovered() -> None:
    """Of Druid's sample for Kafka: the dimensions are all fields but the time and what the metrics read."""
    metrics = [
        {"name": "count", "type": "count"},
        {"name": "value_sum", "fieldName": "value", "type": "doubleSum"},
        {"name": "value_max", "fieldName": "value", "type": "doubleMax"},
    ]
    rows = decoded_with(schema_of({"metricsSpec": metrics}), '"value":1,"host":"h","count":9,"value_sum":8').rows
    assert rows.column_names[2:] == ["host", "count", "value_sum", "value_max"]
    assert rows.to_pylist()[0] | {"__time": None, "__row": None} == {
        "__row": None,
        "__time": None,
        "host": "h",
        "count": 1,
        "value_sum": 1.0,
        "value_max": 1.0,
    }
    named = decoded_with(
        schema_of({"metricsSpec": metrics}, dimensions=["value"], useSchemaDiscovery=True), '"value":1'
    ).rows
    assert named.column_names[2:] == ["value", "count", "value_sum", "value_max"]


def test_fields_that_appear_change_and_vanish_are_columns_of_each_segment() -> None:
    """Each batch's file has the type that holds what it holds; together they are read under the one that holds both."""
    decoder = JsonDecoder(schema_of(useSchemaDiscovery=True))
    batches = [b'{"t":0,"a":1}', b'{"t":0,"a":1.5,"b":true}', b'{"t":0,"a":"x","b":{"k":1}}', b'{"t":0}']
    found = [decoder.decode([payload], MessageWindow()) for payload in batches]
    decoder.close()
    kinds = [[str(t) for t in d.rows.schema.types[2:]] for d in found]
    assert kinds == [["int64"], ["double", "bool"], ["string", "extension<arrow.json>"], []]
    whole = join_decoded([d.moved([i]) for i, d in enumerate(found)]).rows
    assert whole.column("a").to_pylist() == ["1", "1.5", "x", None]
    assert whole.column("b").to_pylist() == [None, "true", '{"k":1}', None]


def test_fields_that_a_spec_does_not_name_are_strings() -> None:
    """Unless useSchemaDiscovery is true; fields with objects and nested arrays are none."""
    specs: list[dict[str, Any]] = [{}, {"includeAllDimensions": True, "dimensions": ["y"]}]
    fields = (
        '"x":"a","y":1.50,"l":[1,"b"],"o":{"k":1},"b":true,"n":null,"e":[],"a":[[1]],"":7',
        '"x":5,"o":"s","a":["[",2],"l":3',
    )
    for spec in specs:
        rows = decoded_with(schema_of(**spec), *fields).rows
        assert set(rows.column_names[2:]) == {"x", "y", "l", "o", "b", "a"}
        found = rows.select(["x", "y", "l", "o", "b", "a"]).to_pydict()
        assert found == {
            "x": ["a", "5"],
            "y": ["1.5", None],
            "l": [["1", "b"], ["3"]],
            "o": [None, "s"],
            "b": ["true", None],
            "a": [None, ["2", "["]],
        }


def cast_to(kind: str, *values: str) -> Decoded:
    dimension = {"type": "auto", "name": "x", "castToType": kind}
    return decoded_with(schema_of(dimensions=[dimension]), *(f'"x":{v}' for v in values))


def test_values_of_several_kinds_are_cast_to_one_type() -> None:
    """What can't be is named; a text that is no number is not."""
    values = ["7", "1.9", '"-2.5"', "true", '"none"', "null", "[3]", "[1,2]", '{"a":1}']
    longs = cast_to("long", *values)
    assert longs.rows.column("x").type == pa.int64()
    assert longs.rows.column("x").to_pylist() == [7, 1, -2, 1, None, None, 3, None, None]
    assert longs.processed_with_error == dict.fromkeys([7, 8], "field 'x' can't be cast to LONG")
    doubles = cast_to("FLOAT", *values, '"Infinity"')
    assert doubles.rows.column("x").type == pa.float64()
    assert doubles.rows.column("x").to_pylist() == [7.0, 1.9, -2.5, 1.0, None, None, 3.0, None, None, None]
    assert set(doubles.processed_with_error) == {7, 8, 9}
    texts = cast_to("STRING", *values)
    assert texts.rows.column("x").to_pylist() == ["7", "1.9", "-2.5", "1", "none", None, "3", None, None]
    arrays = cast_to("ARRAY<DOUBLE>", *values, '[1,"NaN"]')
    found = ["[7.0]", "[1.9]", "[-2.5]", "[1.0]", "[null]", None, "[3.0]", "[1.0, 2.0]", None, None]
    assert arrays.rows.column("x").to_pylist() == found
    assert set(arrays.processed_with_error) == {8, 9}


def test_columns_of_one_kind_are_cast_as_each_value_is() -> None:
    numbers = ["7", "1.9", "-3.7", "1e300", "9223372036854775808"]
    for kind in ("LONG", "DOUBLE"):
        alone = cast_to(kind, *numbers).rows.column("x").to_pylist()
        assert cast_to(kind, *numbers, '"x"').rows.column("x").to_pylist() == [*alone, None]
    texts = ['"a"', '"1e3"', '""']
    assert cast_to("STRING", *texts).rows.column("x").to_pylist() == ["a", "1e3", ""]
    assert cast_to("STRING", *texts, r'"\n"', "1").rows.column("x").to_pylist() == ["a", "1e3", "", "\n", "1"]


NOTHING_ASKED = ["nonsense", "", "array<long>", "COMPLEX<json>", "ARRAY<ARRAY<LONG>>", "ARRAY<COMPLEX<json>>"]


@pytest.mark.parametrize("kind", NOTHING_ASKED)
def test_what_is_no_type_casts_nothing(kind: str) -> None:
    """Each value keeps the type that it suggests."""
    assert cast_to(kind, "7", "8").rows.column("x").to_pylist() == [7, 8]
    assert cast_to(kind, '"7"', '"8"').rows.column("x").to_pylist() == ["7", "8"]


def test_arrays_of_floats_are_arrays_of_doubles() -> None:
    for kind in ("ARRAY<FLOAT>", "ARRAY<float>", "ARRAY<double>"):
        assert cast_to(kind, "[0.1, 16777217]").rows.column("x").to_pylist() == ["[0.1, 16777217.0]"]


def test_a_text_of_very_many_digits_is_the_greatest_long() -> None:
    digits = "9" * 5000
    found = cast_to("LONG", f'"{digits}"', f'"-{digits}"')
    assert found.rows.column("x").to_pylist() == [2**63 - 1, -(2**63)]
    assert not found.processed_with_error


@pytest.mark.parametrize(
    ("dimension", "told"),
    [
        ({"type": "auto", "castToType": "ARRAY<nonsense>"}, "'ARRAY<nonsense>' is an array of an unknown type"),
        ({"type": "auto", "castToType": "ARRAY<ARRAY<none>>"}, "'ARRAY<none>' is an array of an unknown type"),
        ({"type": "auto", "castToType": "ARRAY<LONG"}, "'ARRAY<LONG' is an array of an unknown type"),
        ({"type": "auto", "castToType": "complex"}, "the only complex type is COMPLEX<json>"),
        ({"type": "auto", "castToType": "COMPLEX<hyperUnique>"}, "the only complex type is COMPLEX<json>"),
        ({"type": "auto", "castToType": 7}, "castToType"),
        ({"type": "long", "castToType": "LONG"}, "castToType is for dimensions of type auto; x is of type long"),
    ],
)
def test_what_is_cast_to_no_known_type_is_refused(dimension: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        schema_of(dimensions=[{"name": "x", **dimension}])


def test_what_is_no_json_is_told_of_a_discovered_string() -> None:
    decoded = decoded_with(schema_of(), '"x":NaN', '"x":-Infinity', '"x":"NaN"')
    assert decoded.rows.column("x").to_pylist() == [None, None, "NaN"]
    assert decoded.processed_with_error == dict.fromkeys([0, 1], "field 'x' is not JSON: NaN or Infinity")


@pytest.mark.parametrize("wanted", ["LONG", "DOUBLE", "STRING", "ARRAY<LONG>", "ARRAY<DOUBLE>", "ARRAY<STRING>"])
@pytest.mark.parametrize("value", ["INF", "-INF", "-Infinity"])
def test_what_is_no_json_is_cast_to_nothing(wanted: str, value: str) -> None:
    dimension = {"type": "auto", "name": "v", "castToType": wanted}
    found = decoded_with(schema_of(dimensions=[dimension]), '"v":"text"', f'"v":{value}')
    assert (found.rows.column("v").to_pylist()[1], 1 in found.processed_with_error) == (None, True)


@pytest.mark.parametrize("value", ["[nan,1]", '["a",-INF]', '{"a":INF}', '[INF,{"a":1}]', "[[inf]]"])
@pytest.mark.parametrize("spec", [{"dimensions": ["v"]}, {}], ids=["named", "discovered"])
def test_a_list_or_an_object_that_is_no_json_ends_no_decoder(spec: dict[str, Any], value: str) -> None:
    found = decoded_with(schema_of(**spec), '"v":"x"', f'"v":{value}')
    assert (len(found.rows), found.unparseable) == (2, {})
    if spec:
        assert found.rows.column("v").to_pylist()[1]
