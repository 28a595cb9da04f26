"""Connection tests, and the topics and groups of a connection's cluster."""

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
        required=False,
        allow_blank=True,
        max_length=249,
        default="",
        help_text="A topic. The test also checks that it can be read. Empty: no topic is tested.",
    )
    group = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=249,
        default="",
        help_text="A group. The test also checks that it may be used. Empty: no group is tested.",
    )


class DraftTestBody(TestBody):
    kind = serializers.ChoiceField(KINDS)
    properties = serializers.JSONField(help_text=PROPERTIES)
    like = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=63,
        default="",
        help_text="A stored connection of the team. Its secrets replace those that the properties leave out.",
    )


class StepSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    ok = serializers.BooleanField()
    detail = serializers.CharField()


class VerdictSerializer(serializers.Serializer[Any]):
    ok = serializers.BooleanField()
    cause = serializers.ChoiceField(
        ["", *CAUSES], help_text="The cause of the first failed step. Empty if all steps succeeded."
    )
    message = serializers.CharField(help_text="What is wrong, or a remark.")
    advice = serializers.CharField(help_text="What to do next.")
    steps = StepSerializer(many=True)


class ListingQuery(QuerySerializer):
    search = serializers.CharField(required=False, max_length=249, allow_blank=True, default="")
    after = serializers.CharField(
        required=False, max_length=1000, allow_blank=True, default="", help_text="The `next` of the previous page."
    )
    limit = serializers.IntegerField(required=False, min_value=1, max_value=MAX_PAGE_SIZE, default=PAGE)


class TopicsQuery(ListingQuery):
    internal = serializers.BooleanField(
        required=False, default=False, help_text="Whether Kafka's internal topics are listed too."
    )


class TopicRowSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    partitions = serializers.IntegerField()
    records = serializers.IntegerField(
        allow_null=True,
        help_text="End offsets minus start offsets; compacted topics hold fewer records. Null if unknown.",
    )
    per_second = serializers.FloatField(
        allow_null=True, help_text="Records per second since the previous listing. Null if unknown."
    )
    problem = serializers.CharField()


class TopicListSerializer(serializers.Serializer[Any]):
    rows = TopicRowSerializer(many=True)
    next = serializers.CharField(help_text="The `after` of the next page. Empty on the last page.")
    total = serializers.IntegerField()


class PartitionSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    leader = serializers.IntegerField(allow_null=True)
    replicas = serializers.ListField(child=serializers.IntegerField())
    in_sync = serializers.ListField(child=serializers.IntegerField())
    start = serializers.IntegerField(allow_null=True)
    end = serializers.IntegerField(
        allow_null=True, help_text="The end offset: one more than the last offset. Null if unknown."
    )


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
    earliest = serializers.BooleanField(
        required=False, default=False, help_text="Whether the first records are returned instead of the newest."
    )


class PieceSerializer(serializers.Serializer[Any]):
    """The first 4 KiB of a key, a payload or a header."""

    base64 = serializers.CharField()
    size_bytes = serializers.IntegerField(help_text="Size of the whole value in bytes.")


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
    records = TopicRecordSerializer(many=True, help_text="The records, newest first.")
    stopped_by = serializers.CharField(help_text="The limit that ended the read: `time` or `bytes`. Empty if none did.")


class GroupRowSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    state = serializers.CharField()
    type = serializers.CharField()


class GroupListSerializer(serializers.Serializer[Any]):
    rows = GroupRowSerializer(many=True)
    next = serializers.CharField(help_text="The `after` of the next page. Empty on the last page.")
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
