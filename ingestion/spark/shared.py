"""An application that serves the tasks of many small topics of one team. The launcher hands them over one by one.

1. Each task is as it always is: its token, its heartbeats, its indexer with its own epochs and publishes. Only the
   processes are shared: a driver, in which each task has a thread, and a Python process for all indexers.
2. The launcher locks the record in this application's folder, makes a file in ``tasks`` and writes a line of the FIFO.
   The file goes when the task has ended. Whoever counts the files knows how many tasks there are.
3. It ends when it has had no task for a minute, and while it has the lock itself. So no order is written that nobody
   reads. Touching its record each second, it says that it takes orders.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from pyspark import SparkContext

from ingestion.client.errors import ClientError
from ingestion.client.http import HttpControlPlane
from ingestion.spark.application import Application, Slot
from ingestion.spark.index import spark_conf
from ingestion.spark.orders import Orders
from ingestion.spark.shared_worker import SharedWorker
from ingestion.spark.signals import hand_on_sigterm
from ingestion.spark.worker import IndexerEnd
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.messages.protocol import Assignment, EndRequest
from ingestion.specs.messages.spare import TASKS, SpareOrder
from ingestion.task.log import configure, logger_for
from ingestion.task.shutdown import Ending

IDLE_S = 60.0
PERIOD_S = 1.0
_END_S = 15.0


class GuestApplication(Application):
    """One task's: its indexer runs in the process that all share."""

    def __init__(
        self,
        worker: SharedWorker,
        starting: Future[SparkContext],
        client: HttpControlPlane,
        assignment: Assignment,
        url: str,
        token: str,
        ending: Ending,
    ) -> None:
        super().__init__(starting, client, _with_one_consumer(assignment), url, token, ending)
        self._worker = worker

    def run(self) -> None:
        try:
            super().run()
        finally:
            self._board.close()

    def _job(self, slot: Slot) -> IndexerEnd:
        return self._worker.run(self._worker_config(slot))

    def _waits_for_slot(self, slot: Slot) -> bool:
        return False


def _with_one_consumer(assignment: Assignment) -> Assignment:
    """Of a share group: one client reads what a small topic has."""
    spec, io_config = assignment.spec, assignment.spec.ioConfig
    if not isinstance(io_config, ShareGroupIOConfig):
        return assignment
    modest = spec.model_copy(update={"ioConfig": io_config.model_copy(update={"consumersPerIndexer": 1})})
    return assignment.model_copy(update={"spec": modest})


class Host:
    """Takes orders until there have been none for long, or a signal came; each task's thread ends by itself."""

    def __init__(self, place: Path, url: str, starting: Future[SparkContext], ending: Ending) -> None:
        self._place = place
        self._url = url
        self._starting = starting
        self._ending = ending
        self._worker = SharedWorker(starting.result())
        self._tasks: dict[str, threading.Thread] = {}

    def run(self) -> None:
        """Returns when no task is left."""
        orders, busy_at = Orders(self._place), time.monotonic()
        while True:
            for order in orders.take(PERIOD_S):
                self._begin(order)
            self._tasks = {task: thread for task, thread in self._tasks.items() if thread.is_alive()}
            if self._tasks:
                busy_at = time.monotonic()
            may_end = self._ending.is_requested or time.monotonic() - busy_at > IDLE_S
            if may_end and orders.close():
                for order in orders.take(0):
                    self._begin(order)
                if not self._tasks:
                    self._worker.close()
                    return

    def _begin(self, order: SpareOrder) -> None:
        thread = threading.Thread(target=self._serve, args=(order,), name=order.task_id, daemon=True)
        self._tasks[order.task_id] = thread
        thread.start()

    def _serve(self, order: SpareOrder) -> None:
        """One task, to its end. What fails ends it alone."""
        log = logger_for(task=order.task_id)
        client = HttpControlPlane(self._url, order.task_id, order.token)
        try:
            assignment = client.assignment()
            log.info("an application that several topics share serves the task")
            GuestApplication(
                self._worker, self._starting, client, assignment, self._url, order.token, self._ending
            ).run()
        except ClientError as error:
            log.error("the task can't be served", reason=str(error))
        except Exception as error:
            log.exception("the task failed")
            with suppress(ClientError):  # else the control plane notices its silence
                client.end(EndRequest(indexers=[], error=f"{type(error).__name__}: {error}"))
        finally:
            client.close()
            (self._place / TASKS / order.task_id).unlink(missing_ok=True)


def main() -> int:
    """Exit code 0 when it ended in order."""
    configure()
    ending = Ending.from_environment().install()
    hand_on_sigterm()
    place = Path(os.environ.pop("HEADGATE_SPARE"))
    starting: Future[SparkContext] = Future()
    starting.set_result(SparkContext.getOrCreate(spark_conf()))
    starting.result().setLogLevel("WARN")
    Host(place, os.environ["HEADGATE_URL"], starting, ending).run()
    end = threading.Timer(_END_S, os._exit, [0])  # nobody would look after one that can't stop Spark
    end.daemon = True
    end.start()
    starting.result().stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
