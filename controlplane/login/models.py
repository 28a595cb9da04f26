"""Sessions that know whose they are, and what a provider's groups have given."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models

from controlplane.teams.models import Membership, User


class Session(AbstractBaseSession):
    """Django's, with whose it is and where it came from; ``user`` is None until somebody has logged in."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="sessions")
    created_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField()  # to within ``sessions.SEEN_EVERY``
    address = models.GenericIPAddressField(null=True)
    browser = models.CharField(max_length=300, blank=True)

    class Meta(AbstractBaseSession.Meta):
        db_table = "login_session"

    @classmethod
    def get_session_store_class(cls) -> Any:
        return import_module(settings.SESSION_ENGINE).SessionStore


class Grant(models.Model):
    """What a person has because of the provider's groups alone: a membership, or without one the whole site.

    Whoever takes a membership away by hand takes this row with it, so that one given by hand later is not the groups'.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="grants")
    membership = models.OneToOneField(Membership, on_delete=models.CASCADE, null=True, related_name="grant")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user"], condition=models.Q(membership__isnull=True), name="one_grant_of_the_site"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.membership or 'the site'}"
