"""Django's description of this app."""

from django.apps import AppConfig

from controlplane.tasks import stop_with_worker  # noqa: F401  Celery's signals find their receivers


class Config(AppConfig):
    name = "controlplane.tasks"
    label = "tasks"

    def ready(self) -> None:
        """The worker's threads begin with its signals."""
        from controlplane.tasks import host_agent  # noqa: F401  # not at the top: it needs the models
