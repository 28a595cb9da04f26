"""Outcomes of records, and validation of specs."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.base import BodySerializer, QuerySerializer
from controlplane.api.v1.serializers.datasources import SourceSerializer
from controlplane.api.v1.serializers.reading import NewestRowsSerializer
from controlplane.publishing.models import MAX_OFFSET, MAX_PARTITION


class RecordQuery(QuerySerializer):
    topic = serializers.CharField(max_length=249)
    partition = serializers.IntegerField(min_value=0, max_value=MAX_PARTITION)
    offset = serializers.IntegerField(min_value=0, max_value=MAX_OFFSET)
    group = serializers.CharField(required=False, max_length=249)


class FateSegmentSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    identifier = serializers.CharField()
    path = serializers.CharField(help_text="Path relative to deep storage. Empty if masks hide columns from you.")
    interval_start = serializers.DateTimeField()
    interval_end = serializers.DateTimeField()
    rows = serializers.IntegerField()
    task = serializers.CharField(
        source="task_id", help_text="The task that wrote the segment. For a merged segment, the compaction task."
    )
    removed = serializers.CharField(help_text="Who marked the segment unused, and when. Empty if it is used.")


class FateSourceSerializer(SourceSerializer):
    datasource = serializers.CharField()


class FateSerializer(serializers.Serializer[Any]):
    """One outcome of the record, with its publish, task and segments."""

    source = FateSourceSerializer()  # type: ignore[assignment]  # the stubs know Field.source only
    outcome = serializers.CharField(
        help_text="`stored`, `thrown_away`, `unparseable`, `duplicate`, `empty`, `gap`, `settled` or `unknown`."
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


class SearchRecordsQuery(QuerySerializer):
    """A partition and offset, or a key with the time in which the record was written."""

    topic = serializers.CharField(max_length=249)
    partition = serializers.IntegerField(required=False, min_value=0, max_value=MAX_PARTITION)
    offset = serializers.IntegerField(required=False, min_value=0, max_value=MAX_OFFSET)
    key = serializers.CharField(
        required=False, max_length=4000, trim_whitespace=False, help_text="The record's key as text."
    )
    key_base64 = serializers.CharField(
        required=False, max_length=6000, help_text="The record's key in Base64, instead of key."
    )
    group = serializers.CharField(required=False, max_length=249)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        window = {name: serializers.DateTimeField(required=False, default_timezone=UTC) for name in ("from", "to")}
        return {**super().get_fields(), **window}

    def validate_key_base64(self, value: str) -> bytes:
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            raise serializers.ValidationError("is not valid Base64") from None


class QuarantinedPlaceSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    datasource = serializers.CharField(source="datasource.name")
    partition = serializers.IntegerField()
    offset = serializers.IntegerField()
    timestamp_ms = serializers.IntegerField(allow_null=True)
    error = serializers.CharField()
    state = serializers.CharField()


class KafkaHeaderSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    value_base64 = serializers.CharField(allow_null=True)


class KafkaRecordSerializer(serializers.Serializer[Any]):
    """A record as Kafka has it, with the first 16 KiB of its key and payload."""

    partition = serializers.IntegerField()
    offset = serializers.IntegerField()
    timestamp_ms = serializers.IntegerField(allow_null=True)
    key_base64 = serializers.SerializerMethodField()
    payload_base64 = serializers.SerializerMethodField()
    payload_size = serializers.SerializerMethodField(
        help_text="Size of the whole payload in bytes. Null for a record without a value."
    )
    headers = serializers.SerializerMethodField()

    def get_key_base64(self, record: Any) -> str | None:
        return None if record.key is None else base64.b64encode(record.key.start).decode()

    def get_payload_base64(self, record: Any) -> str | None:
        return None if record.payload is None else base64.b64encode(record.payload.start).decode()

    def get_payload_size(self, record: Any) -> int | None:
        return None if record.payload is None else record.payload.size

    @extend_schema_field(KafkaHeaderSerializer(many=True))
    def get_headers(self, record: Any) -> list[dict[str, Any]]:
        return [
            {"name": name, "value_base64": None if value is None else base64.b64encode(value).decode()}
            for name, value in record.headers
        ]


class LookedAtSerializer(serializers.Serializer[Any]):
    partition = serializers.IntegerField()
    start = serializers.IntegerField(help_text="The first offset of the searched range.")
    upto = serializers.IntegerField(help_text="The first offset that was not searched.")
    end = serializers.IntegerField(help_text="The end of the searched range (exclusive).")
    log_start = serializers.IntegerField(help_text="The first offset that Kafka still has.")


class LookedUpSerializer(serializers.Serializer[Any]):
    datasource = serializers.CharField(
        source="source.datasource.name", help_text="The datasource whose connection was used."
    )
    same_topic = serializers.BooleanField(
        help_text="False if the topic was deleted and created again after it was read."
    )
    found = KafkaRecordSerializer(source="answer.found", many=True)
    looked = LookedAtSerializer(source="answer.looked", many=True)
    scanned = serializers.IntegerField(source="answer.scanned", help_text="Number of records that were searched.")
    stopped_by = serializers.CharField(
        source="answer.stopped_by",
        help_text="What ended the search: `time`, `bytes`, `records` or `found`. Empty if the whole range was "
        "searched.",
    )


class SearchedSerializer(serializers.Serializer[Any]):
    kafka = LookedUpSerializer(allow_null=True)
    problem = serializers.CharField(help_text="Why Kafka was not searched. Empty if it was.")
    quarantined = QuarantinedPlaceSerializer(
        many=True, help_text="Quarantined records with this key, newest first, at most 50."
    )


class StoredRowSerializer(serializers.Serializer[Any]):
    """The rows of one datasource that contain the record."""

    datasource = serializers.CharField()
    made = serializers.DictField(
        child=serializers.JSONField(),
        help_text="The row that the spec makes of the record, without nulls. Times are in milliseconds since 1970.",
    )
    rollup = serializers.BooleanField(help_text="Whether rollup is on: one row may contain several records.")
    rows = NewestRowsSerializer(
        allow_null=True, help_text="The record's row, and rows of equal records. Null if they could not be read."
    )
    problem = serializers.CharField(help_text="Why no rows are returned. Empty if there are some.")


class StoredRowsSerializer(serializers.Serializer[Any]):
    results = StoredRowSerializer(many=True, help_text="One result for each reader that has stored the record.")


class ValidateBody(BodySerializer):
    kind = serializers.ChoiceField(["task", "supervisor"])
    spec = serializers.JSONField(help_text="The spec as you would submit it: flat, or nested under `spec`.")


class ValidSerializer(serializers.Serializer[Any]):
    valid = serializers.BooleanField()
    canonical = serializers.JSONField(help_text="The spec, nested, with all defaults and with masked secrets.")
