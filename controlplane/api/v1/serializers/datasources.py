"""Datasources, their segments, timeline, quarantine, events and progress."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any, get_args

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.base import BodySerializer, QuerySerializer
from controlplane.api.pagination import PageQuery
from controlplane.api.v1.serializers.plain import PlainSerializer
from controlplane.api.v1.serializers.totals import TotalsSerializer
from controlplane.quarantine.models import FaultyRecord, QuarantinedRecord
from controlplane.quarantine.replays import decode_headers
from controlplane.quarantine.selectors.filters import MAX_IDS, MAX_KEY
from controlplane.segments.selectors.layers import LAYERS
from controlplane.segments.selectors.timeline import MAX_BARS, STATES
from controlplane.sources.models import SourceEvent
from ingestion.specs.causes import FINGERPRINT_LENGTH
from ingestion.specs.messages.protocol import QuarantinedRecord as WireRecord


class DatasourceSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    team = serializers.CharField(source="team_name")
    rows = serializers.IntegerField()
    segments = serializers.IntegerField(source="segment_count")
    size_bytes = serializers.IntegerField()
    min_time = serializers.DateTimeField(allow_null=True)
    max_time = serializers.DateTimeField(allow_null=True)
    active_tasks = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class ColumnTypeSerializer(serializers.Serializer[Any]):
    type = serializers.CharField()
    since = serializers.DateTimeField(help_text="Start of the first interval that has it.")
    until = serializers.DateTimeField(help_text="Start of the last one.")
    segments = serializers.IntegerField()


class ColumnSerializer(serializers.Serializer[Any]):
    """A column of the latest 1,000 segments."""

    name = serializers.CharField()
    type = serializers.CharField(help_text="Holds the values of all segments.")
    types = serializers.ListField(child=serializers.CharField(), help_text="What segments have.")
    segments = serializers.IntegerField()
    since = serializers.DateTimeField(
        allow_null=True, help_text="Start of the first interval that has the column; null if the earliest one has it."
    )
    history = ColumnTypeSerializer(many=True, help_text="Its types, the latest first.")


class DatasourceDetailSerializer(DatasourceSerializer):
    deleted_at = serializers.DateTimeField(
        allow_null=True, help_text="Since when it is deleted; a spec that names it creates it again."
    )
    columns = ColumnSerializer(many=True)
    totals = TotalsSerializer()


class WindowQuery(QuerySerializer):
    """``from`` and ``to``: a half-open window. ``from`` is a word of Python's, so the fields are put in by name."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        window = {name: serializers.DateTimeField(required=False, default_timezone=UTC) for name in ("from", "to")}
        return {**super().get_fields(), **window}


class TimelineQuery(WindowQuery):
    width = serializers.IntegerField(required=False, min_value=1, max_value=MAX_BARS, default=1000)
    layers = serializers.CharField(
        required=False, max_length=100, help_text=f"Also these, with commas: {', '.join(LAYERS)}."
    )


class SegmentsQuery(WindowQuery, PageQuery):
    """A page of a window."""


class BarSerializer(PlainSerializer):
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    rows = serializers.IntegerField()
    segments = serializers.IntegerField()
    size_bytes = serializers.IntegerField()
    intervals = serializers.IntegerField()
    version = serializers.CharField(allow_null=True)
    min_time = serializers.DateTimeField()
    max_time = serializers.DateTimeField()
    state = serializers.ChoiceField(
        list(STATES), help_text=" ".join(f"`{state}`: {meaning}" for state, meaning in STATES.items())
    )
    compacting = serializers.BooleanField(help_text="Segments of it are being merged now.")
    awaiting = serializers.BooleanField(help_text="A merge of segments of it is planned, and waits for a place.")


class GapSerializer(serializers.Serializer[Any]):
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()


class MarkSerializer(PlainSerializer):
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    segments = serializers.IntegerField()
    rows = serializers.IntegerField()
    size_bytes = serializers.IntegerField()


class LayerSerializer(serializers.Serializer[Any]):
    name = serializers.ChoiceField(list(LAYERS))
    marks = MarkSerializer(many=True, help_text="By interval.")
    too_many = serializers.BooleanField(help_text="There are more than are looked at: ask for a shorter time.")


class TimelineSerializer(serializers.Serializer[Any]):
    start = serializers.DateTimeField(allow_null=True)
    end = serializers.DateTimeField(allow_null=True)
    total_rows = serializers.IntegerField()
    merged = serializers.BooleanField()
    bars = BarSerializer(many=True)
    gaps = GapSerializer(
        many=True, help_text="Of the window: where no bar lies, though there are segments before and after."
    )
    layers = LayerSerializer(many=True, help_text="Those that were asked for.")


class SegmentSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    identifier = serializers.CharField()
    interval_start = serializers.DateTimeField()
    interval_end = serializers.DateTimeField()
    version = serializers.CharField()
    partition_num = serializers.IntegerField()
    rows = serializers.IntegerField()
    size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    path = serializers.CharField(help_text="Below deep storage; empty where columns are masked for you.")
    min_time = serializers.DateTimeField()
    max_time = serializers.DateTimeField()
    task = serializers.CharField(source="task_id")
    created_at = serializers.DateTimeField()


class SourceSerializer(serializers.Serializer[Any]):
    """A reader of a topic: a share group, or the stored offsets of a supervisor."""

    kind = serializers.CharField(help_text="share_group or offsets.")
    group = serializers.CharField(help_text="The share group, or the supervisor's id.")
    topic = serializers.CharField()
    topic_id = serializers.CharField()
    cluster_id = serializers.CharField()
    current = serializers.BooleanField(help_text="False once the topic was deleted and made again.")


class QuarantineQuery(WindowQuery, PageQuery):
    """``from`` and ``to``: when a record was quarantined."""

    reason = serializers.ChoiceField(get_args(WireRecord.model_fields["reason"].annotation), required=False)
    cause = serializers.CharField(required=False, max_length=FINGERPRINT_LENGTH, help_text="A cause's fingerprint.")
    state = serializers.ChoiceField(QuarantinedRecord.State.choices, required=False)
    topic = serializers.CharField(required=False, max_length=249)
    partition = serializers.IntegerField(required=False, min_value=0, max_value=2**31 - 1)
    task = serializers.CharField(required=False, max_length=300, help_text="The one that put it there.")


class ExportQuery(QuarantineQuery):
    """The list's parameters without those of pages: all records that match are exported."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {name: f for name, f in super().get_fields().items() if name not in ("limit", "cursor")}


class MatchingBody(BodySerializer):
    """The list's parameters in a body; an empty one matches all."""

    reason = serializers.ChoiceField(get_args(WireRecord.model_fields["reason"].annotation), required=False)
    cause = serializers.CharField(required=False, max_length=FINGERPRINT_LENGTH, help_text="A cause's fingerprint.")
    state = serializers.ChoiceField(QuarantinedRecord.State.choices, required=False)
    topic = serializers.CharField(required=False, max_length=249)
    partition = serializers.IntegerField(required=False, min_value=0, max_value=2**31 - 1)
    task = serializers.CharField(required=False, max_length=300)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        window = {name: serializers.DateTimeField(required=False, default_timezone=UTC) for name in ("from", "to")}
        return {**super().get_fields(), **window}


class ChoiceBody(BodySerializer):
    """Which records: ``ids``, or all that match ``filter`` with ids up to ``upto``."""

    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=MAX_KEY),
        required=False,
        allow_empty=False,
        max_length=MAX_IDS,
    )
    filter = MatchingBody(required=False)
    upto = serializers.IntegerField(
        required=False, min_value=0, max_value=MAX_KEY, help_text="With filter: the highest id that is meant."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("ids" in attrs) == ("filter" in attrs):
            raise serializers.ValidationError("give ids or filter, one of them")
        return attrs


class ReplayBody(ChoiceBody):
    mode = serializers.ChoiceField(
        ["ingest", "produce"],
        help_text="ingest: with the present spec; of files with their task's. produce: to the topic again.",
    )
    spec = serializers.JSONField(
        required=False, help_text="With ingest, of records of files: the spec of the batch task, changed."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "spec" in attrs and attrs["mode"] != "ingest":
            raise serializers.ValidationError("spec is for mode ingest")
        return super().validate(attrs)


class ReplaySerializer(serializers.Serializer[Any]):
    records = serializers.IntegerField(help_text="How many the replays hold.")
    tasks = serializers.ListField(
        child=serializers.CharField(), help_text="One for each source of the records, or spec by which files were read."
    )


class LiveSerializer(serializers.Serializer[Any]):
    tried = serializers.IntegerField(help_text="The topic's newest records that both specs were tried on.")
    passing = serializers.IntegerField(help_text="That would become rows with the changed spec.")
    passing_now = serializers.IntegerField(help_text="That become rows with the spec in force.")
    failing = serializers.IntegerField(help_text="That the changed spec can't read.")
    worse = serializers.BooleanField(help_text="The changed spec makes rows of fewer than the spec in force does.")
    failure = serializers.CharField(help_text="Why they could not be tried; empty when they were.")


class TryBody(BodySerializer):
    cause = serializers.CharField(help_text="The fingerprint of the cause whose records wait.")
    spec = serializers.JSONField(help_text="The changed spec; of files the whole batch task.")
    task = serializers.CharField(required=False, default="", help_text="Of records of files: a task that read them.")


class TriedSpecSerializer(serializers.Serializer[Any]):
    tried = serializers.IntegerField(help_text="The newest records of the cause that the spec was tried on.")
    passing = serializers.IntegerField(help_text="That would become rows.")
    thrown_away = serializers.IntegerField()
    failing = serializers.IntegerField(help_text="That still can't be read.")
    live = LiveSerializer(allow_null=True, help_text="The topic's newest records; null without a supervisor.")


class PurgedSerializer(serializers.Serializer[Any]):
    records = serializers.IntegerField()


class QuarantinedSerializer(serializers.Serializer[Any]):
    """A poison record, or in a task's report one with a faulty field, with the beginning of its payload."""

    id = serializers.SerializerMethodField(help_text="Its number in the quarantine; null for one that is not there.")
    source = SourceSerializer(allow_null=True, help_text="Null: it is of a file.")  # type: ignore[assignment]  # the stubs know Field.source only
    place = serializers.CharField(help_text="Of a record of a file: which, and the byte or row where it begins.")
    partition = serializers.IntegerField()
    offset = serializers.IntegerField(help_text="Of a record of a file: that byte or row.")
    timestamp = serializers.SerializerMethodField(help_text="The record's own, from Kafka.")
    delivery_count = serializers.IntegerField()
    reason = serializers.CharField()
    error = serializers.CharField()
    cause = serializers.CharField(help_text="Equal in records that are there for the same cause.")
    task = serializers.CharField(source="task_id")
    key_base64 = serializers.SerializerMethodField()
    payload_base64 = serializers.SerializerMethodField(help_text="Its first 4096 bytes in a list, all of them alone.")
    payload_text = serializers.SerializerMethodField(help_text="The same as text, what is not UTF-8 replaced.")
    payload_size = serializers.IntegerField(allow_null=True)
    masked = serializers.SerializerMethodField(
        help_text="The role that sees its error, key, headers and payload, where they are hidden from you; else null."
    )
    state = serializers.SerializerMethodField(help_text="kept, replaying, stored, thrown_away or produced.")
    replay_task = serializers.SerializerMethodField(help_text="The replay that holds it, or ended it.")
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
    replays = serializers.IntegerField(help_text="How many replays of it came to an end.")
    ended_at = serializers.DateTimeField(allow_null=True, help_text="When it left the quarantine for good.")
    cut = serializers.BooleanField(help_text="Of a record of a file: only its beginning is kept; it can't be ingested.")
    file_header_base64 = serializers.SerializerMethodField(
        help_text="Of a record of a file: the line of that which names the columns, if one does."
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


class EventsQuery(PageQuery):
    kind = serializers.ChoiceField(SourceEvent.Kind.choices, required=False)
    alarm = serializers.BooleanField(required=False, help_text="Only those with an alarm, or only those without.")


class EventSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    kind = serializers.CharField(help_text="See the events in the reference: gap, repaired, purged …")
    title = serializers.CharField(source="get_kind_display")
    alarm = serializers.BooleanField()
    detail = serializers.CharField()
    task = serializers.CharField(source="task_id")
    source = SourceSerializer(allow_null=True)  # type: ignore[assignment]  # the stubs know Field.source only
    created_at = serializers.DateTimeField()
    acknowledged_at = serializers.DateTimeField(allow_null=True)
    acknowledged_by = serializers.CharField()


class ProgressSerializer(serializers.Serializer[Any]):
    source = SourceSerializer()  # type: ignore[assignment]  # the stubs know Field.source only
    partition = serializers.IntegerField()
    settled = serializers.IntegerField()
    settled_from = serializers.IntegerField(allow_null=True)
    settled_upto = serializers.IntegerField(allow_null=True)
    holes = serializers.IntegerField()
    open_offsets = serializers.IntegerField()
    log_start_offset = serializers.IntegerField(allow_null=True)
    end_offset = serializers.IntegerField(allow_null=True)
    lag = serializers.IntegerField(allow_null=True)
    observed_at = serializers.DateTimeField(allow_null=True)


def _base64(data: bytes | memoryview | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
