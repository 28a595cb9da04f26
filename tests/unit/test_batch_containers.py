"""Parquet, ORC and Avro container files: their rows mean what Druid takes them for, and each is read once."""

from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from ingestion.batch.errors import InputRefused
from ingestion.specs.errors import SpecError
from ingestion.specs.messages.checking import CheckOrder, format_of, needs_check, reader_schema_of
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from ingestion.task.check_spec import find_issues
from tests.support.batch_run import START_MS, Run, a_table, below, is_same, spec_of

NOON = datetime.datetime(2025, 1, 1, 12, 0, 0, 123456, datetime.UTC)
NOON_MS = START_MS + 12 * 3_600_000 + 123
PARQUET, ORC, AVRO = {"type": "parquet"}, {"type": "orc"}, {"type": "avro_ocf"}
AVRO_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Edit",
    "fields": [
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "page", "type": ["null", "string"], "default": None},
        {"name": "n", "type": "long"},
    ],
}


def columns(*names: str) -> dict[str, Any]:
    return {"schema": {"dimensionsSpec": {"dimensions": list(names)}}}


def one(tmp_path: Path, form: dict[str, Any], **parts: dict[str, Any]) -> dict[str, Any]:
    """The one row of the folder's only file."""
    found = Run(spec_of(below(tmp_path, "x.*"), form, **parts), tmp_path).stored(tmp_path)
    assert len(found) == 1
    return {name: value for name, value in found.iloc[0].items() if isinstance(value, np.ndarray) or pd.notna(value)}


def wide(times: pa.DataType, dates: pa.DataType) -> pa.Table:
    return pa.table(
        {
            "t": pa.array([NOON], times),
            "day": pa.array([datetime.date(2025, 1, 2)], dates),
            "price": pa.array([Decimal("12.50")], pa.decimal128(9, 2)),
            "raw": pa.array([b"\xff\x00"], pa.binary()),
            "tags": pa.array([["a", "b"]], pa.list_(pa.string())),
            "nothing": pa.array([None], pa.string()),
            "in": pa.array(
                [{"a": {"b": 7, "at": NOON}}], pa.struct([("a", pa.struct([("b", pa.int64()), ("at", times)]))])
            ),
            "counts": pa.array([[("k", 2**40)]], pa.map_(pa.string(), pa.int64())),
        }
    )


NESTED = {
    "flattenSpec": {
        "fields": [
            {"type": "path", "name": "b", "expr": "$.in.a.b"},
            {"type": "path", "name": "at", "expr": "$.in.a.at"},
            {"type": "path", "name": "k", "expr": "$.counts.k"},
        ]
    }
}
WANTED = columns(
    "price",
    "raw",
    "tags",
    "nothing",
    "day",
    *({"type": "long", "name": name} for name in ("b", "at", "k")),  # type: ignore[arg-type]
)
TOLD = {"price": "12.50", "raw": "/wA=", "tags": ["a", "b"], "b": 7, "at": NOON_MS, "k": 2**40}


@pytest.mark.parametrize("unit", ["ms", "us"])
@pytest.mark.parametrize("format", ["auto", "millis", "iso"])
def test_a_row_of_parquet_means_what_druid_takes_it_for(tmp_path: Path, unit: str, format: str) -> None:
    pq.write_table(
        wide(pa.timestamp(unit, "UTC"), pa.date32()),
        tmp_path / "x.parquet",
        coerce_timestamps=unit,
        allow_truncated_timestamps=True,
    )
    schema = {**WANTED["schema"], "timestampSpec": {"column": "t", "format": format}}
    row = one(tmp_path, PARQUET | NESTED, schema=schema)
    assert row.pop("__time") == pd.Timestamp(NOON_MS, unit="ms", tz="UTC")
    assert list(row.pop("tags")) == TOLD["tags"]
    assert row == {**{k: v for k, v in TOLD.items() if k != "tags"}, "day": str(START_MS + 86_400_000)}


def test_nanoseconds_of_parquet_stay_so_and_the_format_nano_reads_them(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": pa.array([NOON], pa.timestamp("ns"))}), tmp_path / "x.parquet")
    row = one(
        tmp_path,
        PARQUET,
        schema={"timestampSpec": {"column": "t", "format": "nano"}, "dimensionsSpec": {"dimensions": ["t"]}},
    )
    assert row["t"] == str(NOON_MS * 1_000_000 + 456_000)
    assert row["__time"] == pd.Timestamp(NOON_MS, unit="ms", tz="UTC")


def test_a_nan_of_a_file_costs_no_row(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [NOON_MS], "x": [float("nan")], "page": ["a"]}), tmp_path / "x.parquet")
    row = one(tmp_path, PARQUET, **columns("page", "x"))
    assert row.pop("__time") == pd.Timestamp(NOON_MS, unit="ms", tz="UTC")
    assert row == {"page": "a"}


def test_a_row_of_orc_means_what_druid_takes_it_for(tmp_path: Path) -> None:
    orc.write_table(wide(pa.timestamp("us"), pa.date32()), str(tmp_path / "x.orc"))
    row = one(tmp_path, ORC | NESTED, **WANTED)
    assert row.pop("__time") == pd.Timestamp(NOON_MS, unit="ms", tz="UTC")
    assert list(row.pop("tags")) == TOLD["tags"]
    assert row == {**{k: v for k, v in TOLD.items() if k != "tags"}, "day": "2025-01-02T00:00:00.000Z"}


@pytest.mark.parametrize(
    ("written", "read", "value", "expected"),
    [
        ("float", "double", 1.1, "1.100000023841858"),
        ("float", "float", 1.1, "1.1"),
        ("int", "float", 2**24 + 1, "1.6777216E7"),
        ("long", "float", 2**24 + 1, "1.6777216E7"),
        ("int", "double", 2**24 + 1, "1.6777217E7"),
        ("int", "long", 2**24 + 1, "16777217"),
        (["null", "float"], ["null", "double"], 1.1, "1.100000023841858"),
        ({"type": "array", "items": "float"}, {"type": "array", "items": "double"}, [1.1], "1.100000023841858"),
        ("int", ["string", "float"], 2**24 + 1, "1.6777216E7"),
    ],
)
def test_a_number_of_avro_becomes_what_java_makes_of_it_by_another_schema(
    tmp_path: Path, written: Any, read: Any, value: Any, expected: str
) -> None:
    """Java widens a float to a double, of which more digits are written, and rounds a whole number to a float."""
    schemas = [
        {"type": "record", "name": "R", "fields": [{"name": "t", "type": "long"}, {"name": "v", "type": kind}]}
        for kind in (written, read)
    ]
    write_avro(tmp_path / "x.avro", schemas[0], [{"t": START_MS, "v": value}])
    assert one(tmp_path, AVRO | {"schema": schemas[1]}, **columns("v"))["v"] == expected


@pytest.mark.parametrize("form", [PARQUET, ORC, AVRO])
def test_bytes_are_text_where_the_spec_says_so(tmp_path: Path, form: dict[str, Any]) -> None:
    rows = pa.table({"t": [START_MS], "raw": pa.array(["öther".encode()], pa.binary())})
    if form is AVRO:
        fields = [{"name": "t", "type": "long"}, {"name": "raw", "type": "bytes"}]
        write_avro(tmp_path / "x.avro", {"type": "record", "name": "R", "fields": fields}, rows.to_pylist())
    elif form is ORC:
        orc.write_table(rows, str(tmp_path / "x.orc"))
    else:
        pq.write_table(rows, tmp_path / "x.parquet")
    assert one(tmp_path, form, **columns("raw"))["raw"] == "w7Z0aGVy"
    assert one(tmp_path, form | {"binaryAsString": True}, **columns("raw"))["raw"] == "öther"


@pytest.mark.parametrize("size", [400, 3_000, 10_000_000])
@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_each_row_is_read_once_wherever_a_file_is_cut(tmp_path: Path, size: int, kind: str) -> None:
    wanted = a_table(3_000)
    table = pa.Table.from_pandas(wanted, preserve_index=False)
    if kind == "parquet":
        pq.write_table(table, tmp_path / "x.parquet", row_group_size=170)
        assert pq.ParquetFile(tmp_path / "x.parquet").num_row_groups == 18
    else:
        orc.write_table(table, str(tmp_path / "x.orc"), stripe_size=1 << 10, batch_size=64)
        assert orc.ORCFile(str(tmp_path / "x.orc")).nstripes > 2
    run = Run(spec_of(below(tmp_path, "x.*"), {"type": kind}), tmp_path, size=size)
    assert (len(run.splits) > 3) == (size < 10_000)
    assert is_same(run.stored(tmp_path), wanted)


def write_avro(path: Path, schema: Any, records: list[dict[str, Any]], codec: str = "null") -> None:
    with path.open("wb") as file:
        fastavro.writer(file, schema, records, codec=codec, sync_interval=1_000)


@pytest.mark.parametrize("codec", ["null", "deflate", "xz"])
def test_avro_files_are_read_whole_by_their_own_schema(tmp_path: Path, codec: str) -> None:
    wanted = a_table(700)
    write_avro(tmp_path / "x.avro", AVRO_SCHEMA, wanted.to_dict("records"), codec)
    run = Run(spec_of(below(tmp_path, "x.*"), AVRO), tmp_path, size=1_000)
    assert len(run.splits) == 1
    assert is_same(run.stored(tmp_path), wanted)


def as_block(content: bytes) -> bytes:
    """What stands in a file for a block with this content."""
    out = bytearray()
    size = len(content) << 1
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*out, size]) + content


def test_avro_files_are_read_by_what_java_lets_pass_in_their_schema(tmp_path: Path) -> None:
    """A union of records at the top, a default of another type, a decimal without a precision."""
    fields = [
        {"name": "t", "type": "long", "default": "none"},
        {"name": "raw", "type": {"type": "bytes", "logicalType": "decimal"}},
    ]
    schema = [{"type": "record", "name": "Other", "fields": []}, {"type": "record", "name": "Edit", "fields": fields}]
    datum = io.BytesIO()
    fastavro.schemaless_writer(datum, "long", START_MS)
    meta = [b"avro.schema", json.dumps(schema).encode(), b"avro.codec", b"null"]
    head = b"Obj\x01\x04" + b"".join(map(as_block, meta)) + b"\0" + b"s" * 16
    body = b"\x02" + datum.getvalue() + b"\x04\x04\xd2"  # the second record of the union
    (tmp_path / "x.avro").write_bytes(head + b"\x02" + as_block(body) + b"s" * 16)
    assert one(tmp_path, AVRO, **columns("raw"))["raw"] == "BNI="


@pytest.mark.parametrize("codec", ["snappy", "zstandard"])
def test_the_codecs_that_others_write_avro_with_are_read(tmp_path: Path, codec: str) -> None:
    write_avro(tmp_path / "plain", AVRO_SCHEMA, [{"t": START_MS, "page": "a" * 300, "n": 7}])
    plain = (tmp_path / "plain").read_bytes()
    with (tmp_path / "plain").open("rb") as file:
        block = next(iter(fastavro.block_reader(file)))
        body = block.bytes_.getvalue()  # type: ignore[attr-defined]  # its stubs lack it
    sync = plain[-16:]
    packed = pa.compress(body, {"snappy": "snappy", "zstandard": "zstd"}[codec], asbytes=True)
    packed += b"\0\0\0\0" if codec == "snappy" else b""
    head = plain[: block.offset].replace(b"\x14avro.codec\x08null", b"\x14avro.codec" + as_block(codec.encode()))
    (tmp_path / "x.avro").write_bytes(head + b"\x02" + as_block(packed) + sync)
    assert one(tmp_path, AVRO, **columns("page"))["page"] == "a" * 300


def test_avro_is_read_by_another_schema_and_unions_by_their_types(tmp_path: Path) -> None:
    write_avro(tmp_path / "x.avro", AVRO_SCHEMA, [{"t": START_MS, "page": "a", "n": 7}])
    other = {
        "type": "record",
        "name": "Edit",
        "fields": [
            {"name": "t", "type": "long"},
            {"name": "n", "type": ["long", "string"]},
            {"name": "more", "type": "string", "default": "was not there"},
        ],
    }
    form = {**AVRO, "schema": other, "extractUnionsByType": True}
    flat = {"flattenSpec": {"fields": [{"type": "path", "name": "long", "expr": "$.n.long"}]}}
    row = one(tmp_path, form | flat, **columns("page", "more", "long"))
    assert (row["long"], row["more"], "page" in row) == ("7", "was not there", False)


@pytest.mark.parametrize("form", [PARQUET, ORC, AVRO])
@pytest.mark.parametrize(
    "content", [b"{}", b"PAR1" + b"\0" * 40 + b"PAR1", b"ORC" + b"\xff" * 90, b"Obj\x01" + b"\x7f" * 80]
)
def test_another_file_or_a_damaged_one_is_refused_by_its_name(
    tmp_path: Path, form: dict[str, Any], content: bytes
) -> None:
    (tmp_path / "x.bin").write_bytes(content)
    said = r"x\.bin can't be read: it is not a valid .+ file, or has .* cannot express\. The reason: \w.{10,}\."
    with pytest.raises(InputRefused, match=said):
        Run(spec_of(below(tmp_path, "x.*"), form), tmp_path)


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    write_avro(tmp_path / "x.avro", AVRO_SCHEMA, [{"t": START_MS, "page": "a", "n": n} for n in range(900)])
    pq.write_table(pa.table({"t": [START_MS] * 900}), tmp_path / "x.parquet")
    for path, form in ((tmp_path / "x.avro", AVRO), (tmp_path / "x.parquet", PARQUET)):
        path.write_bytes(path.read_bytes()[:-7])
        with pytest.raises(InputRefused, match="is not a valid"):
            Run(spec_of(below(tmp_path, path.name), form), tmp_path)


def test_a_record_that_has_no_time_is_told_with_its_row(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([START_MS, None, START_MS]), "n": [1, 2, 3]})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=1)
    run = Run(spec_of(below(tmp_path, "x.*"), PARQUET), tmp_path)
    assert (run.summed("processed"), run.summed("unparseable")) == (2, 1)
    assert [(one.place, one.start, one.stored) for one in run.told[0].unread] == [
        (f"{tmp_path}/x.parquet, row 1", '{"n":2}', False)
    ]


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"type": "parquet", "columns": ["a"]}, "columns"),
        ({"type": "avro_ocf", "avroBytesDecoder": {}}, "avroBytesDecoder"),
        ({"type": "orc", "binaryAsString": 3}, "binaryAsString"),
        ({"type": "avro_stream"}, "a message format, not a file format"),
    ],
)
def test_what_such_a_format_does_not_have_is_refused(tmp_path: Path, form: dict[str, Any], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        spec_of(below(tmp_path), form)


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro_ocf"])
def test_streams_do_not_have_formats_of_files(kind: str) -> None:
    stream = {"type": "kafka", "topic": "t", "consumerProperties": {"bootstrap.servers": "b:1"}}
    schema = {"dataSource": "d", "timestampSpec": {"column": "t"}}
    spec = {"dataSchema": schema, "ioConfig": {**stream, "inputFormat": {"type": kind}}}
    with pytest.raises(SpecError, match=f"not '{kind}'"):
        parse_supervisor_spec({"type": "kafka", "spec": spec})


def test_a_schema_that_is_none_is_found_before_the_task_starts(tmp_path: Path) -> None:
    for schema, faults in (
        ({**AVRO_SCHEMA, "fields": [{"name": "t", "type": "nosuch"}]}, [["ioConfig", "inputFormat", "schema"]]),
        (AVRO_SCHEMA, []),
    ):
        spec = spec_of(below(tmp_path), {**AVRO, "schema": schema})
        assert needs_check(spec)
        order = CheckOrder(
            data_schema=spec.dataSchema,
            input_format=format_of(spec),
            reader_schema=reader_schema_of(spec),
            schema_folder="",
            reads_files=False,
        )
        assert [issue.place for issue in find_issues(order)] == faults


@pytest.mark.parametrize("form", [PARQUET, ORC, AVRO])
def test_a_text_in_a_spec_is_no_such_file(form: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="inline takes text only"):
        spec_of({"type": "combining", "delegates": [{"type": "inline", "data": "x"}]}, form)
