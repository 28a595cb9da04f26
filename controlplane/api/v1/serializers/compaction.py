"""The compaction of a datasource: its status, due merges and past merges."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.base import BodySerializer, QuerySerializer
from controlplane.api.v1.serializers.totals import ReasonSerializer
from controlplane.compaction.models import State
from controlplane.compaction.planning import IntervalPlan


class CompactionQuery(QuerySerializer):
    """Settings to try. Nothing is changed."""

    max_rows_per_segment = serializers.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    skip_offset_from_latest = serializers.CharField(
        required=False,
        max_length=60,
        help_text="Age of the newest data that is not merged, as an ISO 8601 period such as P1D.",
    )


class CompactionBody(BodySerializer):
    config = serializers.DictField(allow_null=True, help_text="In Druid's form; null turns it off.")


class AmountSerializer(serializers.Serializer[Any]):
    size_bytes = serializers.IntegerField()
    segments = serializers.IntegerField()
    intervals = serializers.IntegerField()


class FragmentedSerializer(serializers.Serializer[Any]):
    start = serializers.DateTimeField(source="interval.start")
    end = serializers.DateTimeField(source="interval.end")
    segments = serializers.IntegerField(source="interval.segments")
    rows = serializers.IntegerField(source="interval.rows")
    next = serializers.SerializerMethodField(help_text="The number of segments of each merge that is due now.")
    anew = serializers.BooleanField(
        source="choice.rewrites_whole",
        help_text="Whether a task is due that rewrites the whole interval, because the config has a partitionsSpec.",
    )
    reason = serializers.SerializerMethodField(help_text="Why no merge is due. Empty if one is due.")
    health = ReasonSerializer(
        source="choice.health", allow_null=True, help_text="Why no merge is due. Null if one is due."
    )

    def get_next(self, looked: IntervalPlan) -> list[int]:
        return [len(group.segments) for group in looked.choice.groups]

    def get_reason(self, looked: IntervalPlan) -> str:
        return looked.choice.health.text if looked.choice.health else ""


class CompactionSerializer(serializers.Serializer[Any]):
    on = serializers.BooleanField(source="status.on")
    health = ReasonSerializer(help_text="The health of the worst interval, if a person must act on one.")
    config = serializers.DictField(
        allow_null=True, help_text="The compaction config in Druid's format, with defaults. Null if compaction is off."
    )
    awaiting = AmountSerializer(source="status.awaiting")
    becoming = serializers.IntegerField(
        source="status.becoming", help_text="Estimated number of segments after the awaiting segments are merged."
    )
    compacted = AmountSerializer(source="status.compacted")
    skipped = AmountSerializer(source="status.skipped")
    application = serializers.CharField(
        allow_null=True,
        help_text="The id of the running compaction application, which serves all datasources. Null if none runs.",
    )
    intervals = FragmentedSerializer(many=True, help_text="The intervals with the most segments, at most 25.")


class CompactionJobSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    interval_start = serializers.DateTimeField()
    interval_end = serializers.DateTimeField()
    tier = serializers.IntegerField()
    state = serializers.ChoiceField(State.choices)
    attempt = serializers.IntegerField()
    application = serializers.CharField(source="application_id", allow_null=True)
    replaced = serializers.ListField(
        source="inputs", child=serializers.UUIDField(), help_text="Ids of the segments that were replaced."
    )
    rows_before = serializers.IntegerField()
    rows_after = serializers.IntegerField(allow_null=True)
    bytes_before = serializers.IntegerField()
    bytes_after = serializers.IntegerField(allow_null=True)
    segments_after = serializers.IntegerField(allow_null=True)
    error = serializers.CharField()
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
