"""A supervisor's lag."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.base import QuerySerializer
from controlplane.api.v1.serializers.datasources import WindowQuery
from controlplane.lag.samples import RESOLUTIONS
from controlplane.publishing.selectors.progress import PartitionProgress
from controlplane.supervisors.drain import Code as DrainCode
from controlplane.supervisors.drain import Need
from controlplane.supervisors.retention_countdown import Code, Countdown


class SeriesQuery(WindowQuery):
    resolution = serializers.ChoiceField([r.name for r in RESOLUTIONS], required=False)
    partition = serializers.IntegerField(required=False, min_value=0, max_value=2**31 - 2)


class PartitionLagSerializer(serializers.Serializer[Any]):
    partition = serializers.IntegerField()
    end_offset = serializers.IntegerField(
        allow_null=True, help_text="One more than the last committed offset. Null if unknown."
    )
    next_offset = serializers.IntegerField(
        allow_null=True, help_text="The stored offset, from which the next read starts. Null for a share group."
    )
    settled = serializers.IntegerField(help_text="Number of settled offsets.")
    settled_upto = serializers.IntegerField(allow_null=True)
    lag = serializers.IntegerField(allow_null=True)
    observed_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.SerializerMethodField(
        help_text="From when on Kafka may delete its unread records. Null: not known, never, or none are unread."
    )

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_expires_at(self, partition: PartitionProgress) -> datetime | None:
        countdown: Countdown | None = self.context.get("unread")
        return None if countdown is None else countdown.partitions.get(partition.partition)


class ExpirySerializer(serializers.Serializer[Any]):
    code = serializers.ChoiceField(
        [c.value for c in Code], help_text="limited: from a time on; kept: Kafka deletes nothing of it."
    )
    text = serializers.CharField()
    expires_at = serializers.DateTimeField(allow_null=True, help_text="The earliest time. Null: not known, or never.")
    left_s = serializers.SerializerMethodField(help_text="Null: not known, or never. 0: at Kafka's next check.")
    short = serializers.SerializerMethodField(help_text="Less is left than the setting allows.")
    observed_at = serializers.DateTimeField()

    def get_left_s(self, countdown: Countdown) -> float | None:
        left = countdown.left(timezone.now())
        return None if left is None else left.total_seconds()

    def get_short(self, countdown: Countdown) -> bool:
        return countdown.is_short(settings.RETENTION_WARNING, timezone.now())


class LagQuery(QuerySerializer):
    by = serializers.DateTimeField(
        required=False, help_text="`drain.needs` says with how many indexers it has caught up by this time."
    )


class DrainNeedSerializer(serializers.Serializer[Any]):
    within_s = serializers.SerializerMethodField()
    indexers = serializers.IntegerField(help_text="About so many, at the present rates.")
    possible = serializers.BooleanField(help_text="The topic has partitions for them.")

    def get_within_s(self, need: Need) -> float:
        return need.within.total_seconds()


class DrainSerializer(serializers.Serializer[Any]):
    code = serializers.ChoiceField([c.value for c in DrainCode], help_text="never: at the present rate.")
    text = serializers.CharField()
    done_at = serializers.DateTimeField(allow_null=True, help_text="When it has caught up, at the present rate.")
    net_per_s = serializers.FloatField(
        allow_null=True, help_text="Records per second by which the lag shrinks; negative: it grows. Null: not known."
    )
    needs = DrainNeedSerializer(many=True, help_text="Empty: not known.")


class LagSerializer(serializers.Serializer[Any]):
    lag = serializers.IntegerField(
        allow_null=True, help_text="Offsets of all partitions that are not settled. Null if unknown."
    )
    observed_at = serializers.DateTimeField(allow_null=True)
    problem = serializers.CharField(help_text="Why the lag is unknown or out of date. Empty if it is current.")
    in_flight = serializers.IntegerField(help_text="Records that indexers have read and not published yet.")
    partitions = PartitionLagSerializer(many=True)
    drain = DrainSerializer()
    unread = ExpirySerializer(
        allow_null=True,
        help_text="When Kafka may delete unread records. Null: it has been behind for less than a minute, if at all.",
    )


class LagPointSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    lag = serializers.IntegerField(help_text="The largest lag since the previous point.")
    in_flight = serializers.IntegerField()
    processed_per_s = serializers.FloatField(
        allow_null=True,
        help_text="Records per second that became rows, over the last minute or since the previous point. Null "
        "if unknown.",
    )
    redelivered_per_s = serializers.FloatField(
        allow_null=True, help_text="Redelivered records per second over the same time. Null if unknown."
    )


class LagSeriesSerializer(serializers.Serializer[Any]):
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    resolution = serializers.CharField()
    points = LagPointSerializer(many=True)
