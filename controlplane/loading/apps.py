"""Django's description of this app."""

from django.apps import AppConfig


class Config(AppConfig):
    name = "controlplane.loading"
    label = "loading"

    def ready(self) -> None:
        """Drafts follow what becomes of their supervisors' datasources."""
        from controlplane.loading import services  # noqa: F401  # not at the top: it needs the models
