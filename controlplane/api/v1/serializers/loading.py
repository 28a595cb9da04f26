"""Drafts of specs, and what each step of the wizard finds out about their records."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.base import BodySerializer
from controlplane.api.v1.serializers.sampling import SampleSerializer, with_time
from controlplane.connections.secrets import SecretsLost, unseal
from controlplane.loading.dry_run import ChangedRecord
from controlplane.loading.models import Draft


class BeginBody(BodySerializer):
    """A draft of a new spec or, with ``supervisor``, of a change to that supervisor's spec."""

    document = serializers.JSONField(required=False, help_text="The unfinished spec, flat or nested.")
    team = serializers.CharField(
        required=False, max_length=200, help_text="The team that will own it. You must be an operator of it."
    )
    supervisor = serializers.CharField(required=False, max_length=200)


class DraftChangeBody(BodySerializer):
    document = serializers.JSONField(help_text="The whole spec. Secrets that it leaves out keep their values.")


class SubmitDraftBody(BodySerializer):
    as_task = serializers.BooleanField(
        default=False, help_text="Whether the spec is run once as a task, without a supervisor."
    )


class DraftSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    team = serializers.CharField(source="team.name")
    owner = serializers.CharField(source="owner.username")
    supervisor = serializers.CharField(
        source="supervisor_id",
        allow_null=True,
        help_text="The id of the supervisor whose spec it changes. Null for a new spec.",
    )
    base_version = serializers.IntegerField(
        allow_null=True, help_text="The spec version that the draft started from. Null for a new spec."
    )
    document = serializers.JSONField(help_text="The spec, nested, without secrets.")
    secrets = serializers.SerializerMethodField(help_text="Names of the secrets that the draft has.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def get_secrets(self, draft: Draft) -> list[str]:
        try:
            return sorted(unseal(draft.secrets))
        except SecretsLost:
            return []


class ReadSerializer(serializers.Serializer[Any]):
    """The records that were read from Kafka."""

    records = serializers.SerializerMethodField(help_text="Number of records.")
    read_at = serializers.DateTimeField()
    stopped_by = serializers.CharField(help_text="The limit that ended the read early: `time` or `bytes`. Else empty.")

    def get_records(self, sample: Any) -> int:
        return len(sample.records)


class FormatGuessSerializer(serializers.Serializer[Any]):
    input_format = serializers.JSONField()
    share = serializers.FloatField(
        help_text="Share of the records with a value that this format can read, from 0 to 1. 0 if no format can."
    )
    why = serializers.CharField()
    lacks = serializers.CharField(
        help_text="What you must add before you can use the format. Empty if nothing is missing."
    )


class TimeGuessSerializer(serializers.Serializer[Any]):
    column = serializers.CharField()
    format = serializers.CharField()
    share = serializers.FloatField(help_text="Share of all records whose time this field gives, from 0 to 1.")
    distance_ms = serializers.IntegerField(
        allow_null=True, help_text="Median difference from Kafka's timestamp in milliseconds. Null if unknown."
    )
    example = serializers.CharField()
    example_ms = serializers.IntegerField(help_text="Time of the example, in milliseconds since 1970.")
    nodes = serializers.ListField(
        child=serializers.CharField(), help_text="Path to a nested field. Empty for other fields."
    )


class GuessesSerializer(serializers.Serializer[Any]):
    formats = FormatGuessSerializer(many=True, help_text="Possible formats, most likely first.")


class TimesSerializer(serializers.Serializer[Any]):
    times = TimeGuessSerializer(many=True, help_text="Possible timestamp columns, best first.")


class ProfileSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    type = serializers.CharField()
    null_share = serializers.FloatField()
    examples = serializers.ListField(child=serializers.CharField())
    distinct = serializers.IntegerField()


class NestedSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    nodes = serializers.ListField(child=serializers.CharField())
    share = serializers.FloatField()
    example = serializers.CharField()


class FieldsSerializer(serializers.Serializer[Any]):
    """A profile of the records' fields."""

    profiles = ProfileSerializer(many=True)
    nested = NestedSerializer(many=True, help_text="Nested values that a flattenSpec can turn into fields.")


class TriedSerializer(SampleSerializer, FieldsSerializer):
    """The sampler's answer and a profile of the fields."""


class ArrivedSerializer(serializers.Serializer[Any]):
    records = serializers.IntegerField()
    window_s = serializers.IntegerField(help_text="Length of the counted window in seconds: 60, 3600 or 86400.")


class OutlookSerializer(serializers.Serializer[Any]):
    """An estimate from the sample. Null if the sample is not enough."""

    arrived = ArrivedSerializer(
        allow_null=True, help_text="Number of records that arrived before the sample was read. Null if unknown."
    )
    records_per_s = serializers.FloatField(allow_null=True)
    stored_share = serializers.FloatField(allow_null=True)
    rollup_ratio = serializers.FloatField(allow_null=True, help_text="Records per row. Null if unknown.")
    rows_per_minute = serializers.IntegerField(allow_null=True)
    bytes_per_minute = serializers.IntegerField(allow_null=True)
    segments = serializers.IntegerField(
        allow_null=True, help_text="Number of segments that the first minute writes. Null if unknown."
    )
    indexers_needed = serializers.IntegerField(allow_null=True)
    task_count = serializers.IntegerField(help_text="Number of indexers that the spec asks for.")


class ChangedCellSerializer(serializers.Serializer[Any]):
    column = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)


class ChangedRecordSerializer(serializers.Serializer[Any]):
    partition = serializers.IntegerField(source="after.partition", allow_null=True)
    offset = serializers.IntegerField(source="after.offset", allow_null=True)
    kind = serializers.CharField(help_text="`changes`, `gained`, `fails` or `dropped`.")
    outcome_before = serializers.CharField(source="before.outcome")
    outcome_after = serializers.CharField(source="after.outcome")
    error = serializers.CharField(source="after.error")
    row_before = serializers.SerializerMethodField()
    row_after = serializers.SerializerMethodField()
    cells = ChangedCellSerializer(many=True)

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_row_before(self, record: ChangedRecord) -> dict[str, Any] | None:
        return None if record.before.row is None else with_time(record.before.row)

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_row_after(self, record: ChangedRecord) -> dict[str, Any] | None:
        return None if record.after.row is None else with_time(record.after.row)


class DryRunSerializer(serializers.Serializer[Any]):
    records = serializers.IntegerField(help_text="Number of records that both specs were tried on.")
    rows_before = serializers.IntegerField()
    rows_after = serializers.IntegerField()
    counts = serializers.DictField(child=serializers.IntegerField())
    changed = ChangedRecordSerializer(many=True)


class SubmittedSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField([("supervisor", "supervisor"), ("task", "task")])
    id = serializers.CharField()
