"""Drafts of specs, and what each step of the wizard can tell of their records."""

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
    """A draft of a new spec, or with ``supervisor`` of a change of that one's."""

    document = serializers.JSONField(required=False, help_text="The spec as far as it is written, flat or nested.")
    team = serializers.CharField(required=False, max_length=200, help_text="Of which you are an operator.")
    supervisor = serializers.CharField(required=False, max_length=200)


class DraftChangeBody(BodySerializer):
    document = serializers.JSONField(help_text="All of the spec. Secrets that it leaves out are kept.")


class SubmitDraftBody(BodySerializer):
    as_task = serializers.BooleanField(default=False, help_text="Run it once, instead of making a supervisor.")


class DraftSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    team = serializers.CharField(source="team.name")
    owner = serializers.CharField(source="owner.username")
    supervisor = serializers.CharField(source="supervisor_id", allow_null=True, help_text="Whose spec it changes.")
    base_version = serializers.IntegerField(allow_null=True, help_text="The version that it began with.")
    document = serializers.JSONField(help_text="Nested, without secrets.")
    secrets = serializers.SerializerMethodField(help_text="The names of those that it holds.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def get_secrets(self, draft: Draft) -> list[str]:
        try:
            return sorted(unseal(draft.secrets))
        except SecretsLost:
            return []


class ReadSerializer(serializers.Serializer[Any]):
    """What was read from Kafka."""

    records = serializers.SerializerMethodField(help_text="How many.")
    read_at = serializers.DateTimeField()
    stopped_by = serializers.CharField(help_text="time or bytes, if there are fewer for that; else empty.")

    def get_records(self, sample: Any) -> int:
        return len(sample.records)


class FormatGuessSerializer(serializers.Serializer[Any]):
    input_format = serializers.JSONField()
    share = serializers.FloatField(
        help_text="Of the records with a value, those that can be read so; 0 for what no format reads."
    )
    why = serializers.CharField()
    lacks = serializers.CharField(help_text="What must be added before it can be used; empty for nothing.")


class TimeGuessSerializer(serializers.Serializer[Any]):
    column = serializers.CharField()
    format = serializers.CharField()
    share = serializers.FloatField(help_text="Of all records, those whose time it says.")
    distance_ms = serializers.IntegerField(allow_null=True, help_text="Median distance to Kafka's own time.")
    example = serializers.CharField()
    example_ms = serializers.IntegerField(help_text="Its time, in milliseconds since 1970.")
    nodes = serializers.ListField(child=serializers.CharField(), help_text="The way to a nested one; else empty.")


class GuessesSerializer(serializers.Serializer[Any]):
    formats = FormatGuessSerializer(many=True, help_text="The likeliest first.")


class TimesSerializer(serializers.Serializer[Any]):
    times = TimeGuessSerializer(many=True, help_text="The best first.")


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
    """What the records' fields are like."""

    profiles = ProfileSerializer(many=True)
    nested = NestedSerializer(many=True, help_text="Values inside of objects, that a flattenSpec can make fields.")


class TriedSerializer(SampleSerializer, FieldsSerializer):
    """For OpenAPI: the sampler's answer, and what the fields are like."""


class ArrivedSerializer(serializers.Serializer[Any]):
    records = serializers.IntegerField()
    window_s = serializers.IntegerField(help_text="How many seconds they came within: 60, 3600 or 86400.")


class OutlookSerializer(serializers.Serializer[Any]):
    """Judged by the sample; null where it does not tell."""

    arrived = ArrivedSerializer(allow_null=True, help_text="How many records had come when the sample was read.")
    records_per_s = serializers.FloatField(allow_null=True)
    stored_share = serializers.FloatField(allow_null=True)
    rollup_ratio = serializers.FloatField(allow_null=True, help_text="Records to a row.")
    rows_per_minute = serializers.IntegerField(allow_null=True)
    bytes_per_minute = serializers.IntegerField(allow_null=True)
    segments = serializers.IntegerField(allow_null=True, help_text="That a first minute writes to.")
    indexers_needed = serializers.IntegerField(allow_null=True)
    task_count = serializers.IntegerField(help_text="The indexers that the spec asks for.")


class ChangedCellSerializer(serializers.Serializer[Any]):
    column = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)


class ChangedRecordSerializer(serializers.Serializer[Any]):
    partition = serializers.IntegerField(source="after.partition", allow_null=True)
    offset = serializers.IntegerField(source="after.offset", allow_null=True)
    kind = serializers.CharField(help_text="changes, gained, fails or dropped.")
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
    records = serializers.IntegerField(help_text="That both specs were tried on.")
    rows_before = serializers.IntegerField()
    rows_after = serializers.IntegerField()
    counts = serializers.DictField(child=serializers.IntegerField())
    changed = ChangedRecordSerializer(many=True)


class SubmittedSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField([("supervisor", "supervisor"), ("task", "task")])
    id = serializers.CharField()
