"""A task's indexers in processes of their own, without Spark: real services, and faults within a second."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import secrets
import signal
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any

from ingestion.client.errors import ClientError, TaskOver
from ingestion.client.http import HttpControlPlane
from ingestion.sources.topic import configure_group
from ingestion.spark.board import Board
from ingestion.spark.worker import WorkerConfig
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.messages.protocol import EndRequest, HeartbeatRequest, IndexerStatus
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.support.formats import HERE
from tests.support.house import House
from tests.support.waiting import PATIENCE, wait_for
from tests.support.worker_process import main

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.support.worker_process"])  # as Spark's daemon does: it imports once
BEAT_S = 0.5
_INSERT = """
    INSERT INTO tasks_task (id, kind, datasource_id, supervisor_id, replica_group, spec, secrets, ranges, status, goal,
        indexers_wanted, slots, token_hash, created_at, launched_at, error, message, observation)
    SELECT %s, %s, d.id, %s, %s, %s, '', %s, 'PENDING', 'continue', %s, %s, %s, now(), now(), '', '', '{}'
    FROM datasources_datasource d WHERE d.name = %s RETURNING 1
"""

_LIVES = "SELECT 1 FROM supervisors_supervisor WHERE id = %s AND terminated_at IS NULL"


@dataclass
class _Worker:
    process: ForkServerProcess
    said: Connection
    outcome: tuple[str, str] | None = None
    killed: bool = False


class Workers:
    """The driver of one task. ``number``: an indexer's. What dies of itself is started again, as by Spark's driver.

    ``owner``: whose stored offsets they are; tasks of one owner follow each other. None: a task submitted by hand.
    With ``replicas`` in the spec, tasks of one owner are replicas of each other instead. ``ranges``: partition, start
    and end of all that a bounded read reads.
    """

    def __init__(
        self,
        house: House,
        spec: dict[str, Any],
        indexers: int = 1,
        owner: str | None = "",
        ranges: list[tuple[int, int, int]] | None = None,
    ) -> None:
        self._house = house
        kafka = spec["type"] == "kafka"
        parsed = parse_task_spec({**spec, "type": "index_kafka" if kafka else spec["type"]})
        self.datasource = parsed.datasource
        self.id = f"lone-{uuid.uuid4().hex[:12]}"
        token = secrets.token_urlsafe(16)
        # A supervisor at rest makes the datasource; nobody runs under the name that the offsets are kept for.
        self._supervisor = house.api("POST", "/druid/indexer/v1/supervisor", {**spec, "suspended": True})["id"]
        self.owner = "" if owner is None else owner or f"{self.datasource}-lone"
        hashed = hashlib.sha256(token.encode()).hexdigest()
        io_config = parsed.spec.ioConfig
        kind = io_config.traits.kind if ranges is None else "bounded"
        if isinstance(io_config, ShareGroupIOConfig):
            properties = {name: str(value) for name, value in io_config.consumerProperties.items()}
            configure_group(properties, io_config, HERE)
        group = self.owner if io_config.replicas > 1 else ""
        wanted = [{"partition": p, "start": start, "end": end, "topic_id": ""} for p, start, end in ranges or []]
        documents = (json.dumps(parsed.canonical()), json.dumps(wanted))
        values = (self.id, kind, self.owner, group, *documents, indexers, indexers, hashed)
        house.sql(_INSERT, *values, self.datasource)
        self._client = HttpControlPlane(house.url, self.id, token)
        self._board = Board()
        self._token = token
        self._scratch = str(house.home.tasks / self.id / "scratch")
        self._workers: dict[int, _Worker] = {}
        self._done = threading.Event()
        self._closed = False
        self._beats = threading.Thread(target=self._beat, daemon=True)
        self._beats.start()

    def start(self, *numbers: int) -> None:
        """Start these indexers; each reads its failpoints anew."""
        orders = self._client.assignment().model_dump_json()
        for number in numbers:
            self._board.forget(number)
            self._board.set_directive(number, "continue")
            ours, theirs = _CONTEXT.Pipe()
            order = WorkerConfig(
                number=number,
                assignment=orders,
                url=self._house.proxy.url,
                token=self._token,
                board=self._board.address,
                authkey=self._board.authkey,
                is_remote=False,
            )
            process = _CONTEXT.Process(target=main, args=(order, theirs, self._scratch), daemon=True)
            process.start()
            theirs.close()
            self._workers[number] = _Worker(process, ours)

    @property
    def numbers(self) -> list[int]:
        """Those that were started."""
        return list(self._workers)

    def pid(self, number: int) -> int:
        pid = self._workers[number].process.pid
        assert pid is not None
        return pid

    def alive(self, number: int) -> bool:
        return self._workers[number].process.is_alive()

    def kill(self, *numbers: int) -> None:
        """SIGKILL, and wait."""
        for number in numbers:
            self._workers[number].killed = True
            self._workers[number].process.kill()
            self._workers[number].process.join(20)

    @contextmanager
    def asleep(self, number: int) -> Iterator[None]:
        """SIGSTOP; SIGCONT at the end."""
        os.kill(self.pid(number), signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid(number), signal.SIGCONT)

    def finish(self, *numbers: int) -> None:
        """Tell these to publish what they hold and end; wait until they have."""
        for number in numbers:
            self._board.set_directive(number, "finish")
        for number in numbers:
            self.ended(number)

    def ended(self, number: int, seconds: float = 60) -> tuple[str, str]:
        """Wait until the indexer ends, as ``wait_for`` does: how, and why. Its process died: ("died", "")."""
        worker = self._workers[number]
        worker.process.join(PATIENCE * seconds)
        assert not worker.process.is_alive(), f"indexer {number} did not end: {self.status(number)}"
        if worker.outcome is None:
            try:
                worker.outcome = worker.said.recv() if worker.said.poll() else ("died", "")
            except EOFError:
                worker.outcome = ("died", "")
        return worker.outcome

    def status(self, number: int) -> IndexerStatus | None:
        """The indexer's last word."""
        seen = self._board.status(number)
        return None if seen is None else seen[1]

    def wait_for_status(self, number: int, what: str, seconds: float = 60, **wanted: Any) -> None:
        """Wait until the indexer shows these values."""

        def shown() -> bool:
            status = self.status(number)
            return status is not None and all(getattr(status, k) == v for k, v in wanted.items())

        wait_for(what, shown, seconds, lambda: self.status(number))

    def _beat(self) -> None:
        while not self._done.wait(BEAT_S):
            numbers = list(self._workers)
            statuses = [s for s in map(self.status, numbers) if s is not None]
            try:
                answer = self._client.heartbeat(HeartbeatRequest(indexers=statuses, slots=len(numbers)))
                self._board.note_store(True, answer.start_again)
                for number in numbers if answer.directive != "continue" else ():
                    self._board.set_directive(number, answer.directive)
                self.start(*[n for n in numbers if self._died(n)])
            except TaskOver:
                return
            except ClientError:
                self._board.note_store(False)

    def _died(self, number: int) -> bool:
        worker = self._workers[number]
        return bool(worker.process.exitcode) and not worker.killed

    def close(self) -> None:
        """Kill what still runs; the task ends. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self.give_way()
        try:
            self._client.end(EndRequest())
        except ClientError:
            pass  # it has ended
        self._client.close()

    def leave_nothing_to_do(self) -> None:
        """For a test that is over: nobody asks for its topic, nor looks for holes, every few seconds till the end."""
        self._house.sql("UPDATE tasks_task SET supervisor_id = %s WHERE id = %s RETURNING 1", self._supervisor, self.id)
        if self._house.sql(_LIVES, self._supervisor):
            self._house.api("POST", f"/druid/indexer/v1/supervisor/{self._supervisor}/terminate")

    def give_way(self) -> None:
        """Kill all at once, driver and heartbeats too, as SIGKILL for the application would."""
        self._done.set()
        self._beats.join(20)
        self.kill(*self._workers)
