"""Settings, URLs, Celery and ASGI of the control plane."""

from controlplane.common.shared_values import share_values

share_values()
from controlplane.config.celery import app as celery_app  # noqa: E402  # it imports prometheus_client

celery = celery_app
__all__ = ["celery", "celery_app"]
