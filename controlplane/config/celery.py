"""The Celery application. Tasks are short and idempotent; none waits for Spark."""

import logging
import os
from typing import Any

from celery import Celery
from celery.signals import after_setup_logger

from controlplane.common.repeats import Repeats

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.config.settings")

app = Celery("headgate")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(related_name="celery_tasks")


@after_setup_logger.connect
def hold_repeats_back(logger: logging.Logger, **_: Any) -> None:
    """Celery's own handlers know nothing of the settings' filters; what runs every two seconds fails as often."""
    for handler in logger.handlers:
        handler.addFilter(Repeats())
