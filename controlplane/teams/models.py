"""Who there is and what they may do."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.core.validators import RegexValidator
from django.db import models
from knox.models import AbstractAuthToken

NAME = RegexValidator(r"^[a-z0-9][a-z0-9_-]{0,62}\Z", "Use lower-case letters, digits, '-' and '_'.")


class User(AbstractUser):  # type: ignore[django-manager-missing]  # knox names its relation dynamically
    """A person or service account. ``is_superuser`` is the site's administrator."""


class Role(models.TextChoices):
    """In rising order: each may do what those before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class Team(models.Model):
    """Owns datasources; everything below a datasource is visible to its members only."""

    name = models.CharField(max_length=63, unique=True, validators=[NAME])
    created_at = models.DateTimeField(auto_now_add=True)
    members = models.ManyToManyField(User, through="Membership", related_name="teams")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A user's role in a team; at most one each."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "team"], name="one_role_per_team")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.team}"


class ApiToken(AbstractAuthToken):
    """A bearer token; only its hash is kept."""

    name = models.CharField(max_length=100, blank=True)


class AuditEntry(models.Model):
    """Who did what to what, and when. Rows are added and never changed: a trigger of the database refuses it.

    Names stand as text, so that an entry outlives what it speaks of. ``detail`` holds no secret and no payload.
    ``username`` is empty for what Headgate did by itself; ``address``, the client's, is None where no request asked.
    """

    at = models.DateTimeField(auto_now_add=True)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="audit_entries")
    username = models.CharField(max_length=150, blank=True)
    address = models.GenericIPAddressField(null=True)
    action = models.CharField(max_length=40)
    target = models.CharField(max_length=20)
    target_id = models.CharField(max_length=300)
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["team", "-id"], name="audit_by_team")]
