"""The readers of one query: started, answered, started again when they die, and stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from headgate.errors import DataLoss, Fenced, HeadgateError, ReaderFailed
from headgate.sharegroup.buffer_store import BufferFile, Store
from headgate.sharegroup.ledger import Ledger, Part
from headgate.sharegroup.reader import PAUSE, POLL, STOP, Counts, Orders, Task, run_all
from headgate.sharegroup.topics import TopicIds

STOP_S = 15.0
RESTART_S = 1.0
MAX_DEATHS = 20  # of processes in a row that stored nothing, before the query fails


@dataclass
class Totals:
    """Of all readers since the query started."""

    counts: Counts
    restarts: int = 0
    ready: float = 0.0  # when a reader first began to poll, by time.monotonic; 0: none has
    last_poll: float = 0.0  # when records came last
    first_record_ms: int | None = None  # when the first came, in milliseconds since 1970
    with_records: set[int] = field(default_factory=set)  # readers that were given some


class Team:
    """``processes`` 0: the readers are threads of this process."""

    def __init__(
        self, store: Store, ledger: Ledger, ids: TopicIds, orders: Orders, readers: int, processes: int
    ) -> None:
        self._store, self._ledger, self._ids, self._orders = store, ledger, ids, orders
        self._sizes = [len(range(n, readers, processes or 1)) for n in range(min(processes, readers) or 1)]
        self._in_threads = processes == 0
        self.may_poll: Callable[[], bool] = lambda: True
        self.totals = Totals(Counts())
        self.failure: HeadgateError | None = None
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._state_lock = threading.Lock()
        self._process_threads = [
            threading.Thread(target=self._keep_running, args=(n,), daemon=True) for n in range(len(self._sizes))
        ]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        for thread in self._process_threads:
            thread.start()

    def stop(self) -> None:
        """They acknowledge what is stored, and leave the group."""
        self._stopping.set()
        end = time.monotonic() + STOP_S
        for thread in self._process_threads:
            thread.join(max(0.1, end - time.monotonic()))
        self._ledger.close()
        for process in list(self._processes.values()):
            process.kill()

    @property
    def alive(self) -> bool:
        """Whether a reader still works."""
        return any(thread.is_alive() for thread in self._process_threads)

    def save_state(self) -> None:
        """Have the store know what the ledger knows."""
        with self._state_lock:
            self._store.save(self._ledger.state())

    def _keep_running(self, number: int) -> None:
        """One process of readers after the other, until the query stops."""
        deaths = 0
        while not self._stopping.is_set() and self.failure is None:
            before = self.totals.counts.polls
            try:
                self._run_once(number, self._sizes[number])
            except Exception as error:
                self._fail(ReaderFailed(f"a reader can't be run: {error}"))
            if self._stopping.is_set():
                return
            deaths = deaths + 1 if self.totals.counts.polls == before else 1
            self.totals.restarts += 1
            if deaths > MAX_DEATHS:
                self._fail(
                    ReaderFailed(f"the readers' process died {deaths} times in a row; its output has the reason")
                )
            self._stopping.wait(RESTART_S)

    def _run_once(self, number: int, readers: int) -> None:
        pipes = [Pipe() for _ in range(readers)]
        ours, theirs = [p[0] for p in pipes], [p[1] for p in pipes]
        if self._in_threads:
            threading.Thread(target=run_all, args=(theirs,), daemon=True).start()
        else:
            self._processes[number] = _process(theirs)
            for link in theirs:
                link.close()
        owners = [number * 10_000 + n for n in range(readers)]
        servers = [
            threading.Thread(target=self._serve, args=pair, daemon=True) for pair in zip(owners, ours, strict=True)
        ]
        for server in servers:
            server.start()
        for server in servers:
            server.join()
        if not self._in_threads:
            process = self._processes.pop(number)
            try:
                process.wait(1.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _serve(self, owner: int, link: Connection) -> None:
        """Answer one reader until it is gone; then find out what it left behind."""
        try:
            link.send(self._orders)
            while True:
                question, *rest = link.recv()
                if question == "failed":
                    self._fail(_failure(*rest))
                    return
                if question == "stored":
                    self._on_stored(*rest)
                    continue
                answer = getattr(self, f"_on_{question}")(owner, *rest)
                link.send(answer)
        except (EOFError, OSError, InterruptedError):
            return
        except HeadgateError as error:
            self._fail(error)
        except Exception as error:
            self._fail(ReaderFailed(f"{type(error).__name__}: {error}"))
        finally:
            link.close()
            self._resolve_pending(owner)

    def _on_may(self, owner: int, counts: Counts) -> str:
        with self._lock:
            _add(self.totals.counts, counts)
            if counts.polled:
                self.totals.last_poll = time.monotonic()
                self.totals.first_record_ms = self.totals.first_record_ms or round(time.time() * 1000)
                self.totals.with_records.add(owner)
        if self._stopping.is_set() or self.failure is not None:
            return STOP
        self.totals.ready = self.totals.ready or time.monotonic()
        return POLL if self.may_poll() else PAUSE

    def _on_propose(self, owner: int, polled: list[tuple[str, int, list[tuple[int, int]]]]) -> Task:
        parts = self._parts(polled)
        if self._ledger.known(parts):
            self._await_topic_check()  # a topic that was made again begins at the same offsets
            parts = self._parts(polled)
        verdict = self._ledger.propose(owner, parts)
        if verdict.number is None:
            return Task(-1, None, {}, verdict.dropped)
        number = verdict.number
        return Task(number, self._ledger.name_of(number), self._ledger.settles(number), verdict.dropped)

    def _await_topic_check(self) -> None:
        """While Kafka is away nothing is dropped: what is held comes again when its lock has ended."""
        while not self._ids.refresh():
            if self._stopping.is_set() or self.failure is not None:
                raise InterruptedError

    def _parts(self, polled: list[tuple[str, int, list[tuple[int, int]]]]) -> list[Part]:
        return [Part(f"{self._ids.id_of(topic)}/{partition}", ranges) for topic, partition, ranges in polled]

    def _on_stored(self, number: int, rows: int, size: int) -> None:
        self._ledger.stored(BufferFile(number, self._ledger.name_of(number), rows, size))

    def _resolve_pending(self, owner: int) -> None:
        """A reader died, or gave up, between a number and its file: look whether it is there; if not, it never will be.

        That it won't is written down before anything is planned on it: a late write is then nobody's.
        """
        try:
            voids = []
            for number in self._ledger.pending_of(owner):
                stored = self._store.read_file(number)
                if stored is not None:
                    self._ledger.stored(stored[0])
                else:
                    self._ledger.void(number)
                    voids.append(number)
            if voids:
                self.save_state()
            for number in voids:
                self._ledger.forget(number)
        except Exception as error:
            self._fail(ReaderFailed(f"the buffer location can't be looked at: {error}"))

    def _fail(self, error: HeadgateError) -> None:
        self.failure = self.failure or error
        self._ledger.close()


def _failure(text: str, kind: str) -> HeadgateError:
    return Fenced(text) if kind == "ClaimLost" else DataLoss(text) if kind == "DataLoss" else ReaderFailed(text)


def _add(total: Counts, more: Counts) -> None:
    for count_field in fields(Counts):
        value = getattr(more, count_field.name)
        if count_field.name == "last":
            for key, offset in value.items():
                total.last[key] = max(offset, total.last.get(key, -1))
        elif count_field.name == "client_problem":
            total.client_problem = value or total.client_problem
        else:
            setattr(total, count_field.name, getattr(total, count_field.name) + value)


def _process(links: Sequence[Connection]) -> subprocess.Popen[bytes]:
    descriptors = [link.fileno() for link in links]
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "headgate.sharegroup.reader_process", str(os.getpid()), *map(str, descriptors)]
    return subprocess.Popen(command, pass_fds=descriptors, env=environment, stdin=subprocess.DEVNULL)
