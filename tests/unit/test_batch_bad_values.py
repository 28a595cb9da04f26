"""What can't be read in a Parquet, ORC or Avro file stops its own row alone; in a column that nobody names, nothing."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import fastavro
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tests.support.batch_run import START_MS, Run, below, spec_of

FORMS = {"parquet": {"type": "parquet"}, "orc": {"type": "orc"}, "avro": {"type": "avro_ocf"}}
GOOD, BAD, BYTES = "fine", "bad?text", b"bad\xfftext"
KINDS = {
    "text": (pa.string(), "string", lambda text: text),
    "list": (pa.list_(pa.string()), {"type": "array", "items": "string"}, lambda text: ["x", text]),
    "key": (pa.map_(pa.string(), pa.int64()), {"type": "map", "values": "long"}, lambda text: {text: 1}),
    "value": (pa.map_(pa.string(), pa.string()), {"type": "map", "values": "string"}, lambda text: {"k": text}),
    "in": (
        pa.struct([("a", pa.struct([("b", pa.string())]))]),
        {
            "type": "record",
            "name": "A",
            "fields": [
                {"name": "a", "type": {"type": "record", "name": "B", "fields": [{"name": "b", "type": "string"}]}}
            ],
        },
        lambda text: {"a": {"b": text}},
    ),
}


def a_file(folder: Path, form: str, kind: str) -> None:
    """Three rows; the second one's column v has a text that is not UTF-8."""
    arrow, avro, of = KINDS[kind]
    rows = [{"t": START_MS, "n": n, "v": of(text)} for n, text in enumerate((GOOD, BAD, GOOD))]
    path = folder / f"x.{form}"
    if form == "avro":
        types = {"t": "long", "n": "long", "v": avro}
        schema = {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in types.items()]}
        with path.open("wb") as file:
            fastavro.writer(file, schema, rows)
    else:
        table = pa.Table.from_pylist(rows, pa.schema({"t": pa.int64(), "n": pa.int64(), "v": arrow}))
        if form == "orc":
            orc.write_table(table, str(path))
        else:
            pq.write_table(table, path, compression="NONE")
    content = path.read_bytes()
    assert BAD.encode() in content
    path.write_bytes(content.replace(BAD.encode(), BYTES))


def run_of(folder: Path, form: str, *dimensions: Any, careful: bool = False, **flat: Any) -> Run:
    schema = {"dimensionsSpec": {"dimensions": [{"name": "n", "type": "long"}, *dimensions]}}
    return Run(spec_of(below(folder, "x.*"), FORMS[form] | flat, schema=schema), folder, careful=careful)


@pytest.mark.parametrize(
    ("form", "kind", "careful"),
    [*((form, kind, False) for form in FORMS for kind in KINDS), *((form, "key", True) for form in FORMS)],
)
def test_a_text_that_is_not_utf_8_stops_its_row_alone(tmp_path: Path, form: str, kind: str, careful: bool) -> None:
    a_file(tmp_path, form, kind)
    run = run_of(tmp_path, form, {"name": "v", "type": "json"}, careful=careful)
    assert sorted(run.stored(tmp_path)["n"]) == [0, 2]
    [kept] = run.told[0].quarantine.records
    assert (kept.position, kept.reason) == (1, "unparseable")
    assert kept.place == f"{tmp_path}/x.{form}, {'stripe 0, ' if form == 'orc' else ''}row 1"
    assert kept.error == "column 'v' has a text that is not UTF-8"
    assert BYTES in kept.payload


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_columns_that_the_spec_does_not_name_are_not_read(tmp_path: Path, form: str, kind: str) -> None:
    a_file(tmp_path, form, kind)
    run = run_of(tmp_path, form)
    assert sorted(run.stored(tmp_path)["n"]) == [0, 1, 2]
    assert run.summed("unparseable") == 0


@pytest.mark.parametrize(
    "more",
    [
        {"metricsSpec": [{"type": "stringLast", "name": "last", "fieldName": "v"}]},
        {"transformSpec": {"transforms": [{"type": "expression", "name": "made", "expression": "concat(v, 'x')"}]}},
        {"transformSpec": {"filter": {"type": "not", "field": {"type": "selector", "dimension": "v", "value": "y"}}}},
        {"dimensionsSpec": {"useSchemaDiscovery": True}},
        {"dimensionsSpec": {"dimensions": ["n", "v"]}},
    ],
)
def test_whatever_names_a_column_has_it_read(tmp_path: Path, more: dict[str, Any]) -> None:
    a_file(tmp_path, "parquet", "text")
    run = Run(spec_of(below(tmp_path, "x.*"), FORMS["parquet"], schema=more), tmp_path)
    assert (run.summed("processed"), run.summed("unparseable")) == (2, 1)


def test_a_column_that_is_excluded_is_not_read(tmp_path: Path) -> None:
    a_file(tmp_path, "parquet", "text")
    schema = {"dimensionsSpec": {"useSchemaDiscovery": True, "dimensionExclusions": ["v"]}}
    run = Run(spec_of(below(tmp_path, "x.*"), FORMS["parquet"], schema=schema), tmp_path)
    assert (run.summed("processed"), run.summed("unparseable")) == (3, 0)


@pytest.mark.parametrize(
    "field",
    [
        {"type": "path", "name": "b", "expr": "$.v.a.b"},
        {"type": "tree", "name": "b", "nodes": ["v", "a", "b"]},
        {"type": "path", "name": "b", "expr": "$..b"},
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_columns_that_a_flatten_spec_looks_into_are_read(tmp_path: Path, form: str, field: dict[str, Any]) -> None:
    a_file(tmp_path, form, "in")
    run = run_of(tmp_path, form, "b", flattenSpec={"fields": [field]})
    assert (run.summed("processed"), run.summed("unparseable")) == (2, 1)
    stored = run.stored(tmp_path)["b"]
    assert [value if isinstance(value, str) else next(iter(value)) for value in stored] == [GOOD, GOOD]


@pytest.mark.parametrize("tz", [None, "UTC"])
def test_a_time_of_orc_of_any_year_is_milliseconds(tmp_path: Path, tz: str | None) -> None:
    """One that nanoseconds do not hold, as a value or within one; the others of its stripe stay as they are."""
    late_ms, early_ms = 253_402_300_799_999, -62_135_596_800_000
    times = [datetime.datetime(2025, 1, 1, 0, 0, 0, 123456), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), None]
    times += [datetime.datetime(1, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 58, 999500)]
    expected = [START_MS + 123, late_ms, None, early_ms, -1_000]
    kind = pa.timestamp("us", tz)
    table = pa.table(
        {
            "t": [START_MS] * 5,
            "n": range(5),
            "at": pa.array(times, kind),
            "l": pa.array([[time] for time in times], pa.list_(kind)),
            "m": pa.array([[("k", time)] for time in times], pa.map_(pa.string(), kind)),
            "s": pa.array([{"a": time, "b": "x"} for time in times], pa.struct([("a", kind), ("b", pa.string())])),
            "never": pa.array([datetime.datetime(2025, 1, 1)] * 5, kind),
            "s.a": pa.array(times, kind),  # not the field of s
        }
    )
    orc.write_table(table, str(tmp_path / "x.orc"))
    nested = [{"name": name, "type": "json"} for name in ("l", "m", "s")]
    longs = [{"name": name, "type": "long"} for name in ("at", "never")]
    for more in ([], [{"name": "s.a", "type": "long"}]):
        run = run_of(tmp_path, "orc", *longs, *nested, *more)
        check_times(run.stored(tmp_path / str(len(more))).sort_values("n"), expected)
        assert run.summed("unparseable") == 0


def check_times(stored: pd.DataFrame, expected: list[int | None]) -> None:
    for name in {"at", "s.a"} & set(stored):
        assert [None if value != value else int(value) for value in stored[name]] == expected
    assert stored["never"].tolist() == [START_MS] * 5
    assert [json.loads(text) for text in stored["l"]] == [[ms] for ms in expected]
    assert [json.loads(text)["k"] for text in stored["m"]] == expected
    assert [json.loads(text) for text in stored["s"]] == [{"a": ms, "b": "x"} for ms in expected]


@pytest.mark.parametrize(
    ("key", "value", "name"),
    [
        (pa.binary(), b"\xff\x00", "/wA="),
        (pa.decimal128(9, 2), "12.50", "12.50"),
        (pa.float32(), 0.1, "0.1"),
        (pa.date32(), datetime.date(2025, 1, 2), "2025-01-02T00:00:00.000Z"),
    ],
)
def test_a_map_s_keys_are_texts(tmp_path: Path, key: pa.DataType, value: Any, name: str) -> None:
    keys = pa.array([value]).cast(key) if isinstance(value, str) else pa.array([value], key)
    column = pa.MapArray.from_arrays([0, 1], keys, pa.array([7]))
    orc.write_table(pa.table({"t": [START_MS], "n": [1], "v": column}), str(tmp_path / "x.orc"))
    run = run_of(tmp_path, "orc", {"name": "v", "type": "json"})
    assert run.stored(tmp_path)["v"].tolist() == [f'{{"{name}":7}}']


def test_a_date_of_orc_of_any_year_is_iso(tmp_path: Path) -> None:
    # The calendar repeats itself every 400 years, which are 146,097 days.
    days = pa.array([20_090, 21 * 146_097], pa.int32()).cast(pa.date32())
    orc.write_table(pa.table({"t": [START_MS] * 2, "n": [1, 2], "day": days}), str(tmp_path / "x.orc"))
    stored = run_of(tmp_path, "orc", "day").stored(tmp_path).sort_values("n")["day"].tolist()
    assert stored == ["2025-01-02T00:00:00.000Z", "10370-01-01T00:00:00.000Z"]


def enum_in(path: Path) -> None:
    """What is marked as text in the file's end becomes marked as ENUM, which pyarrow writes not."""
    kinds = pa.schema({"t": pa.int64(), "e": pa.string(), "l": pa.list_(pa.string()), "m": KINDS["value"][0]})
    rows = [{"t": START_MS, "e": "RED", "l": ["RED", "BLUE"], "m": {"RED": "BLUE"}}]
    pq.write_table(pa.Table.from_pylist(rows, kinds), path, store_schema=False)
    content = path.read_bytes()
    end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    # Thrift, compact: field 6 (converted type) UTF8 = 0, field 10 (logical type), a union whose field 1 is STRING.
    text, enum = b"\x25\x00\x4c\x1c\x00\x00", b"\x25\x08\x4c\x4c\x00\x00"
    assert content.count(text, end) == 4
    path.write_bytes(content[:end] + content[end:].replace(text, enum))


def test_parquet_s_enums_are_texts(tmp_path: Path) -> None:
    enum_in(tmp_path / "x.parquet")
    assert pq.ParquetFile(tmp_path / "x.parquet").schema_arrow.field("e").type == pa.binary()
    schema = {"dimensionsSpec": {"dimensions": ["e", "l", {"name": "m", "type": "json"}]}}
    [row] = (
        Run(spec_of(below(tmp_path, "x.*"), FORMS["parquet"], schema=schema), tmp_path)
        .stored(tmp_path)
        .to_dict("records")
    )
    assert (row["e"], list(row["l"]), row["m"]) == ("RED", ["BLUE", "RED"], '{"RED":"BLUE"}')
