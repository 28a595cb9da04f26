"""Named Kafka clusters and schema registries, each a team's own."""

from __future__ import annotations

from typing import Any

from django.db import models

from controlplane.teams.models import Team, User
from controlplane.teams.permissions import visible
from ingestion.specs.inputs.connection import Kind


class ConnectionQuerySet(models.QuerySet["Connection"]):
    def visible_to(self, user: User) -> ConnectionQuerySet:
        """Those of the user's teams."""
        return self.filter(visible(user, "team"))


class Connection(models.Model):
    """A cluster or a registry under a name that the team's specs may use in place of properties of their own."""

    class Kinds(models.TextChoices):
        KAFKA = Kind.KAFKA.value, "Kafka"
        SCHEMA_REGISTRY = Kind.SCHEMA_REGISTRY.value, "Schema registry"

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="connections")
    name = models.CharField(max_length=63)
    kind = models.CharField(max_length=20, choices=Kinds.choices)
    description = models.CharField(max_length=500, blank=True)
    properties = models.JSONField()  # without secrets, as ``ingestion.specs.inputs.connection`` reads them
    secrets = models.TextField(blank=True)  # sealed
    secret_names = models.JSONField(default=list)  # which there are
    version = models.IntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    changed_at = models.DateTimeField(auto_now=True)
    changed_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")

    objects = ConnectionQuerySet.as_manager()

    class Meta:
        ordering = ["team__name", "name"]
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="one_connection_per_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_kafka(self) -> bool:
        return self.kind == self.Kinds.KAFKA

    @property
    def typed_kind(self) -> Kind:
        return Kind(self.kind)

    @property
    def addresses(self) -> list[str]:
        """Where it is, as it was written."""
        given: dict[str, Any] = self.properties
        if self.is_kafka:
            return [part.strip() for part in str(given.get("bootstrap.servers", "")).split(",") if part.strip()]
        return list(given.get("urls") or [given.get("url", "")])


class ConnectionRule(models.Model):
    """What a team's specs may connect to; a team without a row may all."""

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="connection_rule")
    own_properties = models.BooleanField(default=True)  # whether a spec may say itself where and how it connects
