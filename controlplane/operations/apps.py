"""Django's description of this app."""

from django.apps import AppConfig


class Config(AppConfig):
    name = "controlplane.operations"
    label = "operations"
