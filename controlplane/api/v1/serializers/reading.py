"""What readers of a datasource need: rows, files, publishes, and the time until which it is complete."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.pagination import PageQuery
from controlplane.api.v1.serializers.datasources import SegmentSerializer, SegmentsQuery, WindowQuery
from controlplane.feed.entries import PublishedFiles
from controlplane.segments.models import Segment
from controlplane.segments.newest_rows import DEFAULT_ROWS
from ingestion.specs.messages.newest_rows import MAX_ROWS


class ManifestQuery(SegmentsQuery):
    as_of = serializers.DateTimeField(
        required=False, default_timezone=UTC, help_text="The `as_of` of an earlier answer. Default: one second ago."
    )


class ManifestFileSerializer(SegmentSerializer):
    address = serializers.SerializerMethodField(help_text="The file's full address, such as file:///… or s3://bucket/…")
    columns = serializers.ListField(child=serializers.DictField(child=serializers.CharField()))

    def get_address(self, segment: Segment) -> str:
        return f"{self.context['deep_storage']}/{segment.path}"


class ManifestSerializer(serializers.Serializer[Any]):
    as_of = serializers.DateTimeField(
        help_text="The answer has files of publishes up to this time. Following pages use the same time."
    )
    deep_storage = serializers.CharField(help_text="The address of deep storage. All paths are relative to it.")
    results = ManifestFileSerializer(many=True)
    next = serializers.URLField(allow_null=True, help_text="Address of the next page. Null on the last page.")


class FileColumnSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(
        source="number",
        help_text="The column's Parquet field id in all files that have field ids. No other column ever gets it.",
    )
    element_id = serializers.IntegerField(
        source="element", allow_null=True, help_text="The Parquet field id of a list's values. Null for other columns."
    )
    name = serializers.CharField()
    type = serializers.CharField()


class PublishesQuery(PageQuery):
    after = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=2**62,
        default=0,
        help_text="Only publishes with greater numbers are returned.",
    )


class PublishedSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(
        source="entry.number",
        help_text="The publish's number. Numbers start at 1 and have no gaps, in the order of time.",
    )
    publish_id = serializers.UUIDField(source="entry.publish_id")
    published_at = serializers.DateTimeField(source="entry.published_at")
    complete = serializers.BooleanField(help_text="False if one of its files was deleted. It can no longer be read.")
    files = serializers.SerializerMethodField()

    @extend_schema_field(ManifestFileSerializer(many=True))
    def get_files(self, published: PublishedFiles) -> Any:
        return ManifestFileSerializer(published.segments, many=True, context=self.context).data


class PublishesSerializer(serializers.Serializer[Any]):
    latest = serializers.IntegerField(help_text="The greatest number. 0 if nothing was published.")
    deep_storage = serializers.CharField(help_text="The address of deep storage. All paths are relative to it.")
    results = PublishedSerializer(many=True)
    next = serializers.URLField(allow_null=True, help_text="Address of the next page. Null on the last page.")


class RowsQuery(WindowQuery):
    limit = serializers.IntegerField(required=False, min_value=1, max_value=MAX_ROWS, default=DEFAULT_ROWS)


class ShownColumnSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    type = serializers.CharField(help_text="The type that can hold the values of all segments that were read.")
    types = serializers.ListField(child=serializers.CharField(), help_text="The types that these segments have.")


class FileProblemSerializer(serializers.Serializer[Any]):
    path = serializers.CharField(help_text="Path of the file, relative to deep storage.")
    problem = serializers.CharField()


class NewestRowsSerializer(serializers.Serializer[Any]):
    columns = ShownColumnSerializer(many=True)
    rows = serializers.ListField(
        child=serializers.ListField(child=serializers.JSONField(allow_null=True)),
        help_text="Rows, each with its values in the order of the columns. JSON is text. An object stands for another "
        'value: {"masked": true} for a masked one, with "role" if only this role sees it; {"start", "size_bytes"} for '
        'a long one; {"estimate"} for a sketch, and {"n", "min", "median", "max"} for a quantiles sketch.',
    )
    masked = serializers.BooleanField(help_text="Whether texts, lists and JSON are hidden from you.")
    problems = FileProblemSerializer(many=True, help_text="Files that could not be read. Their rows are missing.")
    files_read = serializers.IntegerField()
    certain_after = serializers.DateTimeField(
        allow_null=True,
        help_text="Rows up to this time may be missing, because not all files were read. Null if no row is missing.",
    )


class ReaderSerializer(serializers.Serializer[Any]):
    supervisor = serializers.CharField(source="supervisor.pk")
    topic = serializers.CharField()
    complete_until = serializers.DateTimeField(allow_null=True)
    observed_at = serializers.DateTimeField(
        allow_null=True, help_text="When the topic's offsets were last read. Null if never."
    )
    problem = serializers.CharField(
        help_text="Why this reader's time is unknown or does not advance. Empty if it advances."
    )


class CompletenessSerializer(serializers.Serializer[Any]):
    complete_until = serializers.DateTimeField(
        allow_null=True,
        help_text="All records of the topics with earlier times are stored or in quarantine. Null if unknown.",
    )
    observed_at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField(help_text="Why the time is unknown or does not advance. Empty if it advances.")
    last_publish_at = serializers.DateTimeField(allow_null=True)
    readers = ReaderSerializer(many=True)
