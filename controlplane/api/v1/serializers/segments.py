"""One segment: its state, its family, the records in it, and what its file holds."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.v1.serializers.datasources import SegmentSerializer
from controlplane.api.v1.serializers.reading import NewestRowsSerializer
from controlplane.segments.killing import deletion_time


class RelativesSerializer(serializers.Serializer[Any]):
    """Segments on the other side of a replacement."""

    task = serializers.CharField(source="replacement.task_id", help_text="The compaction that did it.")
    at = serializers.DateTimeField(source="replacement.created_at")
    rows_before = serializers.IntegerField(source="replacement.rows_before")
    rows_after = serializers.IntegerField(source="replacement.rows_after")
    segments = serializers.SerializerMethodField(help_text="Their ids.")
    others = serializers.IntegerField(help_text="More of them than are listed.")

    def get_segments(self, family: Any) -> list[str]:
        return [str(relative.id) for relative in family.relatives]


class RecordRangeSerializer(serializers.Serializer[Any]):
    topic = serializers.CharField()
    partition = serializers.IntegerField()
    start = serializers.IntegerField(help_text="The first offset.")
    end = serializers.IntegerField(help_text="The offset after the last one.")
    publish_id = serializers.UUIDField()


class SegmentStateSerializer(SegmentSerializer):
    used = serializers.BooleanField()
    unused_at = serializers.SerializerMethodField(help_text="Since when it is not in use; null while it is.")
    goes_at = serializers.SerializerMethodField(help_text="When its file is deleted, at the earliest.")
    removed = serializers.SerializerMethodField(help_text="By whom and why it was taken out of use; else empty.")

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
    """One of `segment` and `killed` is there."""

    segment = SegmentStateSerializer(allow_null=True)
    killed = KilledSegmentSerializer(allow_null=True, help_text="What is left of it once its file is deleted.")
    made_by = RelativesSerializer(
        source="story.made_by", allow_null=True, help_text="What it was made of; null if a task wrote it from records."
    )
    gone_to = RelativesSerializer(source="story.gone_to", allow_null=True, help_text="What holds its rows since.")
    ranges = RecordRangeSerializer(source="story.ranges", many=True, help_text="Records whose rows were written in it.")
    more_ranges = serializers.BooleanField(source="story.more_ranges", help_text="Whether there are more than these.")


class FooterColumnSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    type = serializers.CharField()
    compression = serializers.CharField()
    compressed_bytes = serializers.IntegerField()
    uncompressed_bytes = serializers.IntegerField()
    nulls = serializers.IntegerField(allow_null=True)
    least = serializers.JSONField(allow_null=True)
    greatest = serializers.JSONField(allow_null=True)
    role = serializers.CharField(help_text="The least role that sees its values, where they are masked for you.")
    masked = serializers.BooleanField(help_text="Whether least and greatest are left out, as texts are for viewers.")


class FooterSerializer(serializers.Serializer[Any]):
    rows = serializers.IntegerField()
    row_groups = serializers.IntegerField()
    written_by = serializers.CharField()
    columns = FooterColumnSerializer(many=True)


class SegmentFileSerializer(serializers.Serializer[Any]):
    footer = FooterSerializer(allow_null=True, help_text="null where the file can't be read; `rows.problems` say why.")
    rows = NewestRowsSerializer(help_text="The latest of its rows.")
