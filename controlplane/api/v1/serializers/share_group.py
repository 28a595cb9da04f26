"""A supervisor's share group."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.v1.serializers.datasources import EventSerializer
from controlplane.api.v1.serializers.totals import ReasonSerializer


class GroupMemberSerializer(serializers.Serializer[Any]):
    """An indexer with its consumers, as its last heartbeat described it."""

    task = serializers.CharField(source="task_id")
    indexer = serializers.IntegerField(source="number")
    consumers = serializers.IntegerField()
    state = serializers.CharField()
    in_flight = serializers.IntegerField()
    partitions = serializers.ListField(child=serializers.IntegerField())
    last_heartbeat_at = serializers.DateTimeField(allow_null=True)


class LeasesSerializer(serializers.Serializer[Any]):
    """Of the current task's indexers, each since its present start."""

    acquired = serializers.IntegerField()
    accepted = serializers.IntegerField()
    rejected = serializers.IntegerField()
    released = serializers.IntegerField()
    lock_expired = serializers.IntegerField(help_text="Held until the lock had ended.")
    delivery_counts = serializers.DictField(
        source="deliveries", child=serializers.IntegerField(), help_text="Delivery count → records."
    )


class HoldSerializer(serializers.Serializer[Any]):
    """From the poll to the acknowledgement, weighted by records; percentiles to within a quarter."""

    p50_ms = serializers.IntegerField(allow_null=True)
    p99_ms = serializers.IntegerField(allow_null=True)
    longest_ms = serializers.IntegerField(allow_null=True)
    lock_ms = serializers.IntegerField(help_text="How long the broker lets a record be held.")


class CoverageSerializer(serializers.Serializer[Any]):
    """One partition's offsets from ``start`` to ``end``, in 200 cells of ``width`` offsets each."""

    partition = serializers.IntegerField()
    start = serializers.IntegerField()
    end = serializers.IntegerField()
    width = serializers.IntegerField()
    totals = serializers.DictField(child=serializers.IntegerField(), help_text="State → offsets.")
    cells = serializers.DictField(
        child=serializers.ListField(child=serializers.IntegerField()), help_text="State → offsets in each cell."
    )
    holes = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField()), help_text="The first 50, each [start, end)."
    )
    complete = serializers.BooleanField(help_text="False: how some ended is no longer known; they are settled.")


class RepairSerializer(serializers.Serializer[Any]):
    """A repair task, and how the records that it read ended."""

    id = serializers.CharField(source="task.pk")
    status = serializers.CharField(source="task.status")
    created_at = serializers.DateTimeField(source="task.created_at")
    ended_at = serializers.DateTimeField(source="task.ended_at", allow_null=True)
    error = serializers.CharField(source="task.error")
    polled = serializers.IntegerField()
    published = serializers.IntegerField()
    unparseable = serializers.IntegerField()
    thrown_away = serializers.IntegerField()
    duplicates = serializers.IntegerField()


class ShareGroupSerializer(serializers.Serializer[Any]):
    group = serializers.CharField()
    topic = serializers.CharField()
    state = serializers.CharField(help_text="stable or empty, by our own indexers' heartbeats.")
    members = GroupMemberSerializer(many=True)
    leases = LeasesSerializer()
    hold = HoldSerializer()
    warnings = ReasonSerializer(many=True, help_text="With the codes long_hold, locks_expired and last_deliveries.")
    coverage = CoverageSerializer(many=True)
    repairs = RepairSerializer(many=True)
    repaired = EventSerializer(many=True, help_text="What repairs found: records that the broker had archived.")
    gaps = EventSerializer(many=True)


class GroupSettingSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    wanted = serializers.CharField(help_text="By the spec.")
    actual = serializers.CharField(allow_null=True, help_text="On the broker.")
    is_default = serializers.BooleanField(help_text="Nothing is set for the group: the broker's default holds.")
    effective = serializers.CharField(allow_null=True, help_text="Within the broker's bounds.")
    least = serializers.IntegerField(allow_null=True)
    most = serializers.IntegerField(allow_null=True)
    drifted = serializers.BooleanField()


class DeadLetterTopicSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    records = serializers.IntegerField(
        allow_null=True, help_text="Records in the topic, of all groups that write there. null if it is not known."
    )
    problem = serializers.CharField(help_text="Why Kafka writes nothing there, and what to do. Empty if it does.")


class GroupConfigurationSerializer(serializers.Serializer[Any]):
    group = serializers.CharField()
    asked_at = serializers.DateTimeField()
    drifted = serializers.BooleanField()
    settings = GroupSettingSerializer(many=True)
    dead_letter_topic = DeadLetterTopicSerializer(
        allow_null=True, help_text="Where Kafka writes records that it rejects or gives up. null if the group has none."
    )
