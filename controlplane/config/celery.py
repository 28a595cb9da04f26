"""The Celery application. Tasks are short and idempotent; none waits for Spark."""

import gc
import logging
import os
from typing import Any

from celery import Celery, Task
from celery.signals import (
    after_setup_logger,
    beat_init,
    task_postrun,
    task_prerun,
    worker_init,
    worker_process_init,
)
from django.db import close_old_connections, connection

from controlplane.common.log_repeats import Repeats
from controlplane.config import job_measures, metrics_port  # noqa: F401  # they listen to Celery's signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.config.settings")

app = Celery("headgate")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(related_name="celery_tasks")

CONNECTION_S = 600


@worker_init.connect
def keep_what_is_loaded(**_: Any) -> None:
    """No collection goes through it again, and children share its memory."""
    gc.collect()
    gc.freeze()


@worker_process_init.connect
def keep_connection(**_: Any) -> None:
    """A process does one job at a time: it has a connection of its own instead of a pool, and keeps it over its jobs.

    To connect anew costs several times what most jobs do.
    """
    database = connection.settings_dict
    database["OPTIONS"].pop("pool", None)
    database.update(CONN_MAX_AGE=CONNECTION_S, CONN_HEALTH_CHECKS=True)


@task_prerun.connect
@task_postrun.connect
def close_stale_connection(task: Task, **_: Any) -> None:
    """One that was cut is closed, and a job's first query connects anew."""
    if not task.request.is_eager:  # which is called within somebody's transaction
        close_old_connections()


@after_setup_logger.connect
def limit_repeats(logger: logging.Logger, **_: Any) -> None:
    """Celery's own handlers know nothing of the settings' filters; what runs every two seconds fails as often."""
    for handler in logger.handlers:
        handler.addFilter(Repeats())


@after_setup_logger.connect
def leave_out_each_job(**_: Any) -> None:
    """Celery logs two lines per job, several times a second. They hide the line of a job that failed."""
    for name in ("celery.worker.strategy", "celery.app.trace"):  # that it came, and that it succeeded
        logging.getLogger(name).setLevel(logging.WARNING)


@beat_init.connect
def leave_out_each_message(**_: Any) -> None:
    """Beat has said that it starts; what it sends is counted (``job_measures``)."""
    logging.getLogger("celery.beat").setLevel(logging.WARNING)
