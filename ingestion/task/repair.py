"""The repair job: reads holes of a share group's settled ranges with an ordinary consumer and settles them.

A plain process, without Spark: it reads little. It speaks to the control plane as any application does.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

from ingestion.client import ClientError, HttpControlPlane, TaskOver
from ingestion.segments import DeepStorageError, open_deep_storage
from ingestion.sources import SourceProblem
from ingestion.sources.repair import RepairSource
from ingestion.sources.topic import TopicWatch, admissible
from ingestion.specs.protocol import Assignment, EndRequest, HeartbeatRequest
from ingestion.task.control import Control
from ingestion.task.errors import Fenced, StorageRefused
from ingestion.task.indexer import Indexer, Surroundings
from ingestion.task.log import configure, logger_for
from ingestion.task.scratch import scratch_folder

BEAT_S = 1.0


def main() -> int:
    """Exit code 0 when every hole was looked into."""
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
        _repair(client.assignment(), client, control)
    except (Fenced, TaskOver, SourceProblem, ClientError, StorageRefused, DeepStorageError) as problem:
        error = str(problem) or type(problem).__name__
        log.error("the repair failed", reason=error)
    done.set()
    beating.join(5)
    try:
        client.end(EndRequest(indexers=[control.status], error=error))
    except ClientError as problem:
        log.error("the end was not heard", reason=str(problem))
    return 1 if error else 0


def _repair(assignment: Assignment, client: HttpControlPlane, control: Control) -> None:
    topic = assignment.spec.ioConfig.topic
    properties, policy = assignment.consumer_properties, assignment.address_policy
    with scratch_folder() as scratch:
        surroundings = Surroundings(
            client=client,
            topic=TopicWatch(properties, topic, policy),
            make_source=lambda _: RepairSource(
                admissible(properties, policy), topic, assignment.ranges, lambda: control.directive != "continue"
            ),
            storage=open_deep_storage(assignment.deep_storage),
            scratch=scratch,
            host=socket.gethostname(),
        )
        Indexer(assignment, control, surroundings).run()


def _beat(client: HttpControlPlane, control: Control, done: threading.Event) -> None:
    while not done.wait(BEAT_S):
        try:
            answer = client.heartbeat(HeartbeatRequest(indexers=[control.status], slots=1))
            control.tell(answer.directive)
        except TaskOver:
            control.tell("stop", store_commits=False)
        except ClientError:
            pass  # the breaker waits for a heartbeat that is answered


if __name__ == "__main__":
    sys.exit(main())
