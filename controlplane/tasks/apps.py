"""Django's description of this app."""

from django.apps import AppConfig


class Config(AppConfig):
    name = "controlplane.tasks"
    label = "tasks"

    def ready(self) -> None:
        """Celery's signals find their receivers."""
        from controlplane.tasks import stopping  # noqa: F401
