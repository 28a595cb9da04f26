"""One Python process of Spark's in which the indexers of many tasks run, each in a thread.

The process listens, and the driver opens a connection for each indexer: it sends what the indexer is to do, and gets
back how it ended. A connection that breaks says that the process has died, and with it all its indexers; each is then
started again by its own task's application, as after the death of a process of its own. Messages are pickled, as the
closures and results of Spark's own tasks are; both ends know a secret that each application makes for itself.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener

from pyspark import SparkContext

from ingestion.errors import IngestionError
from ingestion.spark.worker import IndexerEnd, WorkerConfig, run_indexer
from ingestion.task.decoding import take_turns
from ingestion.task.log import configure, logger_for

LOOPBACK = "127.0.0.1"
START_S = 60.0  # so long an indexer waits for the process
PAUSE_S = 1.0
_BACKLOG = 256
_CHILDREN = 2  # after the death of a process each indexer would else have a child of its own
_BROKEN = (OSError, EOFError, AuthenticationError)


class SharedWorker:
    """The driver's side: keeps one such process running until ``close``. Thread-safe."""

    def __init__(self, spark: SparkContext) -> None:
        self._spark = spark
        self._authkey = secrets.token_bytes(32)
        self._greetings = Listener((LOOPBACK, 0), authkey=self._authkey)
        self._address: tuple[str, int] | None = None
        self._line: Connection | None = None  # to the process: at its end that ends, too
        self._changed = threading.Condition()
        self._ended = False
        for target in (self._greet, self._keep):
            threading.Thread(target=target, daemon=True).start()

    def run(self, orders: WorkerConfig) -> IndexerEnd:
        """Run an indexer to its end. Raises ``ConnectionError`` when the process dies, or does not start."""
        try:
            with Client(self._worker_address(), authkey=self._authkey) as line:
                line.send(orders)
                ended: IndexerEnd = line.recv()
        except _BROKEN as error:
            raise ConnectionError(f"The process that the topics share has ended ({type(error).__name__})") from error
        return ended

    def close(self) -> None:
        """Start no other one. The present one ends with the driver's connections, so with Spark."""
        self._ended = True

    def _worker_address(self) -> tuple[str, int]:
        with self._changed:
            self._changed.wait_for(lambda: self._address is not None, START_S)
            if self._address is None:
                raise ConnectionError(f"no process within {START_S:.0f} s")
            return self._address

    def _greet(self) -> None:
        """Learn each process's address."""
        while True:
            try:
                line = self._greetings.accept()
                host, port = json.loads(line.recv_bytes())
            except _BROKEN:
                continue
            with self._changed:
                self._line, self._address = line, (host, port)
                self._changed.notify_all()

    def _keep(self) -> None:
        log = logger_for()
        greetings = (LOOPBACK, int(self._greetings.address[1]))
        while not self._ended:
            try:
                self._spark.parallelize([0], 1).mapPartitions(_server(greetings, self._authkey)).collect()
                reason = "it has ended"
            except Exception as error:  # py4j wraps what the job threw
                reason = str(error).splitlines()[0][:1000] if str(error) else type(error).__name__
            with self._changed:
                self._address = None
            if not self._ended:
                log.warning("the process that the topics share starts again", reason=reason)
                time.sleep(PAUSE_S)


def _server(driver: tuple[str, int], authkey: bytes) -> Callable[[Iterable[int]], Iterable[int]]:
    def run(_: Iterable[int]) -> Iterator[int]:
        serve(driver, authkey)
        return iter(())

    return run


def serve(driver: tuple[str, int], authkey: bytes) -> None:
    """The process's side: run what is asked for, until the driver is gone."""
    configure()
    take_turns(_CHILDREN)
    listener = Listener((LOOPBACK, 0), backlog=_BACKLOG, authkey=authkey)
    threading.Thread(target=_accept, args=(listener,), daemon=True).start()
    with Client(driver, authkey=authkey) as line, suppress(EOFError, OSError):
        line.send_bytes(json.dumps(listener.address).encode())
        line.recv_bytes()


def _accept(listener: Listener) -> None:
    while True:
        try:
            line = listener.accept()
        except _BROKEN:
            continue
        threading.Thread(target=_run, args=(line,), daemon=True).start()


def _run(line: Connection) -> None:
    """One indexer: what it throws ends its own task's attempt, and nobody else's."""
    with line, suppress(EOFError, OSError):
        orders = line.recv()
        try:
            ended = run_indexer(orders)
        except IngestionError as error:
            logger_for(indexer=orders.number).warning("an indexer failed", exc_info=True)
            ended = IndexerEnd.of(error)
        except Exception as error:
            logger_for(indexer=orders.number).error("an indexer failed", exc_info=True)
            ended = IndexerEnd.of_crash(f"{type(error).__name__}: {error}")
        line.send(ended)
