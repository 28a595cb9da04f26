"""What a datasource holds, for those who read it: rows, files, and until when it is complete."""

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
        required=False, default_timezone=UTC, help_text="The moment of an earlier answer; else a second ago."
    )


class ManifestFileSerializer(SegmentSerializer):
    address = serializers.SerializerMethodField(help_text="As others read it: file:///…, s3://bucket/…")
    columns = serializers.ListField(child=serializers.DictField(child=serializers.CharField()))

    def get_address(self, segment: Segment) -> str:
        return f"{self.context['deep_storage']}/{segment.path}"


class ManifestSerializer(serializers.Serializer[Any]):
    as_of = serializers.DateTimeField(help_text="Files of publishes up to this time; later pages keep to it.")
    deep_storage = serializers.CharField(help_text="Deep storage's own address; each path is relative to it.")
    results = ManifestFileSerializer(many=True)
    next = serializers.URLField(allow_null=True, help_text="Address of the next page; null on the last.")


class FileColumnSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(
        source="number", help_text="The Parquet field id, in every file that has them; never another column's."
    )
    element_id = serializers.IntegerField(source="element", allow_null=True, help_text="That of a list's values.")
    name = serializers.CharField()
    type = serializers.CharField()


class PublishesQuery(PageQuery):
    after = serializers.IntegerField(
        required=False, min_value=0, max_value=2**62, default=0, help_text="Only those with greater numbers."
    )


class PublishedSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(source="entry.number", help_text="From 1 up by one, in the order of time.")
    publish_id = serializers.UUIDField(source="entry.publish_id")
    published_at = serializers.DateTimeField(source="entry.published_at")
    complete = serializers.BooleanField(help_text="False once a file of it was deleted: it can't be read any more.")
    files = serializers.SerializerMethodField()

    @extend_schema_field(ManifestFileSerializer(many=True))
    def get_files(self, published: PublishedFiles) -> Any:
        return ManifestFileSerializer(published.segments, many=True, context=self.context).data


class PublishesSerializer(serializers.Serializer[Any]):
    latest = serializers.IntegerField(help_text="The greatest number; 0 when nothing was published.")
    deep_storage = serializers.CharField(help_text="Deep storage's own address; each path is relative to it.")
    results = PublishedSerializer(many=True)
    next = serializers.URLField(allow_null=True, help_text="Address of the next page; null on the last.")


class RowsQuery(WindowQuery):
    limit = serializers.IntegerField(required=False, min_value=1, max_value=MAX_ROWS, default=DEFAULT_ROWS)


class ShownColumnSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    type = serializers.CharField(help_text="Holds the values of all segments that were read.")
    types = serializers.ListField(child=serializers.CharField(), help_text="What they have.")


class FileProblemSerializer(serializers.Serializer[Any]):
    path = serializers.CharField(help_text="Relative to deep storage.")
    problem = serializers.CharField()


class NewestRowsSerializer(serializers.Serializer[Any]):
    columns = ShownColumnSerializer(many=True)
    rows = serializers.ListField(
        child=serializers.ListField(child=serializers.JSONField(allow_null=True)),
        help_text='In the order of the columns. JSON is text. An object is no value: {"masked": true}, with "role" in '
        "a column that is masked up to one, or "
        '{"start", "size_bytes"} of one that is too long, or what a sketch tells: {"estimate"}, of quantiles '
        '{"n", "min", "median", "max"}.',
    )
    masked = serializers.BooleanField(help_text="Whether texts, lists and JSON are hidden from you.")
    problems = FileProblemSerializer(many=True, help_text="Files that could not be read: their rows are missing.")
    files_read = serializers.IntegerField()
    certain_after = serializers.DateTimeField(
        allow_null=True, help_text="Up to this time rows may be missing, as there are more files; null: none is."
    )


class ReaderSerializer(serializers.Serializer[Any]):
    supervisor = serializers.CharField(source="supervisor.pk")
    topic = serializers.CharField()
    complete_until = serializers.DateTimeField(allow_null=True)
    observed_at = serializers.DateTimeField(allow_null=True, help_text="When its topic was last looked at.")
    problem = serializers.CharField(help_text="Why its part is not known or does not move; empty while it does.")


class CompletenessSerializer(serializers.Serializer[Any]):
    complete_until = serializers.DateTimeField(
        allow_null=True, help_text="All that the topics held before it has ended; null while that is not known."
    )
    observed_at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField(help_text="Why it is not known or does not move; empty while it does.")
    last_publish_at = serializers.DateTimeField(allow_null=True)
    readers = ReaderSerializer(many=True)
