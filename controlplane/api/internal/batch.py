"""The endpoints of a batch task's driver: see ``ingestion.specs.messages.batch_protocol`` for the messages."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from controlplane.api.internal.base import for_task, message, outcome_of, parse_body
from controlplane.common.errors import Conflict
from controlplane.common.measures import PUBLISHES, timed
from controlplane.compaction import reindexing
from controlplane.tasks import batches, file_replays
from controlplane.tasks.models import Task
from controlplane.tasks.publish_checks import check_files
from ingestion.specs.messages.batch_protocol import BatchPublishRequest
from ingestion.specs.messages.replays import KeptPublishRequest


@for_task("POST")
def start(request: HttpRequest, task_id: str) -> HttpResponse:
    """A batch task's driver or a replay of files' records starts: answers its work, and fences older attempts."""
    task = _task(task_id)
    return message(file_replays.start(task) if task.replays_files else reindexing.start(_batch(task)))


@for_task("POST")
def publish(request: HttpRequest, task_id: str) -> HttpResponse:
    """Publish everything that the task wrote: 200, or 409 with a refusal. This ends the task and its token."""
    body = parse_body(request, BatchPublishRequest)
    with timed(PUBLISHES, "batch", outcome_of):
        check_files(body.segments)
        answer = batches.publish(_batch(_task(task_id)), body)
    return message(answer)


@for_task("POST")
def publish_kept(request: HttpRequest, task_id: str) -> HttpResponse:
    """Publish the outcome of some records of files that a replay reads: 200, or 409 with a refusal."""
    body = parse_body(request, KeptPublishRequest)
    check_files(body.segments)
    task = _task(task_id)
    if not task.replays_files:
        raise Conflict(f"Task {task_id} replays no records of files.")
    return message(file_replays.publish(task, body))


def _task(task_id: str) -> Task:
    return Task.objects.select_related("datasource").get(pk=task_id)


def _batch(task: Task) -> Task:
    if not task.is_batch:
        raise Conflict(f"Task {task.pk} is no batch task.")
    return task
