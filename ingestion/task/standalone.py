"""A task that is one plain process, without Spark: repairs and replays. It speaks to the control plane as any does."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from structlog.typing import FilteringBoundLogger

from ingestion.client.errors import ClientError, TaskOver, Unreachable
from ingestion.client.http import HttpControlPlane
from ingestion.errors import IngestionError
from ingestion.specs.messages.protocol import EndRequest, HeartbeatRequest
from ingestion.specs.messages.storable_text import storable_text
from ingestion.task.control import Control, stricter
from ingestion.task.log import OngoingProblem, configure, logger_for
from ingestion.task.shutdown import Ending

HEARTBEAT_S = 1.0
END_RETRY_S = 60.0  # for so long the last word is said again; then the control plane notices by itself
ERROR_LENGTH = 4000
Client = TypeVar("Client", bound=HttpControlPlane)


def run_standalone(work: Callable[[Client, Control], None], speaking: Callable[[str, str, str], Client]) -> int:
    """Do the work of the task that the environment names; returns the exit code, 0 when it did what it was to.

    ``speaking``: makes the client, of the control plane's address, the task's id and its token.
    """
    configure()
    ending = Ending.from_environment().install()
    task_id, token, url = (os.environ[n] for n in ("HEADGATE_TASK_ID", "HEADGATE_TASK_TOKEN", "HEADGATE_URL"))
    client = speaking(url, task_id, token)
    log = logger_for(task=task_id)
    control = Control(0, os.getpid())
    done = threading.Event()
    beating = threading.Thread(target=_send_heartbeats, args=(client, control, done, ending), daemon=True)
    beating.start()
    error = ""
    try:
        work(client, control)
    except IngestionError as problem:
        error = str(problem)
        log.error("the task failed", reason=error)
    except Exception as problem:  # whatever it is, the task says so: nobody would hear of it otherwise
        error = f"{type(problem).__name__}: {problem}"
        log.exception("the task failed")
    done.set()
    beating.join(5)
    message = (
        "" if ending.is_requested else storable_text(error)[:ERROR_LENGTH]
    )  # who was stopped from outside has not failed
    _report_end(
        client, EndRequest(indexers=[control.status], error=message, interrupted=ending.is_requested), ending, log
    )
    return 1 if error else 0


def _report_end(client: HttpControlPlane, request: EndRequest, ending: Ending, log: FilteringBoundLogger) -> None:
    give_up, unheard = time.monotonic() + END_RETRY_S, OngoingProblem(log, "the end was not heard")
    while time.monotonic() < give_up and not ending.is_time_up:
        try:
            client.end(request)
            return
        except Unreachable as problem:
            unheard.report_failure(str(problem))
            time.sleep(HEARTBEAT_S)
        except ClientError as problem:  # it is over already
            log.error("the end was refused", reason=str(problem))
            return


def _send_heartbeats(client: HttpControlPlane, control: Control, done: threading.Event, ending: Ending) -> None:
    while not done.wait(HEARTBEAT_S):
        try:
            answer = client.heartbeat(HeartbeatRequest(indexers=[control.status], slots=1))
            control.update(stricter(answer.directive, ending.directive))
        except TaskOver:
            control.update("stop", store_commits=False)
        except ClientError:
            control.update(ending.directive, store_commits=False)  # the breaker waits for a heartbeat that is answered
