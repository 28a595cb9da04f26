"""Supervisors and their spec versions."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.base import BodySerializer, QuerySerializer
from controlplane.api.pagination import SearchQuery
from controlplane.api.v1.serializers.totals import RatesSerializer, ReasonSerializer, TotalsSerializer
from controlplane.common.health import Trend, codes_of
from controlplane.supervisors.autoscale import wanted_task_count
from controlplane.supervisors.history import change_of, tombstone_of
from controlplane.supervisors.models import SpecVersion, State, Supervisor
from controlplane.supervisors.selectors import is_healthy
from controlplane.tasks.selectors import shown_spec


class SupervisorsQuery(SearchQuery):
    state = serializers.ChoiceField(State.choices, required=False)
    health = serializers.ChoiceField(
        codes_of("supervisor"), required=False, help_text="Those whose `health` has this `code`."
    )
    terminated = serializers.BooleanField(required=False, help_text="Those that were terminated instead.")


class SubmitQuery(QuerySerializer):
    skipRestartIfUnmodified = serializers.BooleanField(
        required=False, help_text="A spec that it has already restarts nothing."
    )


class RecentErrorSerializer(serializers.Serializer[Any]):
    at = serializers.CharField()
    error_class = serializers.SerializerMethodField()
    message = serializers.CharField()
    stream_error = serializers.SerializerMethodField(help_text="Kafka did not answer, or refused.")
    task = serializers.SerializerMethodField(
        help_text="The one that failed; empty for an error of the supervisor itself."
    )

    def get_error_class(self, error: dict[str, Any]) -> str:
        return str(error.get("class", "TaskFailed"))

    def get_stream_error(self, error: dict[str, Any]) -> bool:
        return bool(error.get("stream"))

    def get_task(self, error: dict[str, Any]) -> str:
        return str(error.get("task", ""))


class HealthSerializer(ReasonSerializer):
    """How a supervisor is."""

    code = serializers.ChoiceField(codes_of("supervisor"), help_text="For programs; it does not change.")
    since = serializers.DateTimeField(allow_null=True, help_text="Null: not known.")
    behind = serializers.IntegerField(allow_null=True, help_text="Offsets that are not settled. Null: not known.")
    trend = serializers.ChoiceField([t.value for t in Trend], allow_null=True, help_text="Of one that is behind.")


class SupervisorSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    datasource = serializers.CharField(source="datasource.name")
    team = serializers.CharField(source="team_name")
    version = serializers.IntegerField()
    state = serializers.ChoiceField(State.choices)
    detailed_state = serializers.CharField()
    healthy = serializers.SerializerMethodField()
    health = HealthSerializer(help_text="How it is, why, and what to do.")
    suspended = serializers.BooleanField()
    terminated_at = serializers.DateTimeField(allow_null=True)
    task_count = serializers.SerializerMethodField(help_text="Indexers that it wants: the autoscaler's, if it has one.")
    replicas = serializers.SerializerMethodField()
    topic = serializers.SerializerMethodField(help_text="Empty where a pattern says which topics.")
    topic_pattern = serializers.SerializerMethodField(help_text="Null: it reads one topic.")
    reads_for = serializers.CharField(
        source="parent_id", allow_null=True, help_text="The supervisor for whose pattern it reads its topic."
    )
    group = serializers.SerializerMethodField()
    partitions = serializers.IntegerField(allow_null=True, help_text="Of the topic, when it was last asked for.")
    current_task = serializers.CharField(source="current_task_id", allow_null=True)
    failures = serializers.IntegerField(help_text="In a row.")
    next_start_at = serializers.DateTimeField(allow_null=True)
    contacted_at = serializers.DateTimeField(allow_null=True, help_text="When Kafka last answered its iteration.")
    recent_errors = RecentErrorSerializer(many=True)
    created_at = serializers.DateTimeField()

    def get_healthy(self, supervisor: Supervisor) -> bool:
        return is_healthy(supervisor)

    def get_task_count(self, supervisor: Supervisor) -> int:
        return wanted_task_count(supervisor.io_config, supervisor.decided_task_count)

    def get_replicas(self, supervisor: Supervisor) -> int:
        return supervisor.io_config.replicas

    def get_topic(self, supervisor: Supervisor) -> str:
        return supervisor.io_config.topic

    def get_topic_pattern(self, supervisor: Supervisor) -> str | None:
        return supervisor.io_config.topicPattern

    def get_group(self, supervisor: Supervisor) -> str:
        return supervisor.io_config.progress_name(supervisor.owner)


class ScaleActionSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    before = serializers.IntegerField()
    after = serializers.IntegerField()
    reason = serializers.CharField()


class AutoScalerSerializer(serializers.Serializer[Any]):
    task_count_min = serializers.IntegerField(source="min_tasks")
    task_count_max = serializers.IntegerField(source="max_tasks")
    last_action = ScaleActionSerializer(allow_null=True)


class TopicReadSerializer(serializers.Serializer[Any]):
    topic = serializers.CharField(source="io_config.topic")
    supervisor = serializers.CharField(source="pk")
    state = serializers.ChoiceField(State.choices)
    detailed_state = serializers.CharField()


class SupervisorDetailSerializer(SupervisorSerializer):
    topics = TopicReadSerializer(many=True, help_text="Of its pattern, and who reads them for it; empty without one.")
    auto_scaler = AutoScalerSerializer(allow_null=True, help_text="Null: it has none, or it is not enabled.")
    spec = serializers.SerializerMethodField()
    totals = TotalsSerializer()
    why_nothing = ReasonSerializer(many=True)

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_spec(self, supervisor: Any) -> dict[str, Any]:
        # As it is now, so that what is got, changed and sent back neither suspends nor resumes.
        shown = {**shown_spec(supervisor.spec), "suspended": supervisor.suspended}
        return shown if supervisor.parent_id is None else {**shown, "id": supervisor.pk}


class DiffLineSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(help_text="added, removed, same, or place: where in the document the next lines are.")
    text = serializers.CharField()


class TombstoneSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    by = serializers.CharField()


class VersionSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    spec = serializers.SerializerMethodField()
    diff = serializers.SerializerMethodField(help_text="From the version before; empty for the first.")
    secrets_changed = serializers.SerializerMethodField(help_text="Null: they can't be opened with the present keys.")
    terminated = serializers.SerializerMethodField(help_text="The termination that ended this version.")

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_spec(self, version: SpecVersion) -> dict[str, Any]:
        return shown_spec(version.spec)

    @extend_schema_field(DiffLineSerializer(many=True))
    def get_diff(self, version: SpecVersion) -> Any:
        change = change_of(version)
        return DiffLineSerializer(change.diff if change else [], many=True).data

    def get_secrets_changed(self, version: SpecVersion) -> bool | None:
        change = change_of(version)
        return change.secrets if change else False

    @extend_schema_field(TombstoneSerializer(allow_null=True))
    def get_terminated(self, version: SpecVersion) -> Any:
        tombstone = tombstone_of(version)
        return TombstoneSerializer(tombstone).data if tombstone else None


class ChangedSerializer(serializers.Serializer[Any]):
    ids = serializers.ListField(child=serializers.CharField(), help_text="Of the supervisors that this changed.")


class TaskStatsSerializer(serializers.Serializer[Any]):
    task = serializers.CharField()
    totals = TotalsSerializer()
    averages = serializers.DictField(child=RatesSerializer(), help_text="1m, 5m and 15m → rates over that window.")


class ResetBody(BodySerializer):
    partitions = serializers.DictField(
        child=serializers.IntegerField(min_value=0),
        required=False,
        help_text="Partition → the offset to go on at. Left out: all stored offsets are forgotten.",
    )
    position = serializers.ChoiceField(
        ["earliest", "latest"],
        required=False,
        help_text="Instead of partitions: the log's beginning or end, in every partition, as Kafka says it now.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs) > 1:
            raise serializers.ValidationError("give partitions or position, not both")
        return attrs

    def validate_partitions(self, value: dict[str, int]) -> dict[str, int]:
        wrong = [name for name in value if not name.isdecimal()]
        if wrong or not value:
            raise serializers.ValidationError("must name at least one partition, by its number")
        return value


class ScaleBody(BodySerializer):
    taskCount = serializers.IntegerField(min_value=1, max_value=1000)
