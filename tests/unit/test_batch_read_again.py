"""Quarantined records of files, read again: to rows, and to what became of each, by its number."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any, cast

import pytest

from ingestion.batch import reading, replay
from ingestion.batch.quarantine_reader import QuarantineReader
from ingestion.batch.replay import _Replay
from ingestion.batch.split_quarantine import MAX_BYTES, QuarantineLimits, merge_quarantines
from ingestion.batch.writing import write_bin
from ingestion.client.batch import BatchControlPlane
from ingestion.client.errors import Unacceptable
from ingestion.client.memory import MemoryColumns
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segment
from ingestion.specs.messages.batch_protocol import BatchAssignment, FileRecord, Reachable
from ingestion.specs.messages.replays import KeptPublishRequest, KeptRecord
from ingestion.specs.tasks.batch import BatchSpec
from ingestion.task.errors import Refused
from tests.support.batch_run import CSV, JSON, START_MS, Run, below, spec_of
from tests.support.column_ids import some_ids

MILLIS = {"timestampSpec": {"column": "t", "format": "millis"}}


def kept(number: int, payload: bytes, header: bytes = b"") -> KeptRecord:
    more: dict[str, Any] = {"timestamp_ms": None, "key": None, "headers": []}
    return KeptRecord(
        number=number, partition=0, offset=number, payload=b64encode(payload), file_header=b64encode(header), **more
    )


def read(
    spec: BatchSpec, folder: Path, *records: KeptRecord
) -> tuple[KeptPublishRequest, list[tuple[int, str | None]]]:
    """What becomes of them, and n and page of the rows, sorted."""
    assignment = BatchAssignment(
        task_id="replay", epoch=7, spec=spec.for_kept_records, slots=1, deep_storage=str(folder / "deep"), version="v",
        reachable=Reachable(),
    )  # fmt: skip
    assignment = BatchAssignment.model_validate_json(assignment.model_dump_json())  # as it travels
    storage = LocalStorage(folder / "deep", fsync=False)
    with QuarantineReader(assignment) as reader:
        some = reader.read(records)
        done = write_bin(some.chunks(), assignment.spec, "v", storage, folder / "scratch", some_ids())
        request = some.outcome(done)
    rows = [row for file in request.segments for row in read_segment(storage, file.path).to_pylist()]
    return request, sorted((row["n"], row.get("page")) for row in rows)


def line(n: int, at: Any = START_MS) -> bytes:
    return json.dumps({"t": at, "n": n, "page": f"p{n}"}).encode()


def test_each_ends_in_one_way(tmp_path: Path) -> None:
    schema = {
        "transformSpec": {"filter": {"type": "not", "field": {"type": "selector", "dimension": "page", "value": "p3"}}},
        "granularitySpec": {"rollup": False, "intervals": ["2025-01-01/2025-01-02"]},
    }
    late = START_MS + 3 * 86_400_000
    records = [kept(10, line(1)), kept(11, b"{nonsense"), kept(14, line(3)), kept(15, line(4, late)), kept(19, line(5))]
    request, rows = read(spec_of(below(tmp_path), JSON, schema=schema), tmp_path, *records)
    assert (request.epoch, request.stored, request.thrown_away) == (7, [10, 19], [14, 15])
    assert [(b.number, b.reason) for b in request.unparseable] == [(11, "unparseable")] and request.unparseable[0].error
    assert rows == [(1, "p1"), (5, "p5")]
    said = request.counters
    assert (said.polled, said.published, said.thrown_away, said.filtered, said.outside_window) == (5, 2, 2, 1, 1)
    assert (said.unparseable, said.quarantined) == (1, 1)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No child process decodes: to start one takes longer than all the rest, and the first test shows that one does."""
    monkeypatch.setattr(reading, "IsolatedDecoder", JsonDecoder)


@pytest.mark.usefixtures("in_process")
def test_nothing_to_store_is_no_segment(tmp_path: Path) -> None:
    request, rows = read(spec_of(below(tmp_path), JSON), tmp_path, kept(1, b"{"), kept(2, b"x"))
    assert (request.segments, request.stored, rows) == ([], [], [])
    assert [b.number for b in request.unparseable] == [1, 2]


@pytest.mark.usefixtures("in_process")
def test_equal_rows_become_one_and_count_as_such(tmp_path: Path) -> None:
    schema = {"granularitySpec": {"rollup": True}, "metricsSpec": [{"type": "count", "name": "count"}]}
    records = [kept(n, line(1)) for n in range(3)]
    request, rows = read(spec_of(below(tmp_path), JSON, schema=schema), tmp_path, *records)
    assert (rows, request.stored) == ([(1, "p1")], [0, 1, 2])
    assert (request.counters.published, request.counters.rolled_up) == (1, 2)


@pytest.mark.usefixtures("in_process")
def test_lines_of_files_with_different_headers_are_read_apart(tmp_path: Path) -> None:
    """They are kept with the line that names the columns."""
    (tmp_path / "a.csv").write_text('\ufefft,n,page\nyesterday,1,"a, b"\n')
    (tmp_path / "b.csv").write_text("page,t,n\r\nc,yesterday,2\r\n")
    run = Run(spec_of(below(tmp_path, "*.csv"), CSV), tmp_path)
    found = merge_quarantines((t.quarantine for t in run.told), 100)
    assert [(r.header, r.payload, r.cut) for r in found] == [
        (b"t,n,page", b'yesterday,1,"a, b"', False),
        (b"page,t,n", b"c,yesterday,2", False),
    ]
    spec = spec_of(below(tmp_path), CSV, schema={"timestampSpec": {"column": "when", "missingValue": "2025-01-01"}})
    records = [kept(n, r.payload, r.header) for n, r in enumerate(found)]
    request, rows = read(spec, tmp_path, *records)
    assert (rows, request.stored) == ([(1, "a, b"), (2, "c")], [0, 1])
    request, rows = read(spec, tmp_path, kept(4, b"yesterday,1,x"))
    assert rows == [] and "Name the columns in inputFormat.columns" in request.unparseable[0].error
    named = {"type": "csv", "columns": ["when", "n", "page"], "skipHeaderRows": 1}
    _, rows = read(
        spec_of(below(tmp_path), named, schema={"timestampSpec": spec.dataSchema.timestampSpec.model_dump()}),
        tmp_path,
        kept(4, b"2025-01-01,1,x"),
    )
    assert rows == [(1, "x")]


@pytest.mark.usefixtures("in_process")
def test_a_header_that_names_columns_twice_is_what_is_wrong_with_its_records(tmp_path: Path) -> None:
    spec = spec_of(below(tmp_path), CSV)
    request, rows = read(spec, tmp_path, kept(1, b"1,2", b"n,n"), kept(2, f"{START_MS},7".encode(), b"t,n"))
    assert rows == [(7, None)] and request.stored == [2]
    assert [(b.number, "columns twice" in b.error) for b in request.unparseable] == [(1, True)]


@pytest.mark.usefixtures("in_process")
def test_rows_of_files_that_are_no_lines_are_json(tmp_path: Path) -> None:
    spec = spec_of(below(tmp_path), {"type": "parquet"})
    _, rows = read(spec, tmp_path, kept(1, line(1)), kept(2, line(2)))
    assert rows == [(1, "p1"), (2, "p2")]


def test_a_spec_that_overwrites_appends_then_and_ends_at_nothing() -> None:
    spec = spec_of(
        below(Path("/x")),
        JSON,
        schema={"granularitySpec": {"intervals": ["2025-01-01/2025-01-02"]}},
        io={"dropExisting": True},
        tuning={"reportParseExceptions": True, "forceGuaranteedRollup": True, "partitionsSpec": {"type": "hashed"}},
    ).for_kept_records
    assert (spec.ioConfig.appendToExisting, spec.ioConfig.dropExisting) == (True, False)
    assert (spec.tuningConfig.dividing, spec.tuningConfig.parse_exceptions_limit) == (None, None)
    assert BatchSpec.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize(("room", "header", "cut"), [(20, b"t,n", False), (17, b"", False), (10, b"", True)])
def test_a_header_is_kept_where_there_is_room_for_it(tmp_path: Path, room: int, header: bytes, cut: bool) -> None:
    (tmp_path / "a.csv").write_text("t,n\nyesterday,1234567\n")
    run = Run(spec_of(below(tmp_path, "*.csv"), CSV), tmp_path, room=QuarantineLimits(5, room))
    [record] = merge_quarantines((t.quarantine for t in run.told), 100)
    assert (record.header, record.cut) == (header, cut)
    assert len(record.payload) + len(record.header) <= room < MAX_BYTES
    assert FileRecord.model_validate_json(record.model_dump_json()) == record


class Refusing:
    """A control plane that takes no publish with some records, and remembers the others."""

    def __init__(self, stored: set[int], kept: set[int] | None = None) -> None:
        self.faults, self.unkept = stored, kept or set()
        self.columns = MemoryColumns().ids
        self.taken: list[KeptPublishRequest] = []
        self.asked: list[tuple[int, ...]] = []

    def publish_kept(self, request: KeptPublishRequest) -> None:
        self.asked.append(tuple(request.stored))
        bad = {one.number for one in request.unparseable}
        if self.faults & set(request.stored) or self.unkept & bad:
            raise Unacceptable("a name that PostgreSQL does not take")
        self.taken.append(request)


def replayed(folder: Path, client: Refusing, *records: KeptRecord) -> None:
    spec = spec_of(below(folder), JSON).for_kept_records
    assignment = BatchAssignment(
        task_id="replay", epoch=7, spec=spec, slots=1, deep_storage=str(folder / "deep"), version="v",
        reachable=Reachable(),
    )  # fmt: skip
    for name in ("deep", "scratch"):
        (folder / name).mkdir(parents=True)
    with QuarantineReader(assignment) as reader:
        _Replay(assignment, cast("BatchControlPlane", client), reader, folder / "scratch").ingest(records)


@pytest.mark.usefixtures("in_process")
def test_a_refused_publish_is_cut_up_until_the_records_at_fault_stand_alone(tmp_path: Path) -> None:
    client = Refusing({3, 8})
    replayed(tmp_path, client, *(kept(n, line(n)) for n in range(10)), kept(10, b"{"))
    stored = [number for request in client.taken for number in request.stored]
    bad = {one.number: (one.reason, one.error) for request in client.taken for one in request.unparseable}
    assert sorted(stored) == [0, 1, 2, 4, 5, 6, 7, 9] and sorted(bad) == [3, 8, 10]
    assert bad[3] == bad[8] == ("refused", "its publish was refused: a name that PostgreSQL does not take")
    assert sum(request.counters.polled for request in client.taken) == 11
    refused = [numbers for numbers in client.asked if client.faults & set(numbers)]
    assert len(refused) == len(set(refused)), "nothing is sent again unchanged"


@pytest.mark.usefixtures("in_process")
def test_what_is_refused_for_no_records_sake_ends_the_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MAX_IN_A_ROW", 10)
    everything = set(range(15))
    with pytest.raises(Refused, match="not because of a record"):
        replayed(tmp_path / "a", Refusing(everything), *(kept(n, line(n)) for n in sorted(everything)))
    with pytest.raises(Refused, match="even of records that stay in quarantine"):
        replayed(tmp_path / "b", Refusing({1}, {1}), kept(1, line(1)))
