"""Datasources, their segments, timeline, quarantine, events and progress."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

from rest_framework import serializers

from controlplane.api.base import QuerySerializer
from controlplane.api.pagination import PageQuery
from controlplane.api.v1.serializers.totals import TotalsSerializer
from controlplane.segments.models import FaultyRecord, QuarantinedRecord
from controlplane.segments.selectors.timeline import MOST_BARS


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


class ColumnSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    types = serializers.ListField(child=serializers.CharField())
    segments = serializers.IntegerField()


class DatasourceDetailSerializer(DatasourceSerializer):
    columns = ColumnSerializer(many=True)
    totals = TotalsSerializer()


class WindowQuery(QuerySerializer):
    """``from`` and ``to``: a half-open window. ``from`` is a word of Python's, so the fields are put in by name."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        window = {name: serializers.DateTimeField(required=False, default_timezone=UTC) for name in ("from", "to")}
        return {**super().get_fields(), **window}


class TimelineQuery(WindowQuery):
    width = serializers.IntegerField(required=False, min_value=1, max_value=MOST_BARS, default=1000)


class SegmentsQuery(WindowQuery, PageQuery):
    """A page of a window."""


class BarSerializer(serializers.Serializer[Any]):
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    rows = serializers.IntegerField()
    segments = serializers.IntegerField()
    size_bytes = serializers.IntegerField()
    intervals = serializers.IntegerField()
    version = serializers.CharField(allow_null=True)
    min_time = serializers.DateTimeField()
    max_time = serializers.DateTimeField()


class TimelineSerializer(serializers.Serializer[Any]):
    start = serializers.DateTimeField(allow_null=True)
    end = serializers.DateTimeField(allow_null=True)
    total_rows = serializers.IntegerField()
    merged = serializers.BooleanField()
    bars = BarSerializer(many=True)


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
    path = serializers.CharField()
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


class QuarantinedSerializer(serializers.Serializer[Any]):
    """A poison record, or in a task's report one with a faulty field, with the beginning of its payload."""

    id = serializers.SerializerMethodField(help_text="Its number in the quarantine; null for one that is not there.")
    source = SourceSerializer()  # type: ignore[assignment]  # the stubs know Field.source only
    partition = serializers.IntegerField()
    offset = serializers.IntegerField()
    timestamp = serializers.SerializerMethodField(help_text="The record's own, from Kafka.")
    delivery_count = serializers.IntegerField()
    reason = serializers.CharField()
    error = serializers.CharField()
    task = serializers.CharField(source="task_id")
    key_base64 = serializers.SerializerMethodField()
    payload_base64 = serializers.SerializerMethodField(help_text="Its first 4096 bytes in a list, all of them alone.")
    payload_text = serializers.SerializerMethodField(help_text="The same as text, what is not UTF-8 replaced.")
    payload_size = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField()

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


class WholeQuarantinedSerializer(QuarantinedSerializer):
    def payload_of(self, record: Any) -> bytes | memoryview | None:
        whole: bytes | memoryview | None = record.payload
        return whole


class EventSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    kind = serializers.CharField(help_text="topic_recreated, gap, repaired or early_duplicate.")
    title = serializers.CharField(source="get_kind_display")
    alarm = serializers.BooleanField()
    detail = serializers.CharField()
    task = serializers.CharField(source="task_id")
    source = SourceSerializer(allow_null=True)  # type: ignore[assignment]  # the stubs know Field.source only
    created_at = serializers.DateTimeField()


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
