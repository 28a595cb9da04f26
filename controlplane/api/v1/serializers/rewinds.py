"""Rewinds."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.base import BodySerializer
from controlplane.api.v1.serializers.resets import OffsetsField
from controlplane.publishing.rewind_changes import shown_changes
from controlplane.supervisors.rewinds import OWN, READ_WITH, Asked
from ingestion.specs.offsets import Range

_LAST_VERSION = 2**31 - 1


class RewindBody(BodySerializer):
    spec_version = serializers.IntegerField(
        required=False, min_value=1, max_value=_LAST_VERSION, help_text="Records that this spec version has stored."
    )
    of_rewind = serializers.IntegerField(
        required=False, min_value=1, max_value=2**63 - 1, help_text="Records that this rewind has read."
    )
    published_from = serializers.DateTimeField(required=False, help_text="Records that were published since then.")
    published_until = serializers.DateTimeField(required=False, help_text="Exclusive.")
    start_offsets = OffsetsField(required=False, help_text="Records of these offsets: by partition, the first one.")
    end_offsets = OffsetsField(required=False, help_text="By partition, the end. It is not read.")
    rows_from = serializers.DateTimeField(
        required=False, help_text="All segments with rows of this time or later. Not together with another choice."
    )
    rows_until = serializers.DateTimeField(required=False, help_text="Exclusive.")
    read_with = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=_LAST_VERSION,
        help_text="The spec version to read with. By default the current.",
    )
    others = serializers.ChoiceField(
        choices=[READ_WITH, OWN],
        default=READ_WITH,
        help_text="With which spec version the records of the same segments are read that you have not chosen: "
        "`read_with`, or `own`, the one that has stored them.",
    )
    only_possible = serializers.BooleanField(
        default=False, help_text="Leave segments as they are that can't be recomputed. Otherwise the answer is 409."
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Read all records and show what would be stored; replace nothing."
    )
    preview = serializers.BooleanField(default=False, help_text="Only answer what it would do; change nothing.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        published, rows = _span(attrs, "published"), _span(attrs, "rows")
        asked = Asked(
            spec_version=attrs.get("spec_version"),
            of_rewind=attrs.get("of_rewind"),
            published=published,
            offsets=_ranges(attrs),
            times=rows,
            read_with=attrs.get("read_with"),
            others=attrs["others"],
            only_possible=attrs["only_possible"],
            dry_run=attrs["dry_run"],
        )
        if not asked.described().keys() - {"only_possible", "others"}:
            raise serializers.ValidationError(
                "choose records: spec_version, of_rewind, published_from and published_until, start_offsets and "
                "end_offsets, or rows_from and rows_until"
            )
        if rows and (published or asked.offsets or asked.spec_version or asked.of_rewind):
            raise serializers.ValidationError("rows_from and rows_until can't be combined with another choice")
        if rows and asked.others == OWN:
            raise serializers.ValidationError(
                "rows_from and rows_until choose all records of segments: there are no others"
            )
        return {**attrs, "asked": asked}


def _span(attrs: dict[str, Any], name: str) -> tuple[Any, Any] | None:
    start, end = attrs.get(f"{name}_from"), attrs.get(f"{name}_until")
    if start is None and end is None:
        return None
    if start is None or end is None or start >= end:
        raise serializers.ValidationError(f"give {name}_from and {name}_until, the earlier time first")
    return start, end


def _ranges(attrs: dict[str, Any]) -> dict[int, list[Range]] | None:
    starts, ends = attrs.get("start_offsets"), attrs.get("end_offsets")
    if starts is None and ends is None:
        return None
    if starts is None or ends is None or starts.keys() != ends.keys():
        raise serializers.ValidationError("start_offsets and end_offsets must name the same partitions")
    if any(starts[p] >= ends[p] for p in starts):
        raise serializers.ValidationError("each start must be lower than its end")
    return {p: [(starts[p], ends[p])] for p in starts}


class RewindNumberBody(BodySerializer):
    rewind = serializers.IntegerField(min_value=1, max_value=2**63 - 1, help_text="Its number.")


class PlannedPartSerializer(serializers.Serializer[Any]):
    start = serializers.DateTimeField(allow_null=True, help_text="Of its intervals. Null: records without rows.")
    end = serializers.DateTimeField(allow_null=True)
    segments = serializers.SerializerMethodField()
    rows = serializers.IntegerField(help_text="Of these segments.")
    records = serializers.IntegerField(help_text="Records that are read again.")
    others = serializers.SerializerMethodField(
        help_text="How many of them are read with their own spec version, or are of another topic."
    )

    def get_segments(self, part: Any) -> int:
        return len(part.segments)

    def get_others(self, part: Any) -> int:
        return sum(reading.records for reading in part.others)


class RefusedGroupSerializer(serializers.Serializer[Any]):
    segments = serializers.SerializerMethodField(help_text="Segments that go together, or not at all.")
    rows = serializers.SerializerMethodField()
    reason = serializers.CharField(source="refusal")

    def get_segments(self, group: Any) -> list[str]:
        return [str(member.id) for member in group.used]

    def get_rows(self, group: Any) -> int:
        return sum(member.rows for member in group.used)


class RewindPlanSerializer(serializers.Serializer[Any]):
    rewind = serializers.IntegerField(source="rewind_id", allow_null=True, help_text="Null in a preview.")
    supervisor = serializers.CharField(source="supervisor.pk")
    read_with = serializers.IntegerField(source="version.version")
    records = serializers.IntegerField()
    parts = PlannedPartSerializer(many=True)
    refused = RefusedGroupSerializer(many=True)


class RewindPartSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    start = serializers.DateTimeField(source="interval_start", allow_null=True)
    end = serializers.DateTimeField(source="interval_end", allow_null=True)
    state = serializers.CharField(help_text="waiting, done, failed, cancelled, undone, or read by a dry run.")
    reason = serializers.CharField(help_text="Why it has failed, or is tried again.")
    task = serializers.CharField(source="task_id", help_text="The newest task that reads it. Empty before the first.")
    records = serializers.IntegerField()
    rows_before = serializers.IntegerField()
    rows_after = serializers.IntegerField()
    counted = serializers.JSONField(source="after", help_text="What its records were counted as, by counter.")
    changes = serializers.SerializerMethodField(help_text="Of a dry run: which columns would hold something else.")
    ended_at = serializers.DateTimeField(allow_null=True)

    def get_changes(self, part: Any) -> dict[str, Any]:
        return shown_changes(part.changes, self.context.get("hidden", ()))


class RewindSerializer(serializers.Serializer[Any]):
    rewind = serializers.IntegerField(source="pk")
    choice = serializers.JSONField()
    read_with = serializers.IntegerField(source="spec_version", allow_null=True)
    dry_run = serializers.BooleanField()
    by = serializers.CharField()
    created_at = serializers.DateTimeField()
    parts = RewindPartSerializer(many=True)


class RewindListSerializer(serializers.Serializer[Any]):
    rewinds = RewindSerializer(many=True)
