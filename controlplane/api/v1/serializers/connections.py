"""Named connections."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.base import BodySerializer
from controlplane.api.pagination import SearchQuery
from controlplane.connections.models import Connection

KINDS = Connection.Kinds.choices
USERS = [("supervisor", "supervisor"), ("task", "task")]
PROPERTIES = (
    "For Kafka: the properties of `ioConfig.consumerProperties`. For a schema registry: `url` or `urls`, `config` and "
    "`headers` of a decoder of the type `schema_registry`."
)


class ConnectionsQuery(SearchQuery):
    kind = serializers.ChoiceField(KINDS, required=False)


class ConnectionSerializer(serializers.Serializer[Any]):
    """A connection without its secrets."""

    team = serializers.CharField(source="team.name")
    name = serializers.CharField()
    kind = serializers.ChoiceField(KINDS)
    description = serializers.CharField()
    addresses = serializers.ListField(child=serializers.CharField())
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(source="created_by.username", default=None, allow_null=True)
    changed_at = serializers.DateTimeField()
    changed_by = serializers.CharField(source="changed_by.username", default=None, allow_null=True)


class ConnectionDetailSerializer(ConnectionSerializer):
    properties = serializers.JSONField(help_text=f"{PROPERTIES} Without secrets.")
    secret_names = serializers.ListField(child=serializers.CharField(), help_text="Names of the stored secrets.")


class ConnectionBody(BodySerializer):
    name = serializers.CharField(max_length=63)
    kind = serializers.ChoiceField(KINDS)
    description = serializers.CharField(required=False, allow_blank=True, max_length=500, default="")
    properties = serializers.JSONField(help_text=PROPERTIES)


class ChangeBody(BodySerializer):
    description = serializers.CharField(required=False, allow_blank=True, max_length=500)
    properties = serializers.JSONField(
        help_text=f"{PROPERTIES} Secrets that are left out keep their values if addresses and security settings stay "
        "the same."
    )


class UseSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(USERS)
    id = serializers.CharField()
    datasource = serializers.CharField()
    topic = serializers.CharField()
    suspended = serializers.BooleanField()


class UsesSerializer(serializers.Serializer[Any]):
    uses = UseSerializer(many=True)


class RestartedSerializer(serializers.Serializer[Any]):
    supervisors = serializers.ListField(
        child=serializers.CharField(), help_text="Ids of the supervisors that now hand off."
    )


class ConnectionRuleBody(BodySerializer):
    own_properties = serializers.BooleanField(
        help_text="Whether the team's specs may contain connection properties. If false, they must name a connection."
    )


class RuleSerializer(serializers.Serializer[Any]):
    own_properties = serializers.BooleanField()
