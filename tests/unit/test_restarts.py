"""What fails over and over: later and later, and not for ever."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controlplane.supervisors.repair_pace import EndedRepair, failures_in_a_row, next_repair_at
from ingestion.client.memory import MemoryControlPlane
from ingestion.errors import IngestionError
from ingestion.segments.errors import DeepStorageError
from ingestion.spark import application as driver
from ingestion.spark import worker
from ingestion.spark.application import Application, Slot
from ingestion.spark.restarts import Restarts
from ingestion.specs.messages.protocol import UnreadRecord
from ingestion.task.errors import Fenced, StorageRefused, TooManyParseExceptions
from ingestion.task.shutdown import Ending
from tests.support.indexer import assignment

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _short_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "HEARTBEAT_S", 0.05)


@pytest.mark.parametrize(("answered_in_s", "pause_s"), [(0.0, 1.0), (0.1, 1.0), (0.3, 3.0), (0.5, 5.0), (9.0, 5.0)])
def test_who_is_answered_late_asks_less_often(
    monkeypatch: pytest.MonkeyPatch, answered_in_s: float, pause_s: float
) -> None:
    monkeypatch.undo()
    assert driver.heartbeat_pause(answered_in_s) == pytest.approx(pause_s)


def test_each_failure_is_waited_for_twice_as_long_up_to_a_bound() -> None:
    restarts = Restarts(100)
    waits = []
    for _ in range(9):
        restarts.failed("refused", published=False, ran_long=False)
        waits.append(restarts.wait_s)
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    restarts.failed("refused", published=False, ran_long=True)
    assert (restarts.wait_s, restarts.in_a_row) == (0.5, 10)


def test_one_reason_ends_it_and_what_differs_in_a_number_is_one_reason() -> None:
    restarts = Restarts(3)
    for attempt in range(3):
        assert not restarts.are_over
        restarts.failed(f"worker {attempt} at port 4040{attempt} exited", published=False, ran_long=False)
    assert restarts.are_over


@pytest.mark.parametrize("change", [{"published": True}, {"reason": "another one"}])
def test_a_publish_and_another_reason_begin_the_count_anew(change: dict[str, Any]) -> None:
    restarts = Restarts(3)
    for _ in range(2):
        restarts.failed("refused", published=False, ran_long=False)
    restarts.failed(**{"reason": "refused", "published": False, "ran_long": False, **change})
    assert (restarts.in_a_row, restarts.are_over) == (1, False)


class Failing(Application):
    """Its jobs fail as Spark's do. No Spark is asked: what is tried out is what the driver makes of it."""

    jobs = 0

    def _job(self, slot: Slot) -> worker.IndexerEnd:
        self.jobs += 1
        raise RuntimeError(f"Job aborted due to stage failure {self.jobs}")


class Refused(Failing):
    """Its jobs end with the error below."""

    error: IngestionError

    def _job(self, slot: Slot) -> worker.IndexerEnd:
        self.jobs += 1
        return worker.IndexerEnd.of(self.error)


def application(
    kind: type[Failing], folder: Path, indexers: int = 1, **parts: Any
) -> tuple[Failing, MemoryControlPlane]:
    io_config = {"assignment": "consumer_group", "groupId": "g"}
    given = assignment(folder, kafka=True, io_config=io_config, **parts).model_copy(
        update={"most_failures": 3, "indexers": indexers}
    )
    plane = MemoryControlPlane(given)
    spark: Future[Any] = Future()
    spark.set_result(SimpleNamespace(getConf=dict, defaultParallelism=1))
    return kind(spark, plane, given, "", "", Ending()), plane  # type: ignore[arg-type]


def test_a_task_whose_indexer_fails_for_one_reason_fails_with_it(tmp_path: Path) -> None:
    """Row 31 of the failure matrix."""
    failing, plane = application(Failing, tmp_path)
    failing.run()
    assert failing.jobs == 3
    [end] = plane.ended
    assert end.error == "Indexer 0 failed 3 times in a row: Job aborted due to stage failure 3"
    told = [i for beat in plane.heartbeats for i in beat.indexers if i.state == "restarting"]
    assert told and {i.failures for i in told} <= {1, 2, 3}
    assert all(i.message.startswith("Job aborted due to stage failure") for i in told)


@pytest.mark.parametrize(
    ("error", "jobs", "said"),
    [
        (StorageRefused("access denied"), 1, "access denied"),
        (DeepStorageError("no such scheme", permanent=True), 1, "no such scheme"),
        (TooManyParseExceptions("there are 4"), 1, "there are 4"),
        (Fenced("a newer epoch runs"), 3, "Indexer 0 failed 3 times in a row: a newer epoch runs"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, IngestionError) else None,
)
def test_a_task_fails_at_once_of_what_is_for_good(tmp_path: Path, error: IngestionError, jobs: int, said: str) -> None:
    failing, plane = application(type("Ends", (Refused,), {"error": error}), tmp_path)
    failing.run()
    assert (failing.jobs, [end.error for end in plane.ended]) == (jobs, [said])


class OneOfTwo(Refused):
    """The first indexer ends so; the other one works on until it is told what to do."""

    told = ""

    def _job(self, slot: Slot) -> worker.IndexerEnd:
        if slot.number == 0:
            return super()._job(slot)
        slot.changed.wait()
        self.told = slot.directive
        return worker.IndexerEnd()


@pytest.mark.parametrize(
    ("error", "told"),
    [(StorageRefused("access denied"), "stop"), (TooManyParseExceptions("there are 4"), "finish")],
    ids=lambda value: type(value).__name__ if isinstance(value, IngestionError) else None,
)
def test_what_ends_a_task_for_good_ends_its_other_indexers(tmp_path: Path, error: IngestionError, told: str) -> None:
    """Row 26 of the failure matrix: where deep storage refuses, what others hold is kept back too; else they publish
    it first.
    """
    failing, plane = application(type("Ends", (OneOfTwo,), {"error": error}), tmp_path, indexers=2)
    failing.run()
    assert isinstance(failing, OneOfTwo)
    assert (failing.told, [end.error for end in plane.ended]) == (told, [str(error)])


@pytest.mark.parametrize(
    ("tuning", "most"),
    [({"maxSavedParseExceptions": 3}, 3), ({"maxSavedParseExceptions": 0}, 0), ({"reportParseExceptions": True}, 1)],
)
def test_a_report_has_as_many_records_of_all_indexers_as_the_spec_says(
    tmp_path: Path, tuning: dict[str, Any], most: int
) -> None:
    places = [f"partition 0, offset {n}" for n in range(4)]
    unread = tuple(UnreadRecord(place=place, start="no", error="not JSON", stored=False) for place in places)
    error = TooManyParseExceptions("there are 4", unread=unread)
    failing, plane = application(type("Ends", (Refused,), {"error": error}), tmp_path, indexers=2, tuningConfig=tuning)
    failing.run()
    [end] = plane.ended
    assert [one.place for one in end.unread] == places[:most]


def repairs(*failed: bool) -> list[EndedRepair]:
    """Newest first, an hour between two."""
    return [EndedRepair(f, NOW - timedelta(hours=n)) for n, f in enumerate(failed)]


@pytest.mark.parametrize(
    ("failed", "in_a_row", "seconds"),
    [
        ([], 0, None),
        ([False, True], 0, None),
        ([True], 1, 30),
        ([True, True, False, True], 2, 60),
        ([True] * 5, 5, 480),
        ([True] * 9, 9, 600),
        ([True] * 10, 10, 86_400),
        ([True] * 12, 12, 86_400),
    ],
)
def test_repairs_that_fail_are_tried_later_and_later_and_then_rarely(
    failed: list[bool], in_a_row: int, seconds: int | None
) -> None:
    assert failures_in_a_row(repairs(*failed)) == in_a_row
    assert next_repair_at(repairs(*failed), 10) == (None if seconds is None else NOW + timedelta(seconds=seconds))
