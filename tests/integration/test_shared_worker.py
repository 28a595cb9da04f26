"""One process for the indexers of many tasks: what ends one of them leaves the others alone.

The process and the indexers in it are real ones; only Spark, which starts such a process for a job, is left out.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark import cloudpickle

from ingestion.spark.board import Board
from ingestion.spark.shared_worker import SharedWorker
from ingestion.spark.worker import IndexerEnd
from tests.support.waiting import wait_for
from tests.unit.test_spark_worker import orders

_SPAWN = multiprocessing.get_context("spawn")


class ProcessStarter:
    """In Spark's place: runs a job in a process, and fails when that does."""

    def __init__(self) -> None:
        self.processes: list[Any] = []
        self._serve: Any = None

    def parallelize(self, *_: Any) -> ProcessStarter:
        return self

    def mapPartitions(self, serve: Any) -> ProcessStarter:
        self._serve = serve
        return self

    def collect(self) -> list[Any]:
        process = _SPAWN.Process(target=_start, args=(cloudpickle.dumps(self._serve),), daemon=True)
        process.start()
        self.processes.append(process)
        process.join()
        if process.exitcode:
            raise RuntimeError(f"the process exited with {process.exitcode}")
        return []

    @property
    def pid(self) -> int:
        return int(self.processes[-1].pid)


def _start(pickled: bytes) -> None:
    list(cloudpickle.loads(pickled)([0]))


@pytest.fixture
def spark() -> Iterator[ProcessStarter]:
    starter = ProcessStarter()
    yield starter
    for process in starter.processes:
        process.kill()


@pytest.fixture
def worker(spark: ProcessStarter) -> Iterator[SharedWorker]:
    shared = SharedWorker(cast(Any, spark))
    yield shared
    shared.close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as executor:
        yield executor


class Waiting:
    """Indexers, each of a task of its own, that wait for a topic of a Kafka that does not answer."""

    def __init__(self, worker: SharedWorker, pool: ThreadPoolExecutor, folder: Path, number: int) -> None:
        self.boards = [Board() for _ in range(number)]
        self.ends: list[Future[IndexerEnd]] = [
            pool.submit(worker.run, orders(board, f"file://{folder}")) for board in self.boards
        ]
        wait_for("all have told their state", lambda: all(self.tells(n) for n in range(number)))

    def tells(self, n: int) -> int | None:
        status = self.boards[n].status(3)
        return status[1].pid if status is not None and status[0] < 5 else None

    def stop(self) -> None:
        for board in self.boards:
            board.set_directive(3, "stop")
        assert [end.result(60) for end in self.ends] == [IndexerEnd()] * len(self.ends)
        for board in self.boards:
            board.close()


def test_indexers_share_a_process_and_each_ends_for_itself(
    spark: ProcessStarter, worker: SharedWorker, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    waiting = Waiting(worker, pool, tmp_path, 3)
    assert {waiting.tells(n) for n in range(3)} == {spark.pid}
    waiting.boards[0].set_directive(3, "stop")
    assert waiting.ends[0].result(60) == IndexerEnd()
    failed = worker.run(orders(waiting.boards[0], "gopher://host/x"))  # its spec names no deep storage
    assert (failed.is_failure, failed.permanent) == (True, True)
    thrown = worker.run(replace(orders(waiting.boards[0], ""), assignment="{}"))  # nobody foresaw that
    assert thrown.kind == "failed" and thrown.reason.startswith("ValidationError")
    assert [end.done() for end in waiting.ends] == [True, False, False]
    assert {waiting.tells(n) for n in (1, 2)} == {spark.pid}
    waiting.stop()


def test_all_end_with_the_process_and_the_next_one_serves_them(
    spark: ProcessStarter, worker: SharedWorker, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    waiting = Waiting(worker, pool, tmp_path, 2)
    killed, address = spark.pid, worker._address
    os.kill(killed, signal.SIGKILL)
    for end in waiting.ends:
        with pytest.raises(ConnectionError, match="has ended"):
            end.result(60)
    wait_for("another one is up", lambda: worker._address not in (None, address))
    again = Waiting(worker, pool, tmp_path, 2)
    assert {again.tells(n) for n in range(2)} == {spark.pid}
    assert spark.pid != killed
    again.stop()


def test_a_process_ends_with_its_driver(spark: ProcessStarter, worker: SharedWorker) -> None:
    wait_for("it is up", lambda: worker._line)
    worker.close()
    assert worker._line is not None
    worker._line.close()
    wait_for("it has ended", lambda: spark.processes[-1].exitcode == 0)


def test_a_closed_board_holds_nothing() -> None:
    before = threading.active_count()
    boards = [Board() for _ in range(5)]
    assert threading.active_count() == before + 5
    for board in boards:
        board.close()
    wait_for("its threads have ended", lambda: threading.active_count() == before)
    for board in boards:
        assert board._listener._listener is None  # type: ignore[attr-defined]  # closed
