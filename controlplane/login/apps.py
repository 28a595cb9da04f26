"""Django's description of this app."""

from django.apps import AppConfig
from django.contrib.auth.signals import user_login_failed


class Config(AppConfig):
    name = "controlplane.login"
    label = "login"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Failed logins go into the audit trail, wherever somebody tried."""
        from controlplane.login import login_audit  # not at the top: it needs the models

        user_login_failed.connect(login_audit.record_failed_login, dispatch_uid="audit trail")
