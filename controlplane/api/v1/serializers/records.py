"""What became of a record; validation of specs."""

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
from controlplane.publishing.models import MAX_OFFSET
from controlplane.publishing.selectors.fate import MAX_PARTITION


class RecordQuery(QuerySerializer):
    topic = serializers.CharField(max_length=249)
    partition = serializers.IntegerField(min_value=0, max_value=MAX_PARTITION)
    offset = serializers.IntegerField(min_value=0, max_value=MAX_OFFSET)
    group = serializers.CharField(required=False, max_length=249)


class FateSegmentSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    identifier = serializers.CharField()
    path = serializers.CharField(help_text="Below deep storage; empty where columns are masked for you.")
    interval_start = serializers.DateTimeField()
    interval_end = serializers.DateTimeField()
    rows = serializers.IntegerField()
    task = serializers.CharField(source="task_id", help_text="That wrote it: a compaction's if it was merged since.")
    removed = serializers.CharField(help_text="By whom and when it was taken out of use; empty while it is in use.")


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


class SearchRecordsQuery(QuerySerializer):
    """A place, or a key with the time in which the record was written."""

    topic = serializers.CharField(max_length=249)
    partition = serializers.IntegerField(required=False, min_value=0, max_value=MAX_PARTITION)
    offset = serializers.IntegerField(required=False, min_value=0, max_value=MAX_OFFSET)
    key = serializers.CharField(required=False, max_length=4000, trim_whitespace=False, help_text="As text.")
    key_base64 = serializers.CharField(required=False, max_length=6000, help_text="Instead of key, for any bytes.")
    group = serializers.CharField(required=False, max_length=249)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        window = {name: serializers.DateTimeField(required=False, default_timezone=UTC) for name in ("from", "to")}
        return {**super().get_fields(), **window}

    def validate_key_base64(self, value: str) -> bytes:
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            raise serializers.ValidationError("is not base64") from None


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
    payload_size = serializers.SerializerMethodField(help_text="Of the whole, in bytes.")
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
    start = serializers.IntegerField(help_text="The first offset of what was meant.")
    upto = serializers.IntegerField(help_text="The first offset that was not looked at.")
    end = serializers.IntegerField(help_text="The first offset behind what was meant.")
    log_start = serializers.IntegerField(help_text="What is below has been removed from Kafka.")


class LookedUpSerializer(serializers.Serializer[Any]):
    datasource = serializers.CharField(source="source.datasource.name", help_text="With whose reader's connection.")
    same_topic = serializers.BooleanField(help_text="False if the topic was made again since it was read.")
    found = KafkaRecordSerializer(source="answer.found", many=True)
    looked = LookedAtSerializer(source="answer.looked", many=True)
    scanned = serializers.IntegerField(source="answer.scanned", help_text="Records.")
    stopped_by = serializers.CharField(
        source="answer.stopped_by",
        help_text="time, bytes, records or found; empty if all that was meant was looked at.",
    )


class SearchedSerializer(serializers.Serializer[Any]):
    kafka = LookedUpSerializer(allow_null=True)
    problem = serializers.CharField(help_text="Why Kafka was not looked into; empty if it was.")
    quarantined = QuarantinedPlaceSerializer(many=True, help_text="By key; at most 50, the newest first.")


class StoredRowSerializer(serializers.Serializer[Any]):
    """The rows of one datasource that hold the record."""

    datasource = serializers.CharField()
    made = serializers.DictField(
        child=serializers.JSONField(), help_text="What its spec makes of it, without nulls; times are milliseconds."
    )
    rollup = serializers.BooleanField(help_text="Whether a row may stand for several records.")
    rows = NewestRowsSerializer(allow_null=True, help_text="Its row, and those of records that are alike.")
    problem = serializers.CharField(help_text="Why there are none; empty where there are some.")


class StoredRowsSerializer(serializers.Serializer[Any]):
    results = StoredRowSerializer(many=True, help_text="One for each reader that has stored the record.")


class ValidateBody(BodySerializer):
    kind = serializers.ChoiceField(["task", "supervisor"])
    spec = serializers.JSONField(help_text="Flat, or nested under spec, as it would be submitted.")


class ValidSerializer(serializers.Serializer[Any]):
    valid = serializers.BooleanField()
    canonical = serializers.JSONField(help_text="Nested, with all defaults; secrets masked.")
