"""One segment: its state, the segments before and after a merge, its records and its file."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.v1.serializers.datasources import SegmentSerializer
from controlplane.api.v1.serializers.reading import NewestRowsSerializer
from controlplane.segments.killing import deletion_time


class RelativesSerializer(serializers.Serializer[Any]):
    """The segments before or after a merge."""

    task = serializers.CharField(source="replacement.task_id", help_text="The task that merged the segments.")
    at = serializers.DateTimeField(source="replacement.created_at")
    rows_before = serializers.IntegerField(source="replacement.rows_before")
    rows_after = serializers.IntegerField(source="replacement.rows_after")
    segments = serializers.SerializerMethodField(help_text="Ids of the segments.")
    others = serializers.IntegerField(help_text="Number of further segments that are not listed.")

    def get_segments(self, family: Any) -> list[str]:
        return [str(relative.id) for relative in family.relatives]


class RecordRangeSerializer(serializers.Serializer[Any]):
    topic = serializers.CharField()
    partition = serializers.IntegerField()
    start = serializers.IntegerField(help_text="The first offset.")
    end = serializers.IntegerField(help_text="The end offset (exclusive).")
    publish_id = serializers.UUIDField()


class SegmentStateSerializer(SegmentSerializer):
    used = serializers.BooleanField()
    unused_at = serializers.SerializerMethodField(help_text="When the segment was marked unused. Null if it is used.")
    goes_at = serializers.SerializerMethodField(
        help_text="The earliest time at which its file is deleted. Null if the segment is used."
    )
    removed = serializers.SerializerMethodField(help_text="Who marked the segment unused, and why. Else empty.")

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_unused_at(self, segment: Any) -> Any:
        return _time(None if segment.used else segment.unused_at)

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_goes_at(self, segment: Any) -> Any:
        return _time(deletion_time(segment))

    def get_removed(self, segment: Any) -> str:
        return "" if segment.used or segment.removal is None else segment.removal.sentence


def _time(at: Any) -> Any:
    return None if at is None else serializers.DateTimeField().to_representation(at)


class KilledSegmentSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    rows = serializers.IntegerField()
    size_bytes = serializers.IntegerField()
    min_time = serializers.DateTimeField()
    max_time = serializers.DateTimeField()
    created_at = serializers.DateTimeField()
    unused_at = serializers.DateTimeField()
    killed_at = serializers.DateTimeField()


class SegmentStorySerializer(serializers.Serializer[Any]):
    """Either `segment` or `killed` is set. The other is null."""

    segment = SegmentStateSerializer(allow_null=True)
    killed = KilledSegmentSerializer(
        allow_null=True, help_text="What is known of a segment whose file was deleted. Else null."
    )
    made_by = RelativesSerializer(
        source="story.made_by",
        allow_null=True,
        help_text="The segments that it was merged from. Null if a task wrote it from records.",
    )
    gone_to = RelativesSerializer(
        source="story.gone_to",
        allow_null=True,
        help_text="The segments that now contain its rows. Null if it was not replaced.",
    )
    ranges = RecordRangeSerializer(
        source="story.ranges", many=True, help_text="Offsets of the records whose rows it contains."
    )
    more_ranges = serializers.BooleanField(
        source="story.more_ranges", help_text="Whether there are more ranges than these."
    )


class FooterColumnSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    type = serializers.CharField()
    compression = serializers.CharField()
    compressed_bytes = serializers.IntegerField()
    uncompressed_bytes = serializers.IntegerField()
    nulls = serializers.IntegerField(allow_null=True)
    least = serializers.JSONField(allow_null=True)
    greatest = serializers.JSONField(allow_null=True)
    role = serializers.CharField(
        help_text="The lowest role that sees the column's values, if they are masked for you. Else empty."
    )
    masked = serializers.BooleanField(
        help_text="Whether the minimum and maximum are hidden from you. Viewers do not see those of texts."
    )


class FooterSerializer(serializers.Serializer[Any]):
    rows = serializers.IntegerField()
    row_groups = serializers.IntegerField()
    written_by = serializers.CharField()
    columns = FooterColumnSerializer(many=True)


class SegmentFileSerializer(serializers.Serializer[Any]):
    footer = FooterSerializer(
        allow_null=True, help_text="Null if the file cannot be read. `rows.problems` has the reason."
    )
    rows = NewestRowsSerializer(help_text="The segment's latest rows.")
