"""Datasources, their segments, timeline, events and progress."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from rest_framework import serializers

from controlplane.api.base import QuerySerializer
from controlplane.api.pagination import PageQuery
from controlplane.api.v1.serializers.plain import PlainSerializer
from controlplane.api.v1.serializers.totals import TotalsSerializer
from controlplane.segments.selectors.layers import LAYERS
from controlplane.segments.selectors.timeline import MAX_BARS, STATES
from controlplane.sources.models import SourceEvent


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
    since = serializers.DateTimeField(help_text="Start of the first interval that has this type.")
    until = serializers.DateTimeField(help_text="Start of the last interval that has this type.")
    segments = serializers.IntegerField()


class ColumnSerializer(serializers.Serializer[Any]):
    """A column of the latest 1,000 segments."""

    name = serializers.CharField()
    type = serializers.CharField(help_text="The type that can hold the values of all segments.")
    types = serializers.ListField(child=serializers.CharField(), help_text="The types that the segments have.")
    segments = serializers.IntegerField()
    since = serializers.DateTimeField(
        allow_null=True,
        help_text="Start of the first interval that has the column. Null if the earliest interval has it.",
    )
    history = ColumnTypeSerializer(many=True, help_text="The column's types, latest first.")


class DatasourceDetailSerializer(DatasourceSerializer):
    deleted_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When the datasource was deleted. Null if it exists. A spec that names a deleted datasource "
        "creates it again.",
    )
    columns = ColumnSerializer(many=True)
    totals = TotalsSerializer()


class WindowQuery(QuerySerializer):
    """A half-open window from ``from`` to ``to``. ``from`` is a Python keyword, so the fields are added by name."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        window = {name: serializers.DateTimeField(required=False, default_timezone=UTC) for name in ("from", "to")}
        return {**super().get_fields(), **window}


class TimelineQuery(WindowQuery):
    width = serializers.IntegerField(required=False, min_value=1, max_value=MAX_BARS, default=1000)
    layers = serializers.CharField(
        required=False, max_length=100, help_text=f"Layers to add, comma-separated: {', '.join(LAYERS)}."
    )


class SegmentsQuery(WindowQuery, PageQuery):
    """One page of the segments of a window."""


class BarSerializer(PlainSerializer):
    """A bar of the timeline: one interval, or several that are merged into it."""

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
    compacting = serializers.BooleanField(help_text="Whether segments of this interval are being merged now.")
    awaiting = serializers.BooleanField(
        help_text="Whether a merge of segments of this interval is planned and waits for a free slot."
    )


class GapSerializer(serializers.Serializer[Any]):
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()


class MarkSerializer(PlainSerializer):
    """The segments that one interval has in a layer."""

    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    segments = serializers.IntegerField()
    rows = serializers.IntegerField()
    size_bytes = serializers.IntegerField()


class LayerSerializer(serializers.Serializer[Any]):
    name = serializers.ChoiceField(list(LAYERS))
    marks = MarkSerializer(many=True, help_text="One mark for each interval.")
    too_many = serializers.BooleanField(
        help_text="Whether the layer has too many segments to show. Choose a shorter window."
    )


class TimelineSerializer(serializers.Serializer[Any]):
    start = serializers.DateTimeField(allow_null=True)
    end = serializers.DateTimeField(allow_null=True)
    total_rows = serializers.IntegerField()
    merged = serializers.BooleanField()
    bars = BarSerializer(many=True)
    gaps = GapSerializer(
        many=True, help_text="Parts of the window without segments that have segments before and after them."
    )
    layers = LayerSerializer(many=True, help_text="The requested layers.")


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
    path = serializers.CharField(help_text="Path relative to deep storage. Empty if masks hide columns from you.")
    min_time = serializers.DateTimeField()
    max_time = serializers.DateTimeField()
    task = serializers.CharField(source="task_id")
    created_at = serializers.DateTimeField()


class SourceSerializer(serializers.Serializer[Any]):
    """A reader of a topic: a share group, or the stored offsets of a supervisor."""

    kind = serializers.CharField(help_text="`share_group` or `offsets`.")
    group = serializers.CharField(help_text="The share group's name or, for stored offsets, the supervisor's id.")
    topic = serializers.CharField()
    topic_id = serializers.CharField()
    cluster_id = serializers.CharField()
    current = serializers.BooleanField(
        help_text="False if the topic was deleted and created again later, and for an imported dead-letter topic."
    )


class EventsQuery(PageQuery):
    kind = serializers.ChoiceField(SourceEvent.Kind.choices, required=False)
    alarm = serializers.BooleanField(
        required=False, help_text="True: only events with an alarm. False: only events without one. If left out, both."
    )


class EventSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    kind = serializers.CharField(
        help_text="The event's kind, such as gap, repaired or purged. The reference lists all."
    )
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
