"""A supervisor's lag."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.v1.serializers.datasources import WindowQuery
from controlplane.lag.samples import RESOLUTIONS


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


class LagSerializer(serializers.Serializer[Any]):
    lag = serializers.IntegerField(
        allow_null=True, help_text="Offsets of all partitions that are not settled. Null if unknown."
    )
    observed_at = serializers.DateTimeField(allow_null=True)
    problem = serializers.CharField(help_text="Why the lag is unknown or out of date. Empty if it is current.")
    in_flight = serializers.IntegerField(help_text="Records that indexers have read and not published yet.")
    partitions = PartitionLagSerializer(many=True)


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
