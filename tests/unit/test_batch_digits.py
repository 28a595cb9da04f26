"""Decimals, floats, times and texts of Parquet, ORC and Avro files: what is stored is what was written."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import fastavro
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from ingestion.specs.messages.compaction import InputSegment
from tests.support.batch_run import START_MS, Run, below, spec_of

FORMS = {"parquet": {"type": "parquet"}, "orc": {"type": "orc"}, "avro": {"type": "avro_ocf"}}
CENTS = Decimal("1234567890123456.78")
MS_OF_9999 = 253_402_214_400_000


def a_file(folder: Path, kind: str, columns: dict[str, pa.Array], avro: dict[str, Any] | None = None) -> None:
    """A row for each value; of Avro with these types by name."""
    table = pa.table({"t": pa.array([START_MS] * len(next(iter(columns.values())))), **columns})
    if kind == "parquet":
        pq.write_table(table, folder / "x.parquet")
    elif kind == "orc":
        orc.write_table(table, str(folder / "x.orc"))
    else:
        types = {"t": "long", **(avro or {})}
        schema = {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in types.items()]}
        with (folder / "x.avro").open("wb") as file:
            fastavro.writer(file, schema, table.to_pylist(maps_as_pydicts="strict"))


def read(folder: Path, kind: str, dimensions: list[Any], careful: bool = False, **flat: Any) -> Run:
    schema = {"dimensionsSpec": {"dimensions": dimensions}}
    return Run(spec_of(below(folder, "x.*"), FORMS[kind] | flat, schema=schema), folder, careful=careful)


def row(run: Run, folder: Path) -> dict[str, Any]:
    [found] = run.stored(folder).to_dict("records")
    return {name: list(v) if hasattr(v, "tolist") and not isinstance(v, float) else v for name, v in found.items()}


AVRO_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}
PRICES: dict[str, Any] = {
    "price": pa.array([CENTS], pa.decimal128(38, 2)),
    "small": pa.array([Decimal("0.10")], pa.decimal128(38, 2)),
    "large": pa.array([Decimal("12345678.50")], pa.decimal128(38, 2)),
    "list": pa.array([[Decimal("0.10"), CENTS]], pa.list_(pa.decimal128(38, 2))),
    "in": pa.array(
        [{"a": Decimal("0.10"), "l": [CENTS]}],
        pa.struct([("a", pa.decimal128(38, 2)), ("l", pa.list_(pa.decimal128(38, 2)))]),
    ),
    "map": pa.array([[("k", Decimal("0.10"))]], pa.map_(pa.string(), pa.decimal128(38, 2))),
}
AVRO_PRICES = {
    **dict.fromkeys(("price", "small", "large"), AVRO_DECIMAL),
    "list": {"type": "array", "items": AVRO_DECIMAL},
    "in": {
        "type": "record",
        "name": "In",
        "fields": [
            {"name": "a", "type": AVRO_DECIMAL},
            {"name": "l", "type": {"type": "array", "items": AVRO_DECIMAL}},
        ],
    },
    "map": {"type": "map", "values": AVRO_DECIMAL},
}


@pytest.mark.parametrize("careful", [False, True])
@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_decimals_keep_their_digits_in_texts_and_json(tmp_path: Path, kind: str, careful: bool) -> None:
    a_file(tmp_path, kind, PRICES, AVRO_PRICES)
    paths = {"last": "$.list[-1:]", "a": "$.in.a", "first": "$.in.l[0]", "k": "$.map.k", "all": "$.in.l"}
    fields: list[dict[str, Any]] = [{"type": "path", "name": name, "expr": expr} for name, expr in paths.items()]
    fields.append({"type": "tree", "name": "tree", "nodes": ["in", "a"]})
    dimensions = ["price", "small", "large", "list", {"name": "in", "type": "json"}, {"name": "map", "type": "json"}]
    run = read(tmp_path, kind, [*dimensions, "tree", *paths], careful, flattenSpec={"fields": fields})
    stored = row(run, tmp_path)
    stored.pop("__time")
    assert stored == {
        "price": "1234567890123456.78",
        "small": "0.10",
        "large": "12345678.50",
        "list": ["0.10", "1234567890123456.78"],
        "in": '{"a":0.10,"l":[1234567890123456.78]}',
        "map": '{"k":0.10}',
        "tree": "0.10",
        "last": "1234567890123456.78",
        "a": "0.10",
        "first": "1234567890123456.78",
        "k": "0.10",
        "all": "1234567890123456.78",
    }
    assert run.summed("with_error") == 0


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.decimal256(60, 3), Decimal("123456789012345678901234567890.100"), "123456789012345678901234567890.100"),
        (pa.decimal256(60, 0), Decimal("123456789012345678901234567890"), "123456789012345678901234567890"),
        (pa.decimal128(9, 1), Decimal("12345678.5"), "12345678.5"),
        (pa.decimal128(9, 7), Decimal("0.0000100"), "0.0000100"),
        (pa.decimal128(9, 4), Decimal("0.0001"), "0.0001"),
        (pa.decimal128(9, 2), Decimal("-7.00"), "-7.00"),
        (pa.decimal128(9, 0), Decimal("7"), "7"),
        (pa.float64(), 12345678.5, "1.23456785E7"),  # as Java writes a double
        (pa.float64(), 1e16, "1.0E16"),
    ],
)
def test_a_number_is_the_text_of_its_type(tmp_path: Path, kind: pa.DataType, value: Any, text: str) -> None:
    a_file(tmp_path, "parquet", {"n": pa.array([value], kind), "l": pa.array([[value, value]], pa.list_(kind))})
    stored = row(read(tmp_path, "parquet", ["n", "l"]), tmp_path)
    assert (stored["n"], stored["l"]) == (text, [text, text])


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_a_decimal_that_a_double_rounds_is_no_error(tmp_path: Path, kind: str) -> None:
    columns = {"price": pa.array([CENTS, Decimal("0.10")], pa.decimal128(38, 2))}
    a_file(tmp_path, kind, columns, {"price": AVRO_DECIMAL})
    for typed in ("double", "auto"):
        run = read(tmp_path, kind, [{"name": "price", "type": typed}])
        assert run.stored(tmp_path / typed)["price"].sort_values().tolist() == [0.1, 1234567890123456.8]
        assert run.summed("with_error") == 0
        assert run.told[0].unread == []


def test_a_long_has_the_whole_part_of_a_decimal(tmp_path: Path) -> None:
    values = [Decimal("1234567890123456789.99"), Decimal("-12.50"), Decimal("99999999999999999999.00")]
    a_file(tmp_path, "parquet", {"n": pa.array(values, pa.decimal128(38, 2))})
    run = read(tmp_path, "parquet", [{"name": "n", "type": "long"}])
    assert sorted(run.stored(tmp_path)["n"]) == [-12, 1234567890123456789, 2**63 - 1]


def test_avro_decimals_have_the_digits_that_were_written_not_those_of_the_schema(tmp_path: Path) -> None:
    types = {"n": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}
    a_file(tmp_path, "avro", {"n": pa.array([Decimal("1234567.89")])}, types)
    file = tmp_path / "x.avro"
    file.write_bytes(file.read_bytes().replace(b'"precision": 9', b'"precision": 5'))
    assert b'"precision": 5' in file.read_bytes()
    assert row(read(tmp_path, "avro", ["n"]), tmp_path)["n"] == "1234567.89"


SINGLES = {
    "f": pa.array([0.1], pa.float32()),
    "l": pa.array([[0.1, 2.5]], pa.list_(pa.float32())),
    "m": pa.array([[("k", 0.1)]], pa.map_(pa.string(), pa.float32())),
    "large": pa.array([1e10], pa.float32()),
}
AVRO_SINGLES = {
    "f": "float",
    "l": {"type": "array", "items": "float"},
    "m": {"type": "map", "values": ["null", "float"]},
    "large": {"type": "float"},
}


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_a_float_is_the_shortest_text_that_gives_it_back(tmp_path: Path, kind: str) -> None:
    a_file(tmp_path, kind, SINGLES, AVRO_SINGLES)
    stored = row(read(tmp_path, kind, ["f", "l", {"name": "m", "type": "json"}, "large"]), tmp_path)
    assert (stored["f"], stored["l"], stored["m"], stored["large"]) == ("0.1", ["0.1", "2.5"], '{"k":0.1}', "1.0E10")
    number = read(tmp_path, kind, [{"name": "f", "type": "double"}])
    assert row(number, tmp_path / "n")["f"] == struct.unpack("f", struct.pack("f", 0.1))[0]
    assert number.summed("with_error") == 0


def test_a_uuid_of_avro_is_the_text_that_was_written(tmp_path: Path) -> None:
    odd, kind = "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", {"type": "string", "logicalType": "uuid"}
    types = {"v": kind, "l": {"type": "array", "items": kind}, "m": {"type": "map", "values": kind}, "u": ["int", kind]}
    columns = {
        "v": pa.array([odd]),
        "l": pa.array([[odd, "none"]]),
        "m": pa.array([[("k", odd)]], pa.map_(pa.string(), pa.string())),
        "u": pa.array([odd]),
    }
    a_file(tmp_path, "avro", columns, types)
    as_json = [{"name": name, "type": "json"} for name in ("m", "u")]
    stored = row(read(tmp_path, "avro", ["v", "l", *as_json], extractUnionsByType=True), tmp_path)
    assert {name: stored[name] for name in types} == {
        "v": odd,
        "l": [odd, "none"],
        "m": f'{{"k":"{odd}"}}',
        "u": f'{{"string":"{odd}"}}',
    }


@pytest.mark.parametrize("written", ["us", "ns"])
def test_int96_times_are_milliseconds_of_any_year(tmp_path: Path, written: str) -> None:
    last = datetime.datetime(9999, 12, 31) if written == "us" else datetime.datetime(2262, 1, 1)
    times = pa.array([datetime.datetime(2025, 1, 1, 0, 0, 0, 123456), last], pa.timestamp(written))
    values, kind = times.to_pylist(), times.type
    nested = {
        "l": pa.array([[t] for t in values], pa.list_(kind)),
        "m": pa.array([[("k", t)] for t in values], pa.map_(pa.string(), kind)),
        "s": pa.array([{"a": t} for t in values], pa.struct([("a", kind)])),
    }
    table = pa.table({"t": [START_MS, START_MS], "at": times, **nested})
    pq.write_table(table, tmp_path / "x.parquet", use_deprecated_int96_timestamps=True)
    as_json = [{"name": name, "type": "json"} for name in ("m", "s")]
    run = read(tmp_path, "parquet", [{"name": "at", "type": "long"}, "l", *as_json])
    last_ms = MS_OF_9999 if written == "us" else 9_214_646_400_000
    stored = run.stored(tmp_path).sort_values("at")
    assert stored["at"].tolist() == [START_MS + 123, last_ms]
    assert stored["l"].tolist() == [str(START_MS + 123), str(last_ms)]
    assert stored["m"].tolist() == [f'{{"k":{ms}}}' for ms in (START_MS + 123, last_ms)]
    assert stored["s"].tolist() == [f'{{"a":{ms}}}' for ms in (START_MS + 123, last_ms)]
    by_time = {"timestampSpec": {"column": "at", "format": "millis"}, "dimensionsSpec": {"dimensions": ["t"]}}
    timed = Run(spec_of(below(tmp_path, "x.*"), FORMS["parquet"], schema=by_time), tmp_path).stored(tmp_path / "timed")
    assert timed["__time"].min() == pd.Timestamp(START_MS + 123, unit="ms", tz="UTC")


def test_rows_of_segments_keep_their_digits_when_they_are_written_anew(tmp_path: Path) -> None:
    long = pa.array([Decimal("12345678901234567890")], pa.decimal128(38, 0))
    a_file(tmp_path, "parquet", {**PRICES, **SINGLES, "long": long, "d": pa.array([1e16])})
    typed = [{"name": name, "type": "json"} for name in ("in", "map", "l", "m", "long")]
    dimensions = ["price", "small", "list", {"name": "f", "type": "float"}, {"name": "d", "type": "double"}, *typed]
    first = read(tmp_path, "parquet", dimensions)
    wanted = row(first, tmp_path / "first")
    files = first.written(tmp_path / "first")
    kept = [InputSegment(id=uuid4(), **f.model_dump(include={"path", "rows", "size_bytes", "sha256"})) for f in files]
    source = {"type": "druid", "dataSource": "w", "interval": "2025-01-01/P1D"}
    again = {"timestampSpec": {"column": "__time", "format": "millis"}, "dimensionsSpec": {"dimensions": dimensions}}
    run = Run(spec_of(source, None, schema=again), tmp_path, deep=tmp_path / "first", segments=kept)
    assert row(run, tmp_path / "again") == wanted
    assert (wanted["in"], wanted["long"]) == ('{"a":0.10,"l":[1234567890123456.78]}', "12345678901234567890")
    as_texts = {**again, "dimensionsSpec": {"dimensions": ["f", "map"]}}
    texts = Run(spec_of(source, None, schema=as_texts), tmp_path, deep=tmp_path / "first", segments=kept)
    stored = row(texts, tmp_path / "texts")
    assert (stored["f"], stored["map"]) == ("0.1", "{k=0.10}")
