"""Django's description of this app."""

from django.apps import AppConfig


class Config(AppConfig):
    name = "controlplane.login"
    label = "login"
    default_auto_field = "django.db.models.BigAutoField"
