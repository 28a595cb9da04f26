"""Django's description of this app."""

from django.apps import AppConfig


class Config(AppConfig):
    name = "controlplane.supervisors"
    label = "supervisors"

    def ready(self) -> None:
        """What holds a group of Kafka is told to those who take one, and what reads a topic to those who show it."""
        from controlplane.supervisors import group_holders, topic_readers  # noqa: F401  # not at the top: it needs the models
