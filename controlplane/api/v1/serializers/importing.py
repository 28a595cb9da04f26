"""The import of a Druid cluster's supervisors: Druid's list, and the result for each."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.base import FaultSerializer, QuerySerializer
from controlplane.api.v1.serializers.supervisors import DiffLineSerializer
from controlplane.loading import druid_import


class ImportQuery(QuerySerializer):
    dry_run = serializers.BooleanField(
        default=True, help_text="If true, nothing is created or changed. If false, each supervisor is."
    )
    suspended = serializers.BooleanField(
        default=True,
        help_text="If true, new supervisors start suspended. If false, they have the state that they have in Druid.",
    )
    connection = serializers.CharField(
        required=False,
        max_length=63,
        help_text="A connection of the team. It replaces the connection properties of every imported spec.",
    )


class ListedSerializer(serializers.Serializer[Any]):
    """One supervisor of Druid's answer. Other fields of it are ignored."""

    id = serializers.CharField()
    spec = serializers.DictField(help_text="The supervisor's spec in Druid's format.")


class FoundFaultSerializer(FaultSerializer):
    detail = serializers.CharField(source="message")


class ImportVerdictSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    verdict = serializers.ChoiceField(
        druid_import.VERDICTS, help_text="The result. `left` means that time ran out before it: send it again."
    )
    applied = serializers.BooleanField(help_text="Whether this request created or changed the supervisor.")
    suspended = serializers.BooleanField(
        allow_null=True, help_text="Whether the supervisor is suspended after the import. Null if it does not exist."
    )
    detail = serializers.CharField(help_text="Why the supervisor was refused or left. Else empty.")
    errors = FoundFaultSerializer(  # type: ignore[assignment]  # the stubs know Serializer.errors only
        many=True, help_text="All errors of the spec, each with a pointer into the list."
    )
    diff = DiffLineSerializer(many=True, help_text="Differences from the current spec. Empty for a new supervisor.")
    without_effect = serializers.ListField(
        child=serializers.CharField(),
        help_text="Fields of the spec that have no effect in Headgate, each with the reason.",
    )
    topic = serializers.CharField()
    starts_at = serializers.ChoiceField(
        ("earliest", "latest", ""),
        help_text="Where a new supervisor starts to read. Empty for a supervisor that exists.",
    )
    bootstrap_servers = serializers.CharField(
        help_text="Bootstrap servers of the spec's own properties. Empty if it names a connection."
    )
    security_protocol = serializers.CharField()
    connection = serializers.CharField(help_text="The connection that the spec names. Empty if it names none.")
    connections = serializers.ListField(
        child=serializers.CharField(), help_text="The team's connections that have the same bootstrap servers."
    )
