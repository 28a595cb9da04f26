"""Quarantined records: lists, exports, replays and tries of a changed spec."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any, get_args

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.base import BodySerializer
from controlplane.api.pagination import PageQuery
from controlplane.api.v1.serializers.datasources import SourceSerializer, WindowQuery
from controlplane.quarantine.models import FaultyRecord, QuarantinedRecord
from controlplane.quarantine.replays import decode_headers
from controlplane.quarantine.selectors.filters import MAX_IDS, MAX_KEY
from ingestion.specs.causes import FINGERPRINT_LENGTH
from ingestion.specs.messages.protocol import QuarantinedRecord as WireRecord


class QuarantineQuery(WindowQuery, PageQuery):
    """A window of times at which records were quarantined, from ``from`` to ``to``."""

    reason = serializers.ChoiceField(get_args(WireRecord.model_fields["reason"].annotation), required=False)
    cause = serializers.CharField(
        required=False, max_length=FINGERPRINT_LENGTH, help_text="The fingerprint of a cause."
    )
    state = serializers.ChoiceField(QuarantinedRecord.State.choices, required=False)
    topic = serializers.CharField(required=False, max_length=249)
    partition = serializers.IntegerField(required=False, min_value=0, max_value=2**31 - 1)
    task = serializers.CharField(
        required=False, max_length=300, help_text="The id of the task that quarantined the record."
    )


class ExportQuery(QuarantineQuery):
    """The list's filters. All matching records are exported."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {name: f for name, f in super().get_fields().items() if name not in ("limit", "cursor")}


class MatchingBody(BodySerializer):
    """The list's filters in a body. An empty body matches all records."""

    reason = serializers.ChoiceField(get_args(WireRecord.model_fields["reason"].annotation), required=False)
    cause = serializers.CharField(
        required=False, max_length=FINGERPRINT_LENGTH, help_text="The fingerprint of a cause."
    )
    state = serializers.ChoiceField(QuarantinedRecord.State.choices, required=False)
    topic = serializers.CharField(required=False, max_length=249)
    partition = serializers.IntegerField(required=False, min_value=0, max_value=2**31 - 1)
    task = serializers.CharField(required=False, max_length=300)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        window = {name: serializers.DateTimeField(required=False, default_timezone=UTC) for name in ("from", "to")}
        return {**super().get_fields(), **window}


class ChoiceBody(BodySerializer):
    """The chosen records: ``ids``, or all that match ``filter`` with ids up to ``upto``."""

    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=MAX_KEY),
        required=False,
        allow_empty=False,
        max_length=MAX_IDS,
    )
    filter = MatchingBody(required=False)
    upto = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_KEY,
        help_text="The highest matching id. Use it only with filter. If left out, all ids match.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("ids" in attrs) == ("filter" in attrs):
            raise serializers.ValidationError("give either ids or filter")
        return attrs


class ReplayBody(ChoiceBody):
    mode = serializers.ChoiceField(
        ["ingest", "produce"],
        help_text="`ingest` reads the records with the current spec, records of files with their task's spec. "
        "`produce` writes them to the topic again.",
    )
    spec = serializers.JSONField(
        required=False, help_text="A changed spec of the batch task. Only for mode ingest and records of files."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "spec" in attrs and attrs["mode"] != "ingest":
            raise serializers.ValidationError("spec is allowed only with mode ingest")
        return super().validate(attrs)


class ReplaySerializer(serializers.Serializer[Any]):
    records = serializers.IntegerField(help_text="Number of records that are replayed.")
    tasks = serializers.ListField(
        child=serializers.CharField(),
        help_text="Ids of the replay tasks: one for each source or, for files, each spec.",
    )


class LiveSerializer(serializers.Serializer[Any]):
    tried = serializers.IntegerField(help_text="Number of the topic's newest records that both specs were tried on.")
    passing = serializers.IntegerField(help_text="Number of records that become rows with the changed spec.")
    passing_now = serializers.IntegerField(help_text="Number of records that become rows with the current spec.")
    failing = serializers.IntegerField(help_text="Number of records that the changed spec cannot read.")
    worse = serializers.BooleanField(
        help_text="Whether the changed spec makes rows of fewer records than the current spec."
    )
    failure = serializers.CharField(help_text="Why the specs could not be tried. Empty if they were.")


class TryBody(BodySerializer):
    cause = serializers.CharField(help_text="The fingerprint of the cause whose quarantined records are tried.")
    spec = serializers.JSONField(help_text="The changed spec. For records of files, the whole batch task.")
    task = serializers.CharField(
        required=False, default="", help_text="For records of files: the id of a task that read them."
    )


class TriedSpecSerializer(serializers.Serializer[Any]):
    tried = serializers.IntegerField(help_text="Number of the cause's newest records that the spec was tried on.")
    passing = serializers.IntegerField(help_text="Number of records that would become rows.")
    thrown_away = serializers.IntegerField()
    failing = serializers.IntegerField(help_text="Number of records that still cannot be read.")
    live = LiveSerializer(
        allow_null=True, help_text="Result for the topic's newest records. Null if there is no supervisor."
    )


class PurgedSerializer(serializers.Serializer[Any]):
    records = serializers.IntegerField()


class QuarantinedSerializer(serializers.Serializer[Any]):
    """A quarantined record or, in a task's report, a record with a faulty field, with the beginning of its payload."""

    id = serializers.SerializerMethodField(
        help_text="The record's id in the quarantine. Null if it is not quarantined."
    )
    source = SourceSerializer(
        allow_null=True, help_text="The reader that read the record. Null for a record of a file."
    )  # type: ignore[assignment]  # the stubs know Field.source only
    place = serializers.CharField(
        help_text="For a record of a file: the file, and the byte or row where the record begins. Else empty."
    )
    partition = serializers.IntegerField()
    offset = serializers.IntegerField(
        help_text="The record's offset. For a record of a file, the byte or row where it begins."
    )
    timestamp = serializers.SerializerMethodField(help_text="The record's Kafka timestamp.")
    delivery_count = serializers.IntegerField()
    reason = serializers.CharField()
    error = serializers.CharField()
    cause = serializers.CharField(
        help_text="The fingerprint of the cause. Records with the same cause have the same one."
    )
    task = serializers.CharField(source="task_id")
    key_base64 = serializers.SerializerMethodField()
    payload_base64 = serializers.SerializerMethodField(help_text="The payload. A list has only its first 4096 bytes.")
    payload_text = serializers.SerializerMethodField(
        help_text="The same bytes as text. Bytes that are not UTF-8 are replaced."
    )
    payload_size = serializers.IntegerField(allow_null=True)
    masked = serializers.SerializerMethodField(
        help_text="The lowest role that sees the error, key, headers and payload, if they are hidden from you. "
        "Else null."
    )
    state = serializers.SerializerMethodField(help_text="`kept`, `replaying`, `stored`, `thrown_away` or `produced`.")
    replay_task = serializers.SerializerMethodField(
        help_text="The id of the replay that reads the record or that gave it its final outcome. Null if none did."
    )
    created_at = serializers.DateTimeField()

    def get_masked(self, record: QuarantinedRecord | FaultyRecord) -> str | None:
        return record.concealed_for or None

    def get_state(self, record: QuarantinedRecord | FaultyRecord) -> str | None:
        return record.state if isinstance(record, QuarantinedRecord) else None

    def get_replay_task(self, record: QuarantinedRecord | FaultyRecord) -> str | None:
        return record.replay_id or None if isinstance(record, QuarantinedRecord) else None

    def get_id(self, record: QuarantinedRecord | FaultyRecord) -> int | None:
        return record.pk if isinstance(record, QuarantinedRecord) else None

    def get_timestamp(self, record: QuarantinedRecord | FaultyRecord) -> datetime | None:
        try:
            return None if record.timestamp_ms is None else datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
        except (ValueError, OverflowError, OSError):
            return None  # a producer may write any number

    def get_key_base64(self, record: QuarantinedRecord | FaultyRecord) -> str | None:
        return _base64(record.key) if isinstance(record, QuarantinedRecord) else None

    def get_payload_base64(self, record: QuarantinedRecord | FaultyRecord) -> str | None:
        return _base64(self.payload_of(record))

    def get_payload_text(self, record: QuarantinedRecord | FaultyRecord) -> str | None:
        payload = self.payload_of(record)
        return None if payload is None else bytes(payload).decode("utf-8", "replace")

    def payload_of(self, record: Any) -> bytes | memoryview | None:
        start: bytes | memoryview | None = record.payload_start
        return start


class HeaderSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    value_base64 = serializers.CharField(allow_null=True)


class WholeQuarantinedSerializer(QuarantinedSerializer):
    headers = serializers.SerializerMethodField()
    replays = serializers.IntegerField(help_text="Number of ended replays of the record.")
    ended_at = serializers.DateTimeField(
        allow_null=True, help_text="When a replay gave the record its final outcome. Null if it is still quarantined."
    )
    cut = serializers.BooleanField(
        help_text="Whether only the beginning of the record is stored. Such a record of a file cannot be replayed."
    )
    file_header_base64 = serializers.SerializerMethodField(
        help_text="For a record of a file: the header line of the file. Null if it has none."
    )
    produced_partition = serializers.IntegerField(allow_null=True)
    produced_offset = serializers.IntegerField(allow_null=True)

    @extend_schema_field(HeaderSerializer(many=True))
    def get_headers(self, record: QuarantinedRecord) -> list[dict[str, Any]]:
        return [{"name": name, "value_base64": _base64(value)} for name, value in decode_headers(record.headers)]

    def get_file_header_base64(self, record: QuarantinedRecord) -> str | None:
        return _base64(record.file_header or None)

    def payload_of(self, record: Any) -> bytes | memoryview | None:
        whole: bytes | memoryview | None = record.payload
        return whole


def _base64(data: bytes | memoryview | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
