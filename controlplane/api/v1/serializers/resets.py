"""Resets of stored offsets."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.base import BodySerializer, QuerySerializer
from ingestion.specs.kafka.positions import EXAMPLES, MAX_LENGTH, Position


@extend_schema_field(OpenApiTypes.STR)
class PositionField(serializers.CharField):
    """A position's text. Its value is a ``Position``."""

    def to_internal_value(self, data: Any) -> Any:
        text = super().to_internal_value(data)
        if len(text) > MAX_LENGTH:
            raise serializers.ValidationError(f"has more than {MAX_LENGTH} characters. Write {EXAMPLES}")
        try:
            return Position.parse(text)
        except ValueError as error:
            hint = ". In an address, write + as %2B" if " " in text else ""
            raise serializers.ValidationError(f"{error}{hint}") from None


class ResetQuery(QuerySerializer):
    position = PositionField(help_text=f"{EXAMPLES[0].upper()}{EXAMPLES[1:]}.")


class OffsetsField(serializers.DictField):
    """Partition → next offset."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(child=serializers.IntegerField(min_value=0), **kwargs)

    def to_internal_value(self, data: Any) -> dict[int, int]:
        value: dict[str, int] = super().to_internal_value(data)
        if not value or any(not (name.isascii() and name.isdecimal()) for name in value):
            raise serializers.ValidationError("must contain at least one partition number")
        return {int(name): offset for name, offset in value.items()}


class ResetBody(BodySerializer):
    partitions = OffsetsField(
        required=False,
        help_text="The next offset to read, by partition. Without this and position, all stored offsets are deleted.",
    )
    position = PositionField(required=False, help_text=f"Instead of partitions, for every partition: {EXAMPLES}.")
    topics = serializers.DictField(
        child=OffsetsField(),
        required=False,
        help_text="With position: the offsets that a preview answered, by topic and partition. They are stored as they "
        "are, and Kafka is not asked for the position again.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "partitions" in attrs and len(attrs) > 1:
            raise serializers.ValidationError("give either partitions or position")
        if "topics" in attrs and "position" not in attrs:
            raise serializers.ValidationError("topics needs the position that they were resolved from")
        return attrs


class ResetPartitionSerializer(serializers.Serializer[Any]):
    partition = serializers.IntegerField(source="to.partition")
    offset = serializers.IntegerField(source="to.offset", help_text="The next offset to read, after the reset.")
    stored = serializers.IntegerField(allow_null=True, help_text="The next offset to read, now.")
    log_start = serializers.IntegerField(source="to.log_start")
    end = serializers.IntegerField(source="to.end", help_text="Exclusive; behind it only uncommitted records.")
    time = serializers.DateTimeField(
        source="to.time", allow_null=True, help_text="Of the first record from the offset on, if Kafka told it."
    )
    records = serializers.IntegerField(source="to.records", help_text="From the offset to the end, at most.")
    read_again = serializers.IntegerField(help_text="Offsets that were read and are read once more.")
    skipped = serializers.IntegerField(help_text="Offsets that were not read yet and will not be.")


class ResetTopicSerializer(serializers.Serializer[Any]):
    topic = serializers.CharField()
    topic_id = serializers.CharField(source="resolved.topic_id")
    supervisor = serializers.CharField(source="supervisor.pk")
    create_time = serializers.BooleanField(
        source="resolved.create_time",
        allow_null=True,
        help_text="Whether producers set the times of records, which may then go back and forth. Null: not known.",
    )
    partitions = ResetPartitionSerializer(many=True)


class ResetPlanSerializer(serializers.Serializer[Any]):
    position = serializers.CharField(source="asked")
    resolved = serializers.CharField(source="position", help_text="The position; a duration as the time that it means.")
    read_again = serializers.IntegerField(help_text="Of all partitions.")
    skipped = serializers.IntegerField(help_text="Of all partitions.")
    warnings = serializers.ListField(child=serializers.CharField())
    topics = ResetTopicSerializer(many=True)
