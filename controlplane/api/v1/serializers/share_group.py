"""A supervisor's share group."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.base import BodySerializer
from controlplane.api.v1.serializers.datasources import EventSerializer
from controlplane.api.v1.serializers.totals import ReasonSerializer


class GroupMemberSerializer(serializers.Serializer[Any]):
    """An indexer and its consumers, from its last heartbeat."""

    task = serializers.CharField(source="task_id")
    indexer = serializers.IntegerField(source="number")
    consumers = serializers.IntegerField()
    state = serializers.CharField()
    in_flight = serializers.IntegerField()
    partitions = serializers.ListField(child=serializers.IntegerField())
    last_heartbeat_at = serializers.DateTimeField(allow_null=True)


class LeasesSerializer(serializers.Serializer[Any]):
    """Counts of the current task's indexers, each since its last start."""

    acquired = serializers.IntegerField()
    accepted = serializers.IntegerField()
    rejected = serializers.IntegerField()
    released = serializers.IntegerField()
    lock_expired = serializers.IntegerField(help_text="Records whose lock expired before they were acknowledged.")
    delivery_counts = serializers.DictField(
        source="deliveries", child=serializers.IntegerField(), help_text="Number of records by delivery count."
    )


class HoldSerializer(serializers.Serializer[Any]):
    """Time from poll to acknowledgement, weighted by records. Percentiles are accurate to 25 %."""

    p50_ms = serializers.IntegerField(allow_null=True)
    p99_ms = serializers.IntegerField(allow_null=True)
    longest_ms = serializers.IntegerField(allow_null=True)
    lock_ms = serializers.IntegerField(
        help_text="The broker's lock duration in milliseconds: how long an indexer may hold a record."
    )


class CoverageSerializer(serializers.Serializer[Any]):
    """One partition's offsets from ``start`` to ``end``, in 200 cells of ``width`` offsets each."""

    partition = serializers.IntegerField()
    start = serializers.IntegerField()
    end = serializers.IntegerField()
    width = serializers.IntegerField()
    totals = serializers.DictField(child=serializers.IntegerField(), help_text="Number of offsets by state.")
    cells = serializers.DictField(
        child=serializers.ListField(child=serializers.IntegerField()),
        help_text="For each state, the number of offsets in each cell.",
    )
    holes = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField()),
        help_text="The first 50 gaps, each a half-open range [start, end).",
    )
    complete = serializers.BooleanField(help_text="False if the outcome of some settled offsets is no longer known.")


class RepairSerializer(serializers.Serializer[Any]):
    """A repair task, and the outcomes of its records."""

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
    state = serializers.CharField(help_text="`stable` or `empty`, from the heartbeats of Headgate's indexers.")
    members = GroupMemberSerializer(many=True)
    leases = LeasesSerializer()
    hold = HoldSerializer()
    warnings = ReasonSerializer(many=True, help_text="With the codes long_hold, locks_expired and last_deliveries.")
    coverage = CoverageSerializer(many=True)
    repairs = RepairSerializer(many=True)
    repaired = EventSerializer(
        many=True, help_text="Events of repairs: records that the broker had archived and a repair read."
    )
    gaps = EventSerializer(many=True)


class GroupSettingSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    wanted = serializers.CharField(help_text="The value that the spec asks for.")
    actual = serializers.CharField(allow_null=True, help_text="The value that the broker has. Null if unknown.")
    is_default = serializers.BooleanField(
        help_text="Whether the group has no value of its own and uses the broker's default."
    )
    effective = serializers.CharField(
        allow_null=True, help_text="The value that applies, within the broker's limits. Null if unknown."
    )
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


class DeadLetterImportBody(BodySerializer):
    topic = serializers.CharField(
        required=False,
        max_length=249,
        help_text="The dead-letter topic. If left out, the one that the spec names.",
    )


class DeadLetterCountsSerializer(serializers.Serializer[Any]):
    """Number of records of the topic by what the imports did. Records of other share groups do not count."""

    imported = serializers.IntegerField(help_text="Records that the imports put into quarantine.")
    stored = serializers.IntegerField(help_text="Records that have rows already. They were not imported.")
    quarantined = serializers.IntegerField(help_text="Records that the quarantine had already.")
    settled = serializers.IntegerField(help_text="Records that were thrown away, or whose outcome is no longer kept.")
    waiting = serializers.IntegerField(help_text="Records whose offset is not settled. The next import checks again.")


class StoredLetterSerializer(serializers.Serializer[Any]):
    """A record of the dead-letter topic that has rows, and its place in the topic that the supervisor reads."""

    partition = serializers.IntegerField()
    offset = serializers.IntegerField()
    origin_partition = serializers.IntegerField()
    origin_offset = serializers.IntegerField()


class DeadLetterImportSerializer(serializers.Serializer[Any]):
    topic = serializers.CharField(source="dead_letter_import.topic")
    topic_id = serializers.CharField(source="dead_letter_import.topic_id")
    running = serializers.BooleanField(source="dead_letter_import.running")
    problem = serializers.CharField(
        source="dead_letter_import.problem", help_text="Why the last import ended early. Empty if it did not."
    )
    asked_by = serializers.CharField(source="dead_letter_import.asked_by")
    asked_at = serializers.DateTimeField(source="dead_letter_import.asked_at")
    ended_at = serializers.DateTimeField(source="dead_letter_import.ended_at", allow_null=True)
    counts = DeadLetterCountsSerializer()
    stored_records = StoredLetterSerializer(
        source="stored", many=True, help_text="At most 20 of the records that have rows already."
    )


class DeadLetterImportsSerializer(serializers.Serializer[Any]):
    imports = DeadLetterImportSerializer(many=True)
