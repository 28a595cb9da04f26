"""How long background jobs take and how they end, for Prometheus. Celery's signals call what is here."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from celery import Task
from celery.signals import after_task_publish, task_postrun, task_prerun

from controlplane.common.measures import CELERY_TASKS, CELERY_TASKS_SENT

_began: dict[str, float] = {}  # by the message's id: a process does one job at a time, and jobs within it in tests
_OUTCOMES = {"SUCCESS": "ok", "RETRY": "retried", "REVOKED": "revoked"}


@task_prerun.connect
def note_begin(task_id: str, **_: Any) -> None:
    _began[task_id] = perf_counter()


@task_postrun.connect
def count_job(task_id: str, task: Task, state: str | None = None, **_: Any) -> None:
    began = _began.pop(task_id, None)
    if began is not None:
        CELERY_TASKS.labels(task.name, _OUTCOMES.get(state or "", "failed")).observe(perf_counter() - began)


@after_task_publish.connect
def count_sent(sender: str, **_: Any) -> None:
    CELERY_TASKS_SENT.labels(sender).inc()
