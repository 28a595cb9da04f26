"""Ids of columns in files: by name and type, the same from every writer, asked for once; and files that have none."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.datasource import InputPartition

from headgate.publishes.columns import struct_of
from headgate.publishes.source import PublishesBatchReader
from ingestion.batch.segment_rows import read_segment_rows
from ingestion.batch.writing import write_bin as write_bin
from ingestion.client.errors import Invalid, Unacceptable, Unreachable
from ingestion.client.memory import MemoryControlPlane
from ingestion.compaction.merging import merge
from ingestion.segments.batch import write_segments
from ingestion.segments.newest_rows import read_newest
from ingestion.segments.reader import read_segment, read_segments, verify
from ingestion.sources.base import REJECT, RELEASE
from ingestion.sources.memory import MemoryLeasedSource
from ingestion.specs.messages.column_ids import TIME, ColumnsAnswer, ColumnsRequest
from ingestion.specs.messages.deep_storage import RegisteredFile
from ingestion.specs.messages.newest_rows import RowsOrder
from ingestion.specs.messages.protocol import Column
from ingestion.specs.messages.publish_limits import MAX_COLUMNS
from ingestion.specs.schema.data_schema import EXTENTS
from ingestion.task.control import Control
from ingestion.task.errors import Refused
from tests.support.batch_run import JSON, Run, spec_of
from tests.support.column_ids import ids_in
from tests.support.desk import DAY_MS, JUNE_MS, Desk, batch_of, schema_of
from tests.support.indexer import OneLog, assignment, record, stored, total
from tests.support.shelf import Shelf
from tests.support.two_versions import LISTS, TEXTS, WANTED, TwoVersions, shown, with_files_of_two_versions

TIME_KEY = (TIME.name, TIME.type)


@pytest.fixture
def shelf(tmp_path: Path) -> TwoVersions:
    return TwoVersions(tmp_path)


def test_a_file_says_them_to_any_reader_and_a_lists_values_have_one(shelf: TwoVersions) -> None:
    """Read by somebody else's reader of Parquet."""
    shelf.add(batch_of([0, 1], n=pa.array([1, 2]), tags=LISTS, more=TEXTS))
    path = shelf.deep / shelf.files[0].path
    found = duckdb.connect().execute("SELECT name, field_id FROM parquet_schema(?)", [str(path)]).fetchall()
    leaves = {name: number for name, number in found if number is not None}
    assert leaves == {"__time": 1, "n": 2, "tags": 3, "element": 4, "more": 5}


def test_a_name_with_two_types_is_two_columns(shelf: TwoVersions) -> None:
    first = shelf.added(batch_of([0, 1], v=pa.array([1, 2])))
    second = shelf.added(batch_of([0, 1], v=pa.array(["a", "b"])))
    third = shelf.added(batch_of([0, 1], v=LISTS, w=pa.array([1.5, None])))
    assert first == {TIME_KEY: (1, None), ("v", "long"): (2, None)}
    assert second == {TIME_KEY: (1, None), ("v", "string"): (3, None)}
    assert third == {TIME_KEY: (1, None), ("v", "strings"): (4, 5), ("w", "double"): (6, None)}


def test_every_writer_has_the_same(shelf: TwoVersions, tmp_path: Path) -> None:
    rows = batch_of([0, 1], n=pa.array([1, 2]), tags=LISTS)
    alone = shelf.added(rows)
    desk = Desk(tmp_path, schema_of())
    desk.ids = shelf.ids
    desk.add(rows)
    [gathered] = desk.write()
    desk.index.close()
    [merged] = merge(shelf.job(), shelf.storage, tmp_path / "scratch", shelf.ids).files
    source = {
        "type": "inline",
        "data": "\n".join(json.dumps({"t": JUNE_MS + n, "n": n, "tags": ["x", "y"]}) for n in (1, 2)),
    }
    dimensions = {"dimensionsSpec": {"dimensions": [{"name": "n", "type": "long"}, "tags"]}}
    run = Run(spec_of(source, JSON, schema=dimensions), tmp_path, deep=tmp_path)
    done = write_bin((c for _, c in run.chunks), run.spec, "v", shelf.storage, tmp_path / "scratch", shelf.ids)
    assert [shelf.ids_of(f) for f in (gathered, merged, *done.files)] == [alone] * 3


def test_hidden_columns_have_none(tmp_path: Path) -> None:
    """Who reads by ids does not meet them, and nobody is told of them."""
    shelf = Shelf(tmp_path, schema_of(True, [{"type": "longLast", "name": "end", "fieldName": "v"}]))
    shelf.add(batch_of([0, 0], a=pa.array(["x", "y"]), end=pa.array([1, 2])))
    schema = pq.read_schema(tmp_path / "deep" / shelf.files[0].path)
    assert [f.name for f in schema if not f.metadata] == list(EXTENTS)
    assert [c.name for asked in shelf.registry.requests for c in asked.columns] == ["__time", "a", "end"]


def test_a_column_is_asked_for_once_and_all_that_are_new_together(shelf: TwoVersions) -> None:
    wide = {f"c{n}": pa.array([n]) for n in range(1000)}
    shelf.add(batch_of([0], **wide))
    shelf.add(batch_of([1], **wide))
    shelf.add(batch_of([0], c0=pa.array([1]), late=pa.array([2])))
    assert [len(asked.columns) for asked in shelf.registry.requests] == [1001, 1]


def test_many_files_of_one_write_ask_once(shelf: TwoVersions) -> None:
    rows = batch_of([day * DAY_MS for day in range(20)], n=pa.array(range(20)))
    files = write_segments(
        rows, np.zeros(20, np.int32), np.arange(20), schema=schema_of(), version="v", storage=shelf.storage,
        scratch=shelf.scratch, ids=shelf.ids,
    )  # fmt: skip
    assert len(files) == 20
    assert len(shelf.registry.requests) == 1


def test_the_twin_refuses_too_many_at_once(shelf: TwoVersions) -> None:
    too_many = ColumnsRequest.model_construct(columns=[Column(name="n", type="long")] * (MAX_COLUMNS + 1))
    with pytest.raises(Unacceptable, match="500,001 columns, and one message may have 500,000"):
        shelf.registry.ids(too_many)
    assert not shelf.registry.requests


def test_arrows_own_copy_of_the_schema_does_not_repeat_them(shelf: TwoVersions) -> None:
    """It would make a small file a fifth larger."""
    shelf.add(batch_of([0, 1], n=pa.array([1, 2]), tags=LISTS))
    told = pq.read_metadata(shelf.deep / shelf.files[0].path).metadata
    copy = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(told[b"ARROW:schema"])))
    assert all(not f.metadata for f in copy)
    assert told[b"headgate.version"] == b"v"


@pytest.fixture
def mixed(shelf: TwoVersions) -> TwoVersions:
    return with_files_of_two_versions(shelf)


def _read(shelf: TwoVersions) -> list[dict[str, Any]]:
    return shown(read_segments(shelf.storage, [f.path for f in shelf.files]).read_all().to_pylist())


def _merged(shelf: TwoVersions) -> list[dict[str, Any]]:
    [file] = merge(shelf.job(), shelf.storage, shelf.scratch, shelf.ids).files
    ids = shelf.ids_of(file)
    assert all(number is not None for number, _ in ids.values())
    assert ids["tags", "strings"][1] is not None
    return shown(read_segment(shelf.storage, file.path).to_pylist())


def _by_duckdb(shelf: TwoVersions) -> list[dict[str, Any]]:
    return shown(duckdb.read_parquet(shelf.paths, union_by_name=True).to_arrow_table().to_pylist())


def _newest(shelf: TwoVersions) -> list[dict[str, Any]]:
    answer = read_newest(
        RowsOrder(
            deep_storage=str(shelf.deep),
            files=[RegisteredFile(path=f.path, size_bytes=f.size_bytes, sha256=f.sha256) for f in shelf.files],
            last_ms=[round(f.max_time.timestamp() * 1000) for f in shelf.files],
            limit=100,
            masked=False,
            reading_s=60.0,
        )
    )
    assert not answer.problems
    names = [c.name for c in answer.columns]
    rows = [dict(zip(names, row, strict=True)) for row in answer.rows]
    return shown([{**row, "v": None if row["v"] is None else str(row["v"])} for row in rows])


def _indexed_again(shelf: TwoVersions) -> list[dict[str, Any]]:
    lines = [
        json.loads(line.payload)
        for one in shelf.inputs
        for line in read_segment_rows(one, shelf.storage, (0, 2**62), schema_of())
    ]
    assert [row["j"] for row in lines if "j" in row] == [{"a": 1}] * 3
    rows = [{"v": None, "tags": None, **row} for row in lines]
    return shown([{**row, "v": None if row["v"] is None else str(row["v"])} for row in rows])


def _by_the_connector(shelf: TwoVersions) -> list[dict[str, Any]]:
    columns = struct_of(
        [{"name": "n", "type": "long"}, {"name": "v", "type": "string"}, {"name": "tags", "type": "strings"}]
    )
    task = InputPartition(tuple(f"file://{path}" for path in shelf.paths))
    batches = list(PublishesBatchReader(None, columns).read(task))
    return shown(pa.Table.from_batches(batches).to_pylist())


@pytest.mark.parametrize("reader", [_read, _merged, _by_duckdb, _newest, _indexed_again, _by_the_connector])
def test_files_with_and_without_ids_are_read_together(mixed: TwoVersions, reader: Callable[[TwoVersions], Any]) -> None:
    assert reader(mixed) == WANTED
    for file in mixed.files:
        verify(mixed.storage, file)


@dataclass
class Away(MemoryControlPlane):
    """Does not answer the first questions for ids, and never has ids for columns of the name ``poison``."""

    silent: int = 0
    error: Exception = field(default_factory=lambda: Unacceptable("A value of the message cannot be stored."))
    asked: int = 0

    def columns(self, request: ColumnsRequest) -> ColumnsAnswer:
        self.asked += 1
        if self.asked <= self.silent:
            raise Unreachable("connection refused")
        if any(c.name == "poison" for c in request.columns):
            raise self.error
        return super().columns(request)


def poison(n: int) -> bytes:
    return json.dumps({"time": "2025-06-01", "n": n, "poison": 1}).encode()


@pytest.mark.parametrize("kafka", [False, True])
def test_while_nobody_says_them_records_wait_and_none_is_lost(run_indexer: Any, tmp_path: Path, kafka: bool) -> None:
    plane, control = Away(assignment(tmp_path, kafka=kafka), silent=3), Control(0, 1)
    payloads = [record(n) for n in range(300)]
    if kafka:
        run_indexer(OneLog(payloads, control), plane, control=control, kafka=True)
    else:
        run_indexer(MemoryLeasedSource([(0, n, p) for n, p in enumerate(payloads)]), plane, control=control)
    assert stored(plane, tmp_path) == list(range(300))
    assert plane.asked == 4
    files = [tmp_path / "segments" / s.path for p in plane.published for s in p.segments]
    assert {tuple(ids_in(f).items()) for f in files} == {((TIME_KEY, (1, None)), (("n", "long"), (2, None)))}


@pytest.mark.parametrize("kafka", [False, True])
def test_a_column_that_is_refused_leads_to_its_records(run_indexer: Any, tmp_path: Path, kafka: bool) -> None:
    """Row 30 of the failure matrix."""
    plane, control = Away(assignment(tmp_path, kafka=kafka)), Control(0, 1)
    payloads = [poison(n) if n in (17, 60) else record(n) for n in range(100)]
    if kafka:
        run_indexer(OneLog(payloads, control), plane, control=control, kafka=True)
    else:
        source = MemoryLeasedSource([(0, n, p) for n, p in enumerate(payloads)])
        run_indexer(source, plane, control=control)
        assert {offset for (_, offset), verdict in source.acknowledgements.items() if verdict == REJECT} == {17, 60}
    assert stored(plane, tmp_path) == [n for n in range(100) if n not in (17, 60)]
    assert {q.offset: q.reason for p in plane.published for q in p.quarantined} == {17: "refused", 60: "refused"}
    assert total(plane).published == 98


def test_a_refusal_that_no_record_is_at_fault_for_ends_the_task(run_indexer: Any, tmp_path: Path) -> None:
    plane = Away(assignment(tmp_path), error=Invalid("status 403"))
    source = MemoryLeasedSource([(0, n, poison(n)) for n in range(64)])
    with pytest.raises(Refused, match="New columns were refused: status 403"):
        run_indexer(source, plane)
    assert (plane.asked, plane.published, set(source.acknowledgements.values())) == (1, [], {RELEASE})


def test_a_process_asks_no_more_after_its_first_files(run_indexer: Any, tmp_path: Path) -> None:
    """Publishes ask nothing: what is known stays known."""
    plane = Away(assignment(tmp_path))
    run_indexer(MemoryLeasedSource([(0, n, record(n)) for n in range(500)], batch_records=20), plane)
    assert len(plane.published) > 5
    assert plane.asked == 1
