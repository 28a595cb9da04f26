"""Settings, URLs, Celery and ASGI of the control plane."""

import atexit
import gc

from controlplane.common.shared_values import share_values

# What is loaded stays: to look for garbage among it after each 700 objects is a tenth of what a process does to start.
gc.set_threshold(50_000)
# Nor does the interpreter look among it when the process ends: that took two seconds in beat.
atexit.register(gc.freeze)
share_values()
from controlplane.config.celery import app as celery_app  # noqa: E402  # it imports prometheus_client

celery = celery_app
__all__ = ["celery", "celery_app"]
