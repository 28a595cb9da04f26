"""A task that is one plain process, without Spark: repairs and replays. It speaks to the control plane as any does."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from ingestion.client import ClientError, HttpControlPlane, TaskOver
from ingestion.decode import TooSlow, UnusableSchema
from ingestion.segments import DeepStorageError
from ingestion.sources import SourceProblem
from ingestion.specs.protocol import Assignment, EndRequest, HeartbeatRequest
from ingestion.task.control import Control
from ingestion.task.errors import Fenced, StorageRefused
from ingestion.task.log import configure, logger_for

BEAT_S = 1.0
Work = Callable[[Assignment, HttpControlPlane, Control], None]
_FAILURES = (
    Fenced,
    TaskOver,
    SourceProblem,
    ClientError,
    StorageRefused,
    DeepStorageError,
    UnusableSchema,
    TooSlow,
)


def run_alone(work: Work) -> int:
    """Do the work of the task that the environment names; returns the exit code, 0 when it did what it was to."""
    configure()
    task_id, token, url = (os.environ[n] for n in ("HEADGATE_TASK_ID", "HEADGATE_TASK_TOKEN", "HEADGATE_URL"))
    client = HttpControlPlane(url, task_id, token)
    log = logger_for(task=task_id)
    control = Control(0, os.getpid())
    done = threading.Event()
    beating = threading.Thread(target=_beat, args=(client, control, done), daemon=True)
    beating.start()
    error = ""
    try:
        work(client.assignment(), client, control)
    except _FAILURES as problem:
        error = str(problem) or type(problem).__name__
        log.error("the task failed", reason=error)
    done.set()
    beating.join(5)
    try:
        client.end(EndRequest(indexers=[control.status], error=error))
    except ClientError as problem:
        log.error("the end was not heard", reason=str(problem))
    return 1 if error else 0


def _beat(client: HttpControlPlane, control: Control, done: threading.Event) -> None:
    while not done.wait(BEAT_S):
        try:
            answer = client.heartbeat(HeartbeatRequest(indexers=[control.status], slots=1))
            control.tell(answer.directive)
        except TaskOver:
            control.tell("stop", store_commits=False)
        except ClientError:
            pass  # the breaker waits for a heartbeat that is answered
