"""Where applications can't outlive the worker, as in a container, its end is theirs: HEADGATE_WORKER_STOPS_TASKS."""

from __future__ import annotations

import logging
from typing import Any

from celery.signals import worker_shutdown, worker_shutting_down
from django.conf import settings

from controlplane.common import applications

logger = logging.getLogger(__name__)


@worker_shutting_down.connect
def ask_tasks_to_end(**_: Any) -> None:
    """At the worker's SIGTERM, while its own jobs end: applications take longer."""
    if settings.WORKER_STOPS_TASKS:
        applications.terminate_applications(settings.TASK_DIR)


@worker_shutdown.connect
def stop_tasks(**_: Any) -> None:
    """Now nobody starts another one: wait for all."""
    if settings.WORKER_STOPS_TASKS:
        for task in applications.stop_applications(settings.TASK_DIR, settings.STOP_TIMEOUT):
            logger.info("stopped the application of task %s", task)
