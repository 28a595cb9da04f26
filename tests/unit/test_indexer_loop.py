"""The one loop on a source and a control plane from memory: every record ends once, in the right order."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ingestion.client.errors import Unreachable
from ingestion.client.memory import MemoryControlPlane
from ingestion.sources.base import ACCEPT, REJECT, SourceProblem
from ingestion.sources.memory import MemoryLeasedSource
from ingestion.spark.worker import IndexerEnd
from ingestion.specs.messages.protocol import Assignment, Outcomes, PublishAnswer, PublishRequest
from ingestion.task.control import Control
from ingestion.task.errors import TooManyParseExceptions
from ingestion.task.parse_exceptions import without_parse_limits
from tests.support.indexer import FixedTopic, OneLog, assignment, record, stored, total


def test_every_record_is_stored_and_accepted(run_indexer: Any, tmp_path: Path) -> None:
    source = MemoryLeasedSource([(n % 4, n // 4, record(n, 1 + n % 3)) for n in range(1000)])
    plane = run_indexer(source)
    assert stored(plane, tmp_path) == list(range(1000))
    assert set(source.acknowledgements.values()) == {ACCEPT}
    assert total(plane).polled == total(plane).published == 1000


@pytest.mark.parametrize("rollup", [False, True])
def test_a_publish_writes_one_file_for_each_interval_however_late_its_rows_are(
    run_indexer: Any, tmp_path: Path, rollup: bool
) -> None:
    """Of four partitions with late rows among them, more than Parquet's writer takes at once."""
    times = [datetime(2025, 6, 1, 12, n % 60, tzinfo=UTC) - timedelta(hours=n * 7 % 11) for n in range(3000)]
    payloads = [json.dumps({"time": t.isoformat(), "n": n, "pad": "x" * 8000}).encode() for n, t in enumerate(times)]
    source = MemoryLeasedSource([(n % 4, n // 4, payload) for n, payload in enumerate(payloads)], batch_records=1000)
    plane = run_indexer(source, granularitySpec={"segmentGranularity": "HOUR", "rollup": rollup})
    assert stored(plane, tmp_path) == list(range(3000))
    assert len(plane.published) == 3
    for first, published in zip(range(0, 3000, 1000), plane.published, strict=True):
        hours = {t.replace(minute=0) for t in times[first : first + 1000]}
        assert sorted(s.interval_start for s in published.segments) == sorted(hours)


def test_what_can_not_be_decoded_is_quarantined_whole_and_rejected(run_indexer: Any, tmp_path: Path) -> None:
    payloads = [record(0), b"{broken", record(1), None, b"\xff\xfe", b"[1]", b'{"n": 5}']
    source = MemoryLeasedSource([(0, offset, payload) for offset, payload in enumerate(payloads)])
    plane = run_indexer(source, io_config={"tombstones": "quarantine"})
    assert stored(plane, tmp_path) == [0, 1]
    assert [source.acknowledgements[(0, o)] for o in range(7)] == [
        ACCEPT,
        REJECT,
        ACCEPT,
        REJECT,
        REJECT,
        REJECT,
        REJECT,
    ]
    kept = [q for p in plane.published for q in p.quarantined]
    assert [q.offset for q in kept] == [1, 3, 4, 5, 6]
    assert [q.payload for q in kept] == [payloads[q.offset] for q in kept]
    assert all(q.error for q in kept)


@pytest.mark.parametrize("kafka", [False, True])
def test_tombstones_are_thrown_away_and_counted(run_indexer: Any, tmp_path: Path, kafka: bool) -> None:
    """Druid does so; here, unless the spec wants them in quarantine."""
    source = MemoryLeasedSource([(0, n, None if n % 3 else record(n)) for n in range(9)])
    plane = run_indexer(source, kafka=kafka, transformSpec={"filter": {"type": "not", "field": {"type": "false"}}})
    assert stored(plane, tmp_path) == [0, 3, 6]
    counted = total(plane)
    assert (counted.polled, counted.published, counted.thrown_away, counted.tombstones) == (9, 3, 6, 6)
    assert (counted.filtered, counted.outside_window, counted.unparseable) == (0, 0, 0)
    assert set(source.acknowledgements.values()) <= {ACCEPT}


def test_what_the_filter_drops_is_thrown_away_and_accepted(run_indexer: Any, tmp_path: Path) -> None:
    source = MemoryLeasedSource([(0, n, record(n)) for n in range(10)])
    keep = {"type": "bound", "dimension": "n", "lower": "5", "ordering": "numeric"}
    plane = run_indexer(source, transformSpec={"filter": keep})
    assert stored(plane, tmp_path) == [5, 6, 7, 8, 9]
    assert (total(plane).thrown_away, total(plane).filtered) == (5, 5)
    assert set(source.acknowledgements.values()) == {ACCEPT}


@pytest.mark.parametrize(
    ("kafka", "duration", "kept"),
    [
        (True, 60, [-230, -170, -90]),
        (True, 240, [-230, -170, -90, -50, 0, 50, 90]),
        (True, None, [-230, -170, -90, -50, 0, 50]),  # submitted by hand: it reads as long as there is anything
        (False, None, [-50, 0, 50]),
    ],
)
def test_late_and_early_are_counted_from_the_tasks_creation(
    run_indexer: Any, tmp_path: Path, kafka: bool, duration: int | None, kept: list[int]
) -> None:
    """Of a task that was created three hours ago, an hour allowed either way; in minutes from now."""
    now = datetime.now(UTC)
    created_at = now - timedelta(hours=3)
    minutes = [-250, -230, -170, -90, -50, 0, 50, 90, 170]
    times = {m: (now + timedelta(minutes=m)).isoformat() for m in minutes}
    source = MemoryLeasedSource(
        [(0, n, json.dumps({"time": times[m], "n": m}).encode()) for n, m in enumerate(minutes)]
    )
    plane = run_indexer(
        source,
        kafka=kafka,
        io_config={"lateMessageRejectionPeriod": "PT1H", "earlyMessageRejectionPeriod": "PT1H"},
        created_at=created_at,
        reads_until=None if duration is None else created_at + timedelta(minutes=duration),
    )
    assert stored(plane, tmp_path) == kept
    assert total(plane).outside_window == len(minutes) - len(kept)


def test_settled_records_are_dropped_as_duplicates(run_indexer: Any, tmp_path: Path) -> None:
    first = MemoryLeasedSource([(0, n, record(n)) for n in range(50)])
    plane = run_indexer(first)
    again = MemoryLeasedSource([(0, n, record(n)) for n in range(30, 80)])
    run_indexer(again, plane)
    assert stored(plane, tmp_path) == list(range(80))
    assert total(plane).duplicates == 20
    assert total(plane).polled == 100
    assert set(again.acknowledgements.values()) == {ACCEPT}
    assert sum(p.early_duplicates for p in plane.published) == 20


def test_what_was_settled_after_its_lock_had_ended_is_no_alarm(run_indexer: Any, tmp_path: Path) -> None:
    """By then it may have been delivered to another."""
    plane = run_indexer(MemoryLeasedSource([(0, n, record(n)) for n in range(50)]))
    run_indexer(MemoryLeasedSource([(0, n, record(n)) for n in range(50)], lock_s=0.0), plane)
    assert total(plane).duplicates == 50
    assert sum(p.early_duplicates for p in plane.published) == 0


def test_offsets_without_a_record_that_are_settled_by_now_are_left_out(run_indexer: Any, tmp_path: Path) -> None:
    """Two repairs may read the same hole; the second one must come to an end."""
    plane = run_indexer(MemoryLeasedSource([(0, n, record(n)) for n in range(10)]))
    holes = {0: Outcomes(gap=[(5, 8), (20, 22)], empty=[(8, 12)]), 1: Outcomes(empty=[(0, 3)])}
    run_indexer(MemoryLeasedSource([(0, 12, record(12))], without_record=holes), plane)
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
def test_a_lost_answer_changes_nothing(run_indexer: Any, tmp_path: Path, after_commit: bool) -> None:
    plane = Flaky(assignment(tmp_path))
    plane.after_commit = after_commit
    run_indexer(MemoryLeasedSource([(0, n, record(n)) for n in range(200)]), plane)
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


def test_a_publish_that_had_committed_is_found_out_when_the_lock_ends(run_indexer: Any, tmp_path: Path) -> None:
    plane, control = Away(assignment(tmp_path)), Control(0, 1)
    source = MemoryLeasedSource([(0, n, record(n)) for n in range(100)], lock_s=2.0)
    run_indexer(source, plane, control=control)
    assert stored(plane, tmp_path) == list(range(100))
    assert total(plane).published == 100
    assert control.status.unpublished.released == 0
    assert set(source.acknowledgements.values()) == {ACCEPT}


def test_a_topic_made_again_is_not_published_under_its_old_id(run_indexer: Any, tmp_path: Path) -> None:
    source = MemoryLeasedSource([(0, n, record(n)) for n in range(10)])
    plane = run_indexer(source, topic=FixedTopic(change_after=1))
    assert {p.topic_id for p in plane.published} <= {"another-id"}


def test_the_loop_goes_on_after_such_a_publish(run_indexer: Any, tmp_path: Path) -> None:
    plane = Away(assignment(tmp_path))
    source = MemoryLeasedSource([(0, n, record(n)) for n in range(300)], lock_s=2.0)
    run_indexer(source, plane)
    assert stored(plane, tmp_path) == list(range(300))


def test_kafkas_own_fields_reach_the_rows_also_of_late_deliveries(run_indexer: Any, tmp_path: Path) -> None:
    extras = {(0, n): (b"k%d" % n, 1000 + n, [("h", b"%d" % n)]) for n in range(6)}
    source = MemoryLeasedSource(
        [(0, n, record(n) if n != 3 else None) for n in range(6)], extras=extras, batch_records=3
    )
    source.open()
    first = source.poll(0)
    assert first is not None
    source.lapse(first)  # these come a third time: decoded in a child process, beside others
    for _ in range(2):
        again = source.poll(0)
        assert again is not None
        source.lapse(again)
    source.batch_records = 6
    spec = {
        "type": "kafka",
        "valueFormat": {"type": "json"},
        "keyFormat": {"type": "tsv", "columns": ["k"]},
        "headerFormat": {"type": "string"},
    }
    plane = run_indexer(source, input_format=spec, timestampSpec={"column": "kafka.timestamp", "format": "millis"})
    files = [tmp_path / "segments" / s.path for p in plane.published for s in p.segments]
    rows = [r for f in files for r in pq.read_table(f).to_pylist()]
    found = {r["kafka.key"]: (r["__time"].timestamp(), r["kafka.header.h"], r["kafka.topic"], r["n"]) for r in rows}
    assert found == {f"k{n}": (1 + n / 1000, str(n), "t", n) for n in range(6) if n != 3}  # that one has no value


ROLLUP: dict[str, Any] = {
    "metricsSpec": [{"type": "count", "name": "count"}, {"type": "longSum", "name": "sum", "fieldName": "n"}],
    "granularitySpec": {"rollup": True},
}


def test_rolled_up_records_are_settled_and_counted_each(run_indexer: Any, tmp_path: Path) -> None:
    source = MemoryLeasedSource([(n % 4, n // 4, record(n, 1 + n % 3)) for n in range(1000)])
    plane = run_indexer(source, **ROLLUP)
    counters = total(plane)
    segments = [s for p in plane.published for s in p.segments]
    assert counters.polled == 1000
    assert counters.published + counters.rolled_up == 1000
    assert counters.published == sum(s.rows for s in segments) < 100
    assert sum(end - start for s in segments for r in s.offsets.values() for start, end in r) == 1000
    rows = [row for s in segments for row in pq.read_table(tmp_path / "segments" / s.path).to_pylist()]
    assert (sum(r["count"] for r in rows), sum(r["sum"] for r in rows)) == (1000, sum(range(1000)))
    assert set(source.acknowledgements.values()) == {ACCEPT}


def test_duplicates_that_the_publish_tells_are_not_in_rolled_up_sums(run_indexer: Any, tmp_path: Path) -> None:
    """What was merged can't be taken apart: rows are rolled up only when it is known which records are stored."""
    plane = MemoryControlPlane(assignment(tmp_path))
    first = MemoryLeasedSource([(0, n, record(n)) for n in range(10)])
    run_indexer(first, plane, **ROLLUP)
    again = MemoryLeasedSource([(0, n, record(n)) for n in range(20)])
    run_indexer(again, plane, **ROLLUP)
    rows = [
        row
        for p in plane.published
        for s in p.segments
        for row in pq.read_table(tmp_path / "segments" / s.path).to_pylist()
    ]
    assert (sum(r["count"] for r in rows), sum(r["sum"] for r in rows)) == (20, sum(range(20)))
    assert total(plane).duplicates == 10


def test_faulty_fields_are_counted(run_indexer: Any) -> None:
    dimensions = {"dimensions": [{"name": "n", "type": "long"}]}
    faulty = json.dumps({"time": "2025-06-01", "n": "text"}).encode()
    plane = run_indexer(MemoryLeasedSource([(0, 0, record(1)), (0, 1, faulty)]), dimensionsSpec=dimensions)
    assert (total(plane).published, total(plane).processed_with_error) == (2, 1)


def test_records_with_a_faulty_field_are_kept_for_the_report_but_no_more_than_it_shows(run_indexer: Any) -> None:
    dimensions = {"dimensions": [{"name": "n", "type": "long"}]}
    faulty = json.dumps({"time": "2025-06-01", "n": "text"}).encode()
    source = MemoryLeasedSource([(0, n, faulty) for n in range(6)], batch_records=2)
    plane = run_indexer(source, dimensionsSpec=dimensions, tuningConfig={"maxSavedParseExceptions": 3})
    kept = [r for p in plane.published for r in p.faulty]
    assert [(r.offset, r.payload) for r in kept] == [(0, faulty), (1, faulty), (2, faulty)]
    assert {r.error for r in kept} == {"field 'n' is not a whole number"}


def test_parse_exceptions_are_counted_over_restarts(run_indexer: Any, tmp_path: Path) -> None:
    plane = MemoryControlPlane(assignment(tmp_path))
    tuning = {"maxParseExceptions": 3}
    for offset in (0, 2):
        run_indexer(
            MemoryLeasedSource([(0, offset + n, b"not JSON") for n in range(2 - offset // 2)]),
            plane,
            tuningConfig=tuning,
        )
    with pytest.raises(TooManyParseExceptions, match="There are 4 parse exceptions"):
        run_indexer(MemoryLeasedSource([(0, 9, b"not JSON")]), plane, tuningConfig=tuning)
    assert total(plane).unparseable == 3


def test_too_many_parse_exceptions_end_the_indexer_with_nothing_published(run_indexer: Any, tmp_path: Path) -> None:
    plane = MemoryControlPlane(assignment(tmp_path))
    source = MemoryLeasedSource([(0, 0, record(1)), (0, 1, b"not JSON")])
    with pytest.raises(TooManyParseExceptions, match=r"maxParseExceptions .0. allows.*offset 1: not JSON"):
        run_indexer(source, plane, tuningConfig={"maxParseExceptions": 0})
    assert plane.published == []
    assert ACCEPT not in source.acknowledgements.values()
    run_indexer(
        MemoryLeasedSource([(0, 0, record(1)), (0, 1, b"not JSON")]), plane, tuningConfig={"maxParseExceptions": 1}
    )
    assert total(plane).unparseable == 1


@pytest.mark.parametrize(("kafka", "counts"), [(False, (5, 2, 3)), (True, (4, 2, 2))])
def test_too_many_parse_exceptions_tell_what_was_read_and_is_not_published(
    run_indexer: Any, kafka: bool, counts: tuple[int, int, int]
) -> None:
    """Also what has gathered before, of a topic with stored offsets."""
    tuning = {"maxParseExceptions": 1, "maxSavedParseExceptions": 2}
    payloads = [record(1), b"not JSON", record(2), b"no", b"[]"]
    control = Control(0, 1)
    log = OneLog(payloads, control, batch_records=2)
    source = log if kafka else MemoryLeasedSource([(0, n, payload) for n, payload in enumerate(payloads)])
    with pytest.raises(TooManyParseExceptions) as caught:
        run_indexer(source, control=control, tuningConfig=tuning, kafka=kafka)
    ended = IndexerEnd.of(caught.value)
    assert (ended.given_up.polled, ended.given_up.rolled_up, ended.given_up.unparseable) == counts
    assert [(one.place, one.start, one.stored) for one in ended.unread] == [
        ("partition 0, offset 1", "not JSON", False),
        ("partition 0, offset 3", "no", False),
    ]


def test_who_reads_old_records_again_has_no_limit_of_parse_exceptions(tmp_path: Path) -> None:
    for tuning in ({"maxParseExceptions": 0}, {"reportParseExceptions": True}):
        spec = assignment(tmp_path, tuningConfig=tuning).spec
        assert spec.tuningConfig.parse_exceptions_limit == 0
        assert without_parse_limits(spec).tuningConfig.parse_exceptions_limit is None


class Stuck(MemoryLeasedSource):
    """Does not close, as a client that waits for its broker."""

    def close(self) -> None:
        raise SourceProblem("it has not closed")


def test_a_source_that_does_not_close_keeps_no_indexer_from_ending(run_indexer: Any, tmp_path: Path) -> None:
    plane = run_indexer(Stuck([(0, n, record(n)) for n in range(10)]))
    assert stored(plane, tmp_path) == list(range(10))


def test_a_source_that_does_not_close_goes_with_its_process(run_indexer: Any, tmp_path: Path) -> None:
    """Not another one beside it: it may still be dealt partitions, which nobody would read."""
    with pytest.raises(SourceProblem, match="it has not closed"):
        run_indexer(Stuck([(0, n, record(n)) for n in range(10)]), topic=FixedTopic(change_after=1))
