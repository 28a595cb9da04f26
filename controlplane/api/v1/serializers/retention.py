"""Segments that are not in use, and what took them out of it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.base import BodySerializer
from controlplane.api.v1.serializers.datasources import SegmentSerializer
from controlplane.segments.killing import deletion_time


class MarkRequest(BodySerializer):
    """One of `interval`, `segment_ids` and `everything`."""

    interval = serializers.CharField(
        required=False, max_length=100, help_text="Segments whose interval lies within it: 2025-06-01/2025-07-01."
    )
    versions = serializers.ListField(
        child=serializers.CharField(max_length=100),
        required=False,
        max_length=1000,
        help_text="With an interval: of these versions alone.",
    )
    segment_ids = serializers.ListField(
        child=serializers.CharField(max_length=400), required=False, help_text="Ids, or identifiers in Druid's form."
    )
    everything = serializers.BooleanField(required=False, help_text="The whole datasource.")


class KillRequest(MarkRequest):
    """What is unused of one of `interval`, `segment_ids` and `everything`."""

    dry_run = serializers.BooleanField(default=False)


class DeleteRequest(BodySerializer):
    name = serializers.CharField(max_length=200, help_text="The datasource's, once more.")


class MarkedSerializer(serializers.Serializer[Any]):
    segments = serializers.IntegerField()
    rows = serializers.IntegerField()
    size_bytes = serializers.IntegerField()


class RestoredSerializer(serializers.Serializer[Any]):
    segments = serializers.IntegerField(source="amount.segments")
    rows = serializers.IntegerField(source="amount.rows")
    size_bytes = serializers.IntegerField(source="amount.size_bytes")
    passed_over = serializers.DictField(child=serializers.IntegerField(), help_text="By reason, how many segments.")


class UnusedSegmentSerializer(SegmentSerializer):
    unused_at = serializers.DateTimeField()
    goes_at = serializers.SerializerMethodField(help_text="When its file is deleted, at the earliest.")
    replaced_by = serializers.UUIDField(allow_null=True, help_text="The replacement whose segments hold its rows.")
    removed = serializers.SerializerMethodField(help_text="By whom and why; empty where it was replaced.")

    @extend_schema_field(serializers.DateTimeField())
    def get_goes_at(self, segment: Any) -> Any:
        at = deletion_time(segment)
        return None if at is None else serializers.DateTimeField().to_representation(at)

    def get_removed(self, segment: Any) -> str:
        return "" if segment.removal is None else segment.removal.sentence


class RemovalSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    by = serializers.CharField(help_text="A user, or a rule.")
    what = serializers.CharField()
    segments = serializers.IntegerField(help_text="That it took out of use; some may be in use again.")
    rows = serializers.IntegerField()
    size_bytes = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class RulesRequest(BodySerializer):
    """Load and drop rules in Druid's form; the first that applies decides."""

    rules = serializers.ListField(child=serializers.JSONField(), max_length=100)


class RulesSerializer(serializers.Serializer[Any]):
    rules = serializers.ListField(child=serializers.DictField())
    site = serializers.ListField(child=serializers.DictField(), help_text="The site's, asked after its own.")


class GoingSerializer(serializers.Serializer[Any]):
    segments = serializers.IntegerField(source="amount.segments")
    rows = serializers.IntegerField(source="amount.rows")
    size_bytes = serializers.IntegerField(source="amount.size_bytes")
    intervals = serializers.IntegerField()
    oldest = serializers.DateTimeField(allow_null=True, help_text="Where the first of the intervals begins.")
    newest = serializers.DateTimeField(allow_null=True, help_text="Where the last of them ends.")
