"""Settings, URLs, Celery and ASGI of the control plane."""

from controlplane.config.celery import app as celery_app

celery = celery_app
__all__ = ["celery", "celery_app"]
