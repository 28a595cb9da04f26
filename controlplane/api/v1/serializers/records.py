"""What became of a record; validation of specs."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.base import BodySerializer, QuerySerializer
from controlplane.api.v1.serializers.datasources import SourceSerializer
from controlplane.segments.models import MAX_OFFSET
from controlplane.segments.selectors.fate import MOST_PARTITION


class RecordQuery(QuerySerializer):
    topic = serializers.CharField(max_length=249)
    partition = serializers.IntegerField(min_value=0, max_value=MOST_PARTITION)
    offset = serializers.IntegerField(min_value=0, max_value=MAX_OFFSET)
    group = serializers.CharField(required=False, max_length=249)


class FateSegmentSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    identifier = serializers.CharField()
    path = serializers.CharField()
    interval_start = serializers.DateTimeField()
    interval_end = serializers.DateTimeField()
    rows = serializers.IntegerField()


class FateSourceSerializer(SourceSerializer):
    datasource = serializers.CharField()


class FateSerializer(serializers.Serializer[Any]):
    """One thing that happened to the record."""

    source = FateSourceSerializer()  # type: ignore[assignment]  # the stubs know Field.source only
    outcome = serializers.CharField(
        help_text="stored, thrown_away, unparseable, duplicate, empty, gap, settled or unknown."
    )
    explanation = serializers.CharField()
    publish_id = serializers.UUIDField(allow_null=True)
    task = serializers.SerializerMethodField()
    indexer = serializers.IntegerField(allow_null=True)
    at = serializers.DateTimeField(allow_null=True)
    segments = FateSegmentSerializer(many=True)
    quarantined_id = serializers.IntegerField(allow_null=True)
    error = serializers.CharField()

    def get_task(self, fate: Any) -> str | None:
        return fate.task_id or None


class RecordSerializer(serializers.Serializer[Any]):
    topic = serializers.CharField()
    partition = serializers.IntegerField()
    offset = serializers.IntegerField()
    fates = FateSerializer(many=True)


class ValidateBody(BodySerializer):
    kind = serializers.ChoiceField(["task", "supervisor"])
    spec = serializers.JSONField(help_text="Flat, or nested under spec, as it would be submitted.")


class ValidSerializer(serializers.Serializer[Any]):
    valid = serializers.BooleanField()
    canonical = serializers.JSONField(help_text="Nested, with all defaults; secrets masked.")
