"""Django's description of this app."""

from django.apps import AppConfig


class Config(AppConfig):
    name = "controlplane.datasources"
    label = "datasources"

    def ready(self) -> None:
        """Who may look at a topic's records is told to those who read one."""
        from controlplane.datasources import masking  # noqa: F401  # not at the top: it needs the models
