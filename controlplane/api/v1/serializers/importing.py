"""Supervisors of a Druid cluster: the list as Druid answers it, and what becomes of each."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.base import FaultSerializer, QuerySerializer
from controlplane.api.v1.serializers.supervisors import DiffLineSerializer
from controlplane.loading import druid_import


class ImportQuery(QuerySerializer):
    dry_run = serializers.BooleanField(
        default=True, help_text="With `false` each is created or changed; else nothing is."
    )
    suspended = serializers.BooleanField(
        default=True, help_text="New ones begin suspended. With `false` they are as in Druid."
    )
    connection = serializers.CharField(
        required=False, max_length=63, help_text="A connection of the team, in place of what each says of its cluster."
    )


class ListedSerializer(serializers.Serializer[Any]):
    """For OpenAPI only: an element of Druid's answer. What else Druid says of it is passed over."""

    id = serializers.CharField()
    spec = serializers.DictField(help_text="The supervisor's spec, as Druid shows it.")


class FoundFaultSerializer(FaultSerializer):
    detail = serializers.CharField(source="message")


class ImportVerdictSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    verdict = serializers.ChoiceField(
        druid_import.VERDICTS, help_text="`left`: there was no time for it; send it again with the rest."
    )
    applied = serializers.BooleanField(help_text="Whether it was created or changed just now.")
    suspended = serializers.BooleanField(allow_null=True, help_text="Afterwards.")
    detail = serializers.CharField(help_text="Why it was refused or left.")
    errors = FoundFaultSerializer(  # type: ignore[assignment]  # the stubs know Serializer.errors only
        many=True, help_text="Every fault, with a pointer into the list."
    )
    diff = DiffLineSerializer(many=True, help_text="From the spec that holds; empty for a new one.")
    without_effect = serializers.ListField(
        child=serializers.CharField(), help_text="What it sets that changes nothing here, with the reason."
    )
    topic = serializers.CharField()
    starts_at = serializers.ChoiceField(
        ("earliest", "latest", ""), help_text="Where a new one begins to read; empty: where it is already."
    )
    bootstrap_servers = serializers.CharField(help_text="Of its own properties; empty with a connection.")
    security_protocol = serializers.CharField()
    connection = serializers.CharField(help_text="That it names.")
    connections = serializers.ListField(
        child=serializers.CharField(), help_text="The team's that lead to the same servers."
    )
