"""What connections are tested for, and what their clusters hold."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.base import BodySerializer, QuerySerializer
from controlplane.api.v1.serializers.connections import KINDS, PROPERTIES
from controlplane.connections.browsing import MAX_PAGE_SIZE, PAGE
from controlplane.connections.probe_report import CAUSES
from ingestion.specs.messages.newest_records import MAX_ROWS


class TestBody(BodySerializer):
    __test__ = False  # pytest takes it for one of its own

    topic = serializers.CharField(
        required=False, allow_blank=True, max_length=249, default="", help_text="Whether this topic may be read, too."
    )
    group = serializers.CharField(
        required=False, allow_blank=True, max_length=249, default="", help_text="Whether it may read with this group."
    )


class DraftTestBody(TestBody):
    kind = serializers.ChoiceField(KINDS)
    properties = serializers.JSONField(help_text=PROPERTIES)
    like = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=63,
        default="",
        help_text="The name of a stored connection of the team, whose secrets are used where they are left out.",
    )


class StepSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    ok = serializers.BooleanField()
    detail = serializers.CharField()


class VerdictSerializer(serializers.Serializer[Any]):
    ok = serializers.BooleanField()
    cause = serializers.ChoiceField(["", *CAUSES], help_text="Of the first step that failed; empty when all is well.")
    message = serializers.CharField(help_text="What is wrong, or a remark.")
    advice = serializers.CharField(help_text="What to do next.")
    steps = StepSerializer(many=True)


class ListingQuery(QuerySerializer):
    search = serializers.CharField(required=False, max_length=249, allow_blank=True, default="")
    after = serializers.CharField(
        required=False, max_length=1000, allow_blank=True, default="", help_text="``next`` of the page before."
    )
    limit = serializers.IntegerField(required=False, min_value=1, max_value=MAX_PAGE_SIZE, default=PAGE)


class TopicsQuery(ListingQuery):
    internal = serializers.BooleanField(required=False, default=False, help_text="Kafka's own topics, too.")


class TopicRowSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    partitions = serializers.IntegerField()
    records = serializers.IntegerField(allow_null=True, help_text="From first to end; null: not known.")
    per_second = serializers.FloatField(allow_null=True, help_text="Since somebody looked last; null: not known.")
    problem = serializers.CharField()


class TopicListSerializer(serializers.Serializer[Any]):
    rows = TopicRowSerializer(many=True)
    next = serializers.CharField(help_text="To go on after; empty on the last page.")
    total = serializers.IntegerField()


class PartitionSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    leader = serializers.IntegerField(allow_null=True)
    replicas = serializers.ListField(child=serializers.IntegerField())
    in_sync = serializers.ListField(child=serializers.IntegerField())
    start = serializers.IntegerField(allow_null=True)
    end = serializers.IntegerField(allow_null=True, help_text="Exclusive.")


class SettingSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    value = serializers.CharField(allow_null=True)
    is_default = serializers.BooleanField()


class TopicSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    topic_id = serializers.CharField()
    records = serializers.IntegerField()
    partitions = PartitionSerializer(many=True)
    settings = SettingSerializer(many=True)
    settings_problem = serializers.CharField()


class NewestQuery(QuerySerializer):
    rows = serializers.IntegerField(required=False, min_value=1, max_value=MAX_ROWS, default=20)
    earliest = serializers.BooleanField(required=False, default=False, help_text="The first ones instead.")


class PieceSerializer(serializers.Serializer[Any]):
    """A key, a payload or a header: its first 4 KiB."""

    base64 = serializers.CharField()
    size_bytes = serializers.IntegerField(help_text="Of the whole.")


class TopicRecordHeaderSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    value = PieceSerializer(allow_null=True)


class TopicRecordSerializer(serializers.Serializer[Any]):
    partition = serializers.IntegerField()
    offset = serializers.IntegerField()
    timestamp_ms = serializers.IntegerField(allow_null=True)
    key = PieceSerializer(allow_null=True)
    payload = PieceSerializer(allow_null=True)
    headers = TopicRecordHeaderSerializer(many=True)


class NewestSerializer(serializers.Serializer[Any]):
    records = TopicRecordSerializer(many=True, help_text="The newest first.")
    stopped_by = serializers.CharField(help_text="`time` or `bytes` if there would be more.")


class GroupRowSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    state = serializers.CharField()
    type = serializers.CharField()


class GroupListSerializer(serializers.Serializer[Any]):
    rows = GroupRowSerializer(many=True)
    next = serializers.CharField(help_text="To go on after; empty on the last page.")
    total = serializers.IntegerField()


class ConsumerGroupMemberSerializer(serializers.Serializer[Any]):
    client_id = serializers.CharField()
    host = serializers.CharField()
    partitions = serializers.IntegerField()


class ConsumerGroupOffsetSerializer(serializers.Serializer[Any]):
    topic = serializers.CharField()
    partition = serializers.IntegerField()
    offset = serializers.IntegerField()
    end = serializers.IntegerField(allow_null=True)
    lag = serializers.IntegerField(allow_null=True)


class GroupSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    state = serializers.CharField()
    type = serializers.CharField()
    assignor = serializers.CharField()
    lag = serializers.IntegerField()
    members = ConsumerGroupMemberSerializer(many=True)
    offsets = ConsumerGroupOffsetSerializer(many=True)
    offsets_problem = serializers.CharField()
