"""Unused segments, and why they are unused."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.base import BodySerializer
from controlplane.api.v1.serializers.datasources import SegmentSerializer
from controlplane.segments.killing import deletion_time


class MarkRequest(BodySerializer):
    """Exactly one of `interval`, `segment_ids` and `everything`."""

    interval = serializers.CharField(
        required=False, max_length=100, help_text="All segments within this interval, such as 2025-06-01/2025-07-01."
    )
    versions = serializers.ListField(
        child=serializers.CharField(max_length=100),
        required=False,
        max_length=1000,
        help_text="With an interval: only segments of these versions.",
    )
    segment_ids = serializers.ListField(
        child=serializers.CharField(max_length=400),
        required=False,
        help_text="Ids of segments, or identifiers in Druid's format.",
    )
    everything = serializers.BooleanField(required=False, help_text="True: all segments of the datasource.")


class KillRequest(MarkRequest):
    """The unused segments of one of `interval`, `segment_ids` and `everything`."""

    dry_run = serializers.BooleanField(default=False)


class DeleteRequest(BodySerializer):
    name = serializers.CharField(max_length=200, help_text="The datasource's name, to confirm the deletion.")


class MarkedSerializer(serializers.Serializer[Any]):
    segments = serializers.IntegerField()
    rows = serializers.IntegerField()
    size_bytes = serializers.IntegerField()


class RestoredSerializer(serializers.Serializer[Any]):
    segments = serializers.IntegerField(source="amount.segments")
    rows = serializers.IntegerField(source="amount.rows")
    size_bytes = serializers.IntegerField(source="amount.size_bytes")
    passed_over = serializers.DictField(
        child=serializers.IntegerField(), help_text="Number of segments that stay unused, by reason."
    )


class UnusedSegmentSerializer(SegmentSerializer):
    unused_at = serializers.DateTimeField()
    goes_at = serializers.SerializerMethodField(help_text="The earliest time at which its file is deleted.")
    replaced_by = serializers.UUIDField(
        allow_null=True,
        help_text="The id of the replacement whose segments contain its rows. Null if it was not replaced.",
    )
    removed = serializers.SerializerMethodField(
        help_text="Who marked the segment unused, and why. Empty if it was replaced."
    )

    @extend_schema_field(serializers.DateTimeField())
    def get_goes_at(self, segment: Any) -> Any:
        at = deletion_time(segment)
        return None if at is None else serializers.DateTimeField().to_representation(at)

    def get_removed(self, segment: Any) -> str:
        return "" if segment.removal is None else segment.removal.sentence


class RemovalSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    by = serializers.CharField(help_text="The user or the rule that marked the segments unused.")
    what = serializers.CharField()
    segments = serializers.IntegerField(help_text="Number of segments that were marked unused. Some may be used again.")
    rows = serializers.IntegerField()
    size_bytes = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class RulesRequest(BodySerializer):
    """Load and drop rules in Druid's format. The first matching rule applies."""

    rules = serializers.ListField(child=serializers.JSONField(), max_length=100)


class RulesSerializer(serializers.Serializer[Any]):
    rules = serializers.ListField(child=serializers.DictField())
    site = serializers.ListField(
        child=serializers.DictField(), help_text="The site's rules. They apply after the datasource's own rules."
    )


class GoingSerializer(serializers.Serializer[Any]):
    segments = serializers.IntegerField(source="amount.segments")
    rows = serializers.IntegerField(source="amount.rows")
    size_bytes = serializers.IntegerField(source="amount.size_bytes")
    intervals = serializers.IntegerField()
    oldest = serializers.DateTimeField(
        allow_null=True, help_text="Start of the earliest interval. Null if there is none."
    )
    newest = serializers.DateTimeField(allow_null=True, help_text="End of the latest interval. Null if there is none.")
