"""Backfills."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.base import BodySerializer
from controlplane.api.v1.serializers.resets import OffsetsField, PositionField

_SIDES = (("start_offsets", "start_position"), ("end_offsets", "end_position"))


class BackfillBody(BodySerializer):
    skip = serializers.BooleanField(
        default=False,
        help_text="The supervisor goes on at the end of its topic, and the backfill reads what it skips. Only for "
        "supervisors of the type kafka. Without it, give a start and an end.",
    )
    start_offsets = OffsetsField(required=False, help_text="By partition, the first offset to read.")
    end_offsets = OffsetsField(required=False, help_text="By partition, the offset to stop at. It is not read.")
    start_position = PositionField(required=False, help_text="Instead of start_offsets, for every partition.")
    end_position = PositionField(required=False, help_text="Instead of end_offsets.")
    task_count = serializers.IntegerField(
        required=False, min_value=1, max_value=100_000, help_text="Number of indexers. By default the supervisor's."
    )
    dry_run = serializers.BooleanField(default=False, help_text="Only answer what it would read; change nothing.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        given = [name for names in _SIDES for name in names if name in attrs]
        if attrs["skip"] and given:
            raise serializers.ValidationError("give either skip, or a start and an end")
        if not attrs["skip"] and any(sum(name in attrs for name in names) != 1 for names in _SIDES):
            raise serializers.ValidationError(
                "give skip, or start_offsets or start_position, and end_offsets or end_position"
            )
        wanted = {
            "startSequenceNumbers": _by_text(attrs.get("start_offsets")),
            "endSequenceNumbers": _by_text(attrs.get("end_offsets")),
            "startPosition": str(attrs["start_position"]) if "start_position" in attrs else None,
            "endPosition": str(attrs["end_position"]) if "end_position" in attrs else None,
        }
        return {**attrs, "wanted": {name: value for name, value in wanted.items() if value is not None}}


def _by_text(offsets: dict[int, int] | None) -> dict[str, int] | None:
    return None if offsets is None else {str(partition): offset for partition, offset in offsets.items()}


class PartitionFillSerializer(serializers.Serializer[Any]):
    partition = serializers.IntegerField()
    start = serializers.IntegerField()
    end = serializers.IntegerField(help_text="Exclusive.")
    unsettled = serializers.IntegerField(help_text="Offsets that it has still to read: as many records at most.")


class BackfillPlanSerializer(serializers.Serializer[Any]):
    supervisor = serializers.CharField(source="supervisor.pk")
    topic_id = serializers.CharField()
    task_count = serializers.IntegerField()
    left = serializers.IntegerField(help_text="Unsettled offsets of all partitions.")
    partitions = PartitionFillSerializer(many=True)
    backfill = serializers.CharField(
        source="backfill_id",
        allow_null=True,
        help_text="The id of the backfill, which is a supervisor. Null in a preview.",
    )


class BackfillSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="backfill.pk")
    state = serializers.CharField(source="backfill.state")
    detailed_state = serializers.CharField(source="backfill.detailed_state")
    created_at = serializers.DateTimeField(source="backfill.created_at")
    terminated_at = serializers.DateTimeField(source="backfill.terminated_at", allow_null=True)
    task_count = serializers.IntegerField(source="backfill.io_config.taskCount")
    total = serializers.IntegerField(source="progress.total", help_text="Offsets that it is to read.")
    done = serializers.IntegerField(source="progress.done", help_text="Of these, how many are settled.")
    left = serializers.IntegerField(source="progress.left")
    percent = serializers.IntegerField(source="progress.percent")
    seconds_left = serializers.IntegerField(source="progress.seconds_left", allow_null=True)
    gap = serializers.BooleanField(source="is_gap", help_text="Whether it was terminated before it had read all.")


class KnownGapSerializer(serializers.Serializer[Any]):
    partition = serializers.IntegerField()
    start = serializers.IntegerField()
    end = serializers.IntegerField(help_text="Exclusive.")


class BackfillListSerializer(serializers.Serializer[Any]):
    backfills = BackfillSerializer(many=True)
    gaps = KnownGapSerializer(
        many=True,
        help_text="Unsettled offsets that the supervisor has passed and that no backfill reads, without those that "
        "retention has removed. At most 100 of each partition.",
    )
