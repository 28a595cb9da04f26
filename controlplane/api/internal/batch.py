"""What a batch task's driver says and hears: see ``ingestion.specs.batch_protocol`` for the messages."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from controlplane.api.internal.door import for_task, message, read
from controlplane.common.errors import Conflict
from controlplane.compaction import reindexing
from controlplane.tasks import batches
from controlplane.tasks.models import Task
from controlplane.tasks.plausible import check_files
from ingestion.specs.batch_protocol import BatchPublishRequest


@for_task("POST")
def start(request: HttpRequest, task_id: str) -> HttpResponse:
    """A driver starts: what it is to do; older attempts are fenced from here on."""
    task = _batch(task_id)
    return message(reindexing.start(task))


@for_task("POST")
def publish(request: HttpRequest, task_id: str) -> HttpResponse:
    """All that the task has written: 200, or 409 with a refusal. The task has ended then, and its token with it."""
    asked = read(request, BatchPublishRequest)
    check_files(asked.segments)
    return message(batches.publish(_batch(task_id), asked))


def _batch(task_id: str) -> Task:
    task = Task.objects.select_related("datasource").get(pk=task_id)
    if not task.is_batch:
        raise Conflict(f"Task {task_id} is no batch task.")
    return task
