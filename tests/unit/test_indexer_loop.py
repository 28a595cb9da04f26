"""The one loop on a source and a control plane from memory: every record ends once, in the right order."""

from __future__ import annotations

import json
import random
import resource
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ingestion.client import MemoryControlPlane, Unreachable
from ingestion.segments import DeepStorageError, open_deep_storage, read_segment
from ingestion.sources import ACCEPT, REJECT, TopicIdentity
from ingestion.sources.base import RELEASE
from ingestion.sources.memory import MemorySource
from ingestion.specs import parse_task_spec
from ingestion.specs.protocol import Assignment, Counters, Outcomes, PublishAnswer, PublishRequest
from ingestion.task.breaker import Breaker
from ingestion.task.control import Control
from ingestion.task.errors import StorageRefused, TooManyParseExceptions
from ingestion.task.indexer import Indexer, Surroundings
from ingestion.task.log import logger_for
from tests.support.registry import framed, running
from tests.support.s3 import CREDENTIALS, s3_server

TOPIC = TopicIdentity("cluster", "topic-id")


class FixedTopic:
    """A topic that stays as it is, or changes its id after some looks."""

    def __init__(self, change_after: int | None = None) -> None:
        self.looks, self.change_after = 0, change_after

    def identity(self) -> TopicIdentity:
        return TopicIdentity("cluster", self.topic_id())

    def topic_id(self) -> str:
        self.looks += 1
        return "another-id" if self.change_after is not None and self.looks > self.change_after else "topic-id"


def assignment(folder: Path, input_format: Any = None, **data_schema: Any) -> Assignment:
    data_schema = {"dataSource": "d", "timestampSpec": {"column": "time"}, **data_schema}
    document = {
        "type": "index_kafka_share_group",
        "dataSchema": data_schema,
        "ioConfig": {
            "topic": "t",
            "groupId": "g",
            "consumerProperties": {"bootstrap.servers": "nowhere:1"},
            "inputFormat": input_format or {"type": "json"},
        },
        "tuningConfig": data_schema.pop("tuningConfig", {}),
    }
    return Assignment(
        task_id="task",
        kind="share_group",
        spec=parse_task_spec(document).spec,
        consumer_properties={},
        indexers=1,
        deep_storage=str(folder / "segments"),
        version="v1",
    )


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., MemoryControlPlane]:
    (tmp_path / "segments").mkdir()

    def run_loop(
        source: MemorySource,
        plane: MemoryControlPlane | None = None,
        topic: Any = None,
        deep_storage: str | None = None,
        control: Control | None = None,
        **data_schema: Any,
    ) -> MemoryControlPlane:
        given = assignment(tmp_path, **data_schema)
        plane = plane or MemoryControlPlane(given)
        control = control or Control(0, 1)
        control.tell("continue")
        surroundings = Surroundings(
            client=plane,
            topic=topic or FixedTopic(),
            make_source=lambda: source,
            storage=open_deep_storage(deep_storage or given.deep_storage),
            scratch=tmp_path / "scratch",
            host="here",
        )
        (tmp_path / "scratch").mkdir(exist_ok=True)
        Indexer(given, control, surroundings).run()
        run_loop.control = control  # type: ignore[attr-defined]
        return plane

    return run_loop


def record(n: int, day: int = 1) -> bytes:
    return json.dumps({"time": f"2025-06-{day:02d}T00:00:00Z", "n": n}).encode()


def total(plane: MemoryControlPlane) -> Counters:
    return sum((p.counters for p in plane.published), Counters())


def stored(plane: MemoryControlPlane, folder: Path) -> list[int]:
    files = [folder / "segments" / s.path for p in plane.published for s in p.segments]
    return sorted(n for f in files for n in pq.read_table(f)["n"].to_pylist())


def test_every_record_is_stored_and_accepted(run: Any, tmp_path: Path) -> None:
    source = MemorySource([(n % 4, n // 4, record(n, 1 + n % 3)) for n in range(1000)])
    plane = run(source)
    assert stored(plane, tmp_path) == list(range(1000))
    assert set(source.verdicts.values()) == {ACCEPT}
    assert total(plane).polled == total(plane).published == 1000


def test_what_can_not_be_decoded_is_quarantined_whole_and_rejected(run: Any, tmp_path: Path) -> None:
    payloads = [record(0), b"{broken", record(1), None, b"\xff\xfe", b"[1]", b'{"n": 5}']
    source = MemorySource([(0, offset, payload) for offset, payload in enumerate(payloads)])
    plane = run(source)
    assert stored(plane, tmp_path) == [0, 1]
    assert [source.verdicts[(0, o)] for o in range(7)] == [ACCEPT, REJECT, ACCEPT, REJECT, REJECT, REJECT, REJECT]
    kept = [q for p in plane.published for q in p.quarantined]
    assert [q.offset for q in kept] == [1, 3, 4, 5, 6]
    assert [q.payload for q in kept] == [payloads[q.offset] for q in kept]
    assert all(q.error for q in kept)


def test_what_the_filter_drops_is_thrown_away_and_accepted(run: Any, tmp_path: Path) -> None:
    source = MemorySource([(0, n, record(n)) for n in range(10)])
    keep = {"type": "bound", "dimension": "n", "lower": "5", "ordering": "numeric"}
    plane = run(source, transformSpec={"filter": keep})
    assert stored(plane, tmp_path) == [5, 6, 7, 8, 9]
    assert (total(plane).thrown_away, total(plane).filtered) == (5, 5)
    assert set(source.verdicts.values()) == {ACCEPT}


def test_settled_records_are_dropped_as_duplicates(run: Any, tmp_path: Path) -> None:
    first = MemorySource([(0, n, record(n)) for n in range(50)])
    plane = run(first)
    again = MemorySource([(0, n, record(n)) for n in range(30, 80)])
    run(again, plane)
    assert stored(plane, tmp_path) == list(range(80))
    assert total(plane).duplicates == 20
    assert total(plane).polled == 100
    assert set(again.verdicts.values()) == {ACCEPT}
    assert sum(p.early_duplicates for p in plane.published) == 20


def test_offsets_without_a_record_that_are_settled_by_now_are_left_out(run: Any, tmp_path: Path) -> None:
    """Two repairs may read the same hole; the second one must come to an end."""
    plane = run(MemorySource([(0, n, record(n)) for n in range(10)]))
    holes = {0: Outcomes(gap=[(5, 8), (20, 22)], empty=[(8, 12)]), 1: Outcomes(empty=[(0, 3)])}
    run(MemorySource([(0, 12, record(12))], without_record=holes), plane)
    last = plane.published[-1]
    assert last.outcomes == {0: Outcomes(gap=[(20, 22)], empty=[(10, 12)]), 1: Outcomes(empty=[(0, 3)])}
    assert stored(plane, tmp_path) == [*range(10), 12]


class Flaky(MemoryControlPlane):
    """Loses answers: of each publish the first two, after it has committed or before."""

    after_commit = True
    tries = 0

    def publish(self, number: int, request: PublishRequest) -> PublishAnswer:
        self.tries += 1
        lost = self.tries % 3 != 0
        if lost and not self.after_commit:
            raise Unreachable("refused")
        answer = super().publish(number, request)
        if lost:
            raise Unreachable("the answer was lost")
        return answer


@pytest.mark.parametrize("after_commit", [True, False])
def test_a_lost_answer_changes_nothing(run: Any, tmp_path: Path, after_commit: bool) -> None:
    plane = Flaky(assignment(tmp_path))
    plane.after_commit = after_commit
    run(MemorySource([(0, n, record(n)) for n in range(200)]), plane)
    assert stored(plane, tmp_path) == list(range(200))
    assert total(plane).polled == 200
    assert plane.tries == 6  # two batches of 100, each lost twice


class Away(MemoryControlPlane):
    """Commits the first publish but never answers it, until the batch has been given up."""

    def __init__(self, given: Assignment) -> None:
        super().__init__(given)
        self.gone = threading.Event()

    def publish(self, number: int, request: PublishRequest) -> PublishAnswer:
        answer = super().publish(number, request)
        if not self.gone.is_set():
            raise Unreachable("no answer")
        return answer

    def abandon(self, number: int, request: Any) -> Any:
        self.gone.set()
        return super().abandon(number, request)


def test_a_publish_that_had_committed_is_found_out_when_the_lock_ends(run: Any, tmp_path: Path) -> None:
    plane = Away(assignment(tmp_path))
    source = MemorySource([(0, n, record(n)) for n in range(100)], lock_s=2.0)
    run(source, plane)
    assert stored(plane, tmp_path) == list(range(100))
    assert total(plane).published == 100
    assert run.control.status.unpublished.released == 0
    assert set(source.verdicts.values()) == {ACCEPT}


def test_a_topic_made_again_is_not_published_under_its_old_id(run: Any, tmp_path: Path) -> None:
    source = MemorySource([(0, n, record(n)) for n in range(10)])
    plane = run(source, topic=FixedTopic(change_after=1))
    assert {p.topic_id for p in plane.published} <= {"another-id"}


def test_the_loop_goes_on_after_such_a_publish(run: Any, tmp_path: Path) -> None:
    plane = Away(assignment(tmp_path))
    source = MemorySource([(0, n, record(n)) for n in range(300)], lock_s=2.0)
    run(source, plane)
    assert stored(plane, tmp_path) == list(range(300))


# The deep storage refuses


def test_a_refusal_for_good_ends_the_task_with_nothing_published(run: Any, tmp_path: Path) -> None:
    (tmp_path / "no-folder").write_bytes(b"")
    plane = MemoryControlPlane(assignment(tmp_path))
    source = MemorySource([(0, n, record(n)) for n in range(200)])
    with pytest.raises(StorageRefused, match=r"deep storage refuses: can't store d/.*: Not a directory"):
        run(source, plane, deep_storage=str(tmp_path / "no-folder" / "deep"))
    assert plane.published == []
    assert set(source.verdicts.values()) == {RELEASE}
    assert not any((tmp_path / "scratch").iterdir())


def test_a_bucket_that_is_not_there_ends_the_task(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    plane = MemoryControlPlane(assignment(tmp_path))
    source = MemorySource([(0, n, record(n)) for n in range(10)])
    with s3_server(tmp_path) as server, pytest.raises(StorageRefused, match="there is no such bucket"):
        run(source, plane, deep_storage=server.location(bucket="another-bucket"))
    assert plane.published == []
    assert set(source.verdicts.values()) == {RELEASE}


@contextmanager
def heard(control: Control) -> Iterator[None]:
    """Heartbeats that are answered."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(0.05):
            control.tell("continue")

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        yield
    finally:
        over.set()
        beating.join()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_while_deep_storage_is_away_nothing_is_polled_and_then_all_is_stored(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer than a lock: the batch in hand is given up once, and not polled again before the storage is back."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with s3_server(tmp_path) as server:
        location, port = server.location("deep"), int(server.endpoint.rpartition(":")[2])
    plane, control = MemoryControlPlane(assignment(tmp_path)), Control(0, 1)
    source = MemorySource([(0, n, record(n)) for n in range(300)], lock_s=1.0)
    with heard(control), ThreadPoolExecutor() as pool:
        running = pool.submit(run, source, plane, None, location, control)
        wait_for(lambda: control.status.unpublished.released == 100)
        wait_for(lambda: control.status.state == "paused")
        assert "The deep storage refuses: can't store d/" in control.status.message
        assert control.status.redelivery_counts == {1: 100}
        assert plane.published == []
        source.lock_s = 30.0
        with s3_server(tmp_path, port):
            running.result(60)
            storage = open_deep_storage(location)
            files = [s.path for p in plane.published for s in p.segments]
            rows = sorted(n for f in files for n in read_segment(storage, f)["n"].to_pylist())
            assert rows == list(range(300))
            assert len(set(storage.files())) == len(files) + 1  # and what was given up, to be cleaned up
    assert control.status.redelivery_counts == {1: 300, 2: 100}
    assert control.status.message == ""
    assert set(source.verdicts.values()) == {ACCEPT}


def test_a_full_disk_pauses_and_publishes_nothing(run: Any, tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk."""
    plane, control = MemoryControlPlane(assignment(tmp_path)), Control(0, 1)
    large = [{"time": "2025-06-01", "n": n, "text": random.Random(n).randbytes(2000).hex()} for n in range(100)]
    source = MemorySource([(0, r["n"], json.dumps(r).encode()) for r in large])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with heard(control), ThreadPoolExecutor() as pool:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
        try:
            running = pool.submit(run, source, plane, None, None, control)
            wait_for(lambda: "File too large" in control.status.message)
            assert control.status.state == "paused"
            assert plane.published == []
            assert source.verdicts == {}
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        running.result(60)
    assert stored(plane, tmp_path) == list(range(100))


def test_a_refusal_that_does_not_pass_ends_the_task() -> None:
    breaker = Breaker(Control(0, 1), MemorySource([]), logger_for(), patience_s=0.5)
    asked = []

    def refuse() -> None:
        asked.append(time.monotonic())
        raise DeepStorageError("can't store d/file: No space left on device", permanent=False)

    with pytest.raises(StorageRefused, match=r"has refused for 0\.5 s: can't store d/file: No space left"):
        breaker.insist(refuse, time.monotonic() + 60)
    assert len(asked) > 2


def test_kafkas_own_fields_reach_the_rows_also_of_late_deliveries(run: Any, tmp_path: Path) -> None:
    extras = {(0, n): (b"k%d" % n, 1000 + n, [("h", b"%d" % n)]) for n in range(6)}
    source = MemorySource([(0, n, record(n) if n != 3 else None) for n in range(6)], extras=extras, batch_records=3)
    source.open()
    first = source.take(0)
    assert first is not None
    source.lapse(first)  # these come a third time: decoded in a child process, beside others
    for _ in range(2):
        again = source.take(0)
        assert again is not None
        source.lapse(again)
    source.batch_records = 6
    spec = {
        "type": "kafka",
        "valueFormat": {"type": "json"},
        "keyFormat": {"type": "tsv", "columns": ["k"]},
        "headerFormat": {"type": "string"},
    }
    plane = run(source, input_format=spec, timestampSpec={"column": "kafka.timestamp", "format": "millis"})
    files = [tmp_path / "segments" / s.path for p in plane.published for s in p.segments]
    rows = [r for f in files for r in pq.read_table(f).to_pylist()]
    found = {r["kafka.key"]: (r["__time"].timestamp(), r["kafka.header.h"], r["kafka.topic"], r["n"]) for r in rows}
    assert found == {f"k{n}": (1 + n / 1000, str(n), "t", n if n != 3 else None) for n in range(6)}


def test_a_registry_that_is_away_pauses_and_marks_nothing(run: Any, tmp_path: Path) -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "time", "type": "string"}, {"name": "n", "type": "long"}],
    }
    body = b"\x14" + b"2025-06-01"
    with running() as registry:
        registry.schemas[1] = {"schema": json.dumps(schema)}
        registry.stop()
        back = threading.Timer(1.0, registry.start)
        back.start()
        decoder = {"type": "schema_registry", "url": registry.url}
        source = MemorySource([(0, n, framed(1, body + bytes([2 * n]))) for n in range(50)])
        plane = run(source, input_format={"type": "avro_stream", "avroBytesDecoder": decoder})
        back.join()
    assert stored(plane, tmp_path) == list(range(50))
    assert (total(plane).unparseable, total(plane).polled) == (0, 50)
    assert set(source.verdicts.values()) == {ACCEPT}


ROLLUP: dict[str, Any] = {
    "metricsSpec": [{"type": "count", "name": "count"}, {"type": "longSum", "name": "sum", "fieldName": "n"}],
    "granularitySpec": {"rollup": True},
}


def test_rolled_up_records_are_settled_and_counted_each(run: Any, tmp_path: Path) -> None:
    source = MemorySource([(n % 4, n // 4, record(n, 1 + n % 3)) for n in range(1000)])
    plane = run(source, **ROLLUP)
    counters = total(plane)
    segments = [s for p in plane.published for s in p.segments]
    assert counters.polled == 1000
    assert counters.published + counters.rolled_up == 1000
    assert counters.published == sum(s.rows for s in segments) < 100
    assert sum(end - start for s in segments for r in s.offsets.values() for start, end in r) == 1000
    rows = [row for s in segments for row in pq.read_table(tmp_path / "segments" / s.path).to_pylist()]
    assert (sum(r["count"] for r in rows), sum(r["sum"] for r in rows)) == (1000, sum(range(1000)))
    assert set(source.verdicts.values()) == {ACCEPT}


def test_duplicates_that_the_publish_tells_are_not_in_rolled_up_sums(run: Any, tmp_path: Path) -> None:
    """What was merged can't be taken apart: rows are rolled up only when it is known which records are stored."""
    plane = MemoryControlPlane(assignment(tmp_path))
    first = MemorySource([(0, n, record(n)) for n in range(10)])
    run(first, plane, **ROLLUP)
    again = MemorySource([(0, n, record(n)) for n in range(20)])
    run(again, plane, **ROLLUP)
    rows = [
        row
        for p in plane.published
        for s in p.segments
        for row in pq.read_table(tmp_path / "segments" / s.path).to_pylist()
    ]
    assert (sum(r["count"] for r in rows), sum(r["sum"] for r in rows)) == (20, sum(range(20)))
    assert total(plane).duplicates == 10


def test_faulty_fields_are_counted(run: Any) -> None:
    dimensions = {"dimensions": [{"name": "n", "type": "long"}]}
    faulty = json.dumps({"time": "2025-06-01", "n": "text"}).encode()
    plane = run(MemorySource([(0, 0, record(1)), (0, 1, faulty)]), dimensionsSpec=dimensions)
    assert (total(plane).published, total(plane).processed_with_error) == (2, 1)


def test_too_many_parse_exceptions_end_the_indexer_with_nothing_published(run: Any, tmp_path: Path) -> None:
    plane = MemoryControlPlane(assignment(tmp_path))
    source = MemorySource([(0, 0, record(1)), (0, 1, b"not JSON")])
    with pytest.raises(TooManyParseExceptions, match=r"maxParseExceptions .0. allows.*offset 1: not JSON"):
        run(source, plane, tuningConfig={"maxParseExceptions": 0})
    assert plane.published == []
    assert ACCEPT not in source.verdicts.values()
    run(MemorySource([(0, 0, record(1)), (0, 1, b"not JSON")]), plane, tuningConfig={"maxParseExceptions": 1})
    assert total(plane).unparseable == 1
