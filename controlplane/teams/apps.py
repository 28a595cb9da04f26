"""Django's description of this app: the first of ours, so it sets up what all of them use."""

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import pre_migrate

from controlplane.common.database import load_times_faster, refuse_shared_sessions


class Config(AppConfig):
    name = "controlplane.teams"
    label = "teams"

    def ready(self) -> None:
        connection_created.connect(load_times_faster)
        pre_migrate.connect(refuse_shared_sessions, sender=self)
