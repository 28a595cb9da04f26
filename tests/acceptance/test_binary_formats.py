"""Formats with a schema, from Kafka to segments; and segments in S3."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from tests.support.house import House
from tests.support.invariants import check_adds_up
from tests.support.records import numbered, published
from tests.support.registry import framed, running
from tests.support.s3 import BUCKET, CREDENTIALS, s3_server
from tests.support.waiting import wait_for
from tests.support.workers import Workers
from tests.unit.test_formats_avro import one_field, written
from tests.unit.test_formats_protobuf import file_of, message_of
from tests.unit.test_formats_protobuf import inline as protobuf_of
from tests.unit.test_formats_thrift import MODULE, TBinaryProtocolFactory, serialize
from tests.unit.test_formats_thrift import SPEC as THRIFT

RECORDS = 1_000
_NO_TIME = {"column": "none", "format": "auto", "missingValue": "2025-06-01"}


def columns_of(house: House, datasource: str, filesystem: pyarrow.fs.FileSystem | None = None) -> dict[str, list[Any]]:
    """All columns of the datasource's segments."""
    paths = house.sql(
        "SELECT path FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s",
        datasource,
    )
    root = BUCKET + "/deep" if filesystem else house.home.segments
    tables = [pq.read_table(f"{root}/{path}", filesystem=filesystem) for (path,) in paths]
    found: dict[str, list[Any]] = pyarrow.concat_tables(tables, promote_options="permissive").to_pydict()
    return found


def test_avro_by_a_registry_whose_schema_changes(house: House, make_workers: Callable[..., Workers]) -> None:
    """Two versions of a schema, and records that name none; the sum of all is what was produced."""
    topic = house.topic("avro", partitions=2)
    first, second = one_field("long", "n"), one_field("long", "n")
    second["fields"].append({"name": "more", "type": "string"})
    with running() as registry:
        registry.schemas |= {1: {"schema": json.dumps(first)}, 2: {"schema": json.dumps(second)}}
        house.produce(topic, [framed(1, written(first, {"n": n})) for n in range(RECORDS)])
        later = range(RECORDS, 2 * RECORDS)
        house.produce(topic, [framed(2, written(second, {"n": n, "more": f"m{n}"})) for n in later])
        house.produce(topic, [framed(9, b""), b"{}"])
        spec = house.spec(topic, taskCount=1)
        spec["dataSchema"]["timestampSpec"] = _NO_TIME
        decoder = {"type": "schema_registry", "url": registry.url}
        spec["ioConfig"]["inputFormat"] = {"type": "avro_stream", "avroBytesDecoder": decoder}
        make_workers(spec).start(0)
        published(house, topic, 2 * RECORDS)
        wait_for("the bad ones are in quarantine", lambda: house.totals(topic)["quarantined"] == 2, 60)
    totals = house.totals(topic)
    check_adds_up(totals)
    assert (totals["published"], totals["quarantined"]) == (2 * RECORDS, 2)
    columns = columns_of(house, topic)
    assert sorted(columns["n"]) == list(range(2 * RECORDS))
    assert {m for m in columns["more"] if m is not None} == {f"m{n}" for n in later}


def _protobuf() -> tuple[dict[str, Any], list[bytes]]:
    file = file_of("count.proto", {"Count": [("n", "int64")]})
    return protobuf_of([file], "Count"), [message_of([file], "Count", n=n + 1) for n in range(RECORDS)]


def _thrift() -> tuple[dict[str, Any], list[bytes]]:
    books = [MODULE.Book(title=f"t{n}", counts={"n": n + 1}) for n in range(RECORDS)]
    flatten = {"fields": [{"type": "path", "name": "n", "expr": "$.counts.n"}]}
    return {**THRIFT, "flattenSpec": flatten}, [serialize(b, TBinaryProtocolFactory()) for b in books]


@pytest.mark.parametrize("made", [_protobuf, _thrift])
def test_protobuf_and_thrift(
    house: House,
    make_workers: Callable[..., Workers],
    made: Callable[[], tuple[dict[str, Any], list[bytes]]],
) -> None:
    """Stored offsets; a record cut in two is quarantined."""
    topic = house.topic("binary", partitions=1)
    input_format, payloads = made()
    house.produce(topic, [*payloads, b"\x0b\xff"])
    spec = house.kafka_spec(topic)
    spec["ioConfig"]["inputFormat"] = input_format
    spec["dataSchema"]["timestampSpec"] = _NO_TIME
    make_workers(spec).start(0)
    published(house, topic, RECORDS)
    wait_for("the bad one is in quarantine", lambda: house.totals(topic)["quarantined"] == 1, 60)
    totals = house.totals(topic)
    check_adds_up(totals)
    assert (totals["published"], totals["quarantined"]) == (RECORDS, 1)
    assert sorted(map(int, columns_of(house, topic)["n"])) == list(range(1, RECORDS + 1))


def test_segments_in_s3(house: House, tmp_path: Path) -> None:
    """Through Spark: the credentials come from the environment, and each segment is the file that is registered."""
    topic = house.topic("s3", partitions=2)
    house.produce(topic, numbered(0, RECORDS))
    with s3_server(tmp_path) as server:
        with house.set_up_with(HEADGATE_DEEP_STORAGE=server.location("deep"), **CREDENTIALS):
            house.supervise(house.kafka_spec(topic))
            published(house, topic, RECORDS)
        store = pyarrow.fs.S3FileSystem(
            endpoint_override=server.endpoint,
            region="us-east-1",
            access_key=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            secret_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        )
        columns = columns_of(house, topic, store)
        listed = store.get_file_info(pyarrow.fs.FileSelector(f"{BUCKET}/deep", recursive=True))
    assert sorted(columns["n"]) == list(range(RECORDS))
    sizes = house.sql(
        "SELECT size_bytes FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id"
        " WHERE d.name = %s",
        topic,
    )
    assert sorted(f.size for f in listed if f.is_file) == sorted(size for (size,) in sizes)
