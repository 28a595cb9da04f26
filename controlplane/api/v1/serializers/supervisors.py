"""Supervisors and their spec versions."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.base import BodySerializer, QuerySerializer
from controlplane.api.pagination import SearchQuery
from controlplane.api.v1.serializers.tasks import BoundedProgressSerializer
from controlplane.api.v1.serializers.totals import RatesSerializer, ReasonSerializer, TotalsSerializer
from controlplane.common.health import Trend, codes_of
from controlplane.supervisors.autoscale import wanted_task_count
from controlplane.supervisors.bounded import bounded_progress
from controlplane.supervisors.history import change_of, tombstone_of
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.selectors import is_healthy
from controlplane.supervisors.states import State
from controlplane.tasks.selectors import shown_spec


class SupervisorsQuery(SearchQuery):
    state = serializers.ChoiceField(State.choices, required=False)
    health = serializers.ChoiceField(
        codes_of("supervisor"), required=False, help_text="Only supervisors whose `health` has this `code`."
    )
    terminated = serializers.BooleanField(required=False, help_text="Terminated supervisors instead of the others.")


class SubmitQuery(QuerySerializer):
    skipRestartIfUnmodified = serializers.BooleanField(
        required=False, help_text="If true, an unchanged spec does not restart the supervisor's tasks."
    )


class RecentErrorSerializer(serializers.Serializer[Any]):
    at = serializers.CharField()
    error_class = serializers.SerializerMethodField()
    message = serializers.CharField()
    stream_error = serializers.SerializerMethodField(help_text="Whether Kafka did not answer or refused the request.")
    task = serializers.SerializerMethodField(
        help_text="The id of the failed task. Empty for an error of the supervisor itself."
    )

    def get_error_class(self, error: dict[str, Any]) -> str:
        return str(error.get("class", "TaskFailed"))

    def get_stream_error(self, error: dict[str, Any]) -> bool:
        return bool(error.get("stream"))

    def get_task(self, error: dict[str, Any]) -> str:
        return str(error.get("task", ""))


class HealthSerializer(ReasonSerializer):
    """The health of a supervisor."""

    code = serializers.ChoiceField(  # type: ignore[assignment]  # of the codes of all subjects, those of this one
        codes_of("supervisor"), help_text="A stable code for programs."
    )
    since = serializers.DateTimeField(allow_null=True, help_text="When the health got this code. Null if unknown.")
    behind = serializers.IntegerField(
        allow_null=True, help_text="The lag: offsets that are not settled. Null if unknown."
    )
    trend = serializers.ChoiceField(
        [t.value for t in Trend],
        allow_null=True,
        help_text="Whether the lag grows, is steady or shrinks. Null if there is no lag.",
    )


class SupervisorSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    datasource = serializers.CharField(source="datasource.name")
    team = serializers.CharField(source="team_name")
    version = serializers.IntegerField()
    state = serializers.ChoiceField(State.choices)
    detailed_state = serializers.CharField()
    healthy = serializers.SerializerMethodField()
    health = HealthSerializer(help_text="The supervisor's health: its cause, and what to do.")
    suspended = serializers.BooleanField()
    terminated_at = serializers.DateTimeField(allow_null=True)
    task_count = serializers.SerializerMethodField(
        help_text="Number of indexers that it should have. With an autoscaler, the autoscaler's number."
    )
    replicas = serializers.SerializerMethodField()
    topic = serializers.SerializerMethodField(help_text="The topic. Empty if the supervisor has a topic pattern.")
    topic_pattern = serializers.SerializerMethodField(
        help_text="The topic pattern. Null if the supervisor reads one topic."
    )
    reads_for = serializers.CharField(
        source="parent_id",
        allow_null=True,
        help_text="The id of the supervisor whose topic pattern matched this topic. Null if the topic is named "
        "in the spec.",
    )
    fills = serializers.CharField(
        source="fills_id", allow_null=True, help_text="The id of the supervisor of which it is a backfill, else null."
    )
    group = serializers.SerializerMethodField()
    partitions = serializers.IntegerField(
        allow_null=True, help_text="Number of the topic's partitions when it was last read. Null if unknown."
    )
    current_task = serializers.CharField(source="current_task_id", allow_null=True)
    failures = serializers.IntegerField(help_text="Number of consecutive failed runs.")
    next_start_at = serializers.DateTimeField(allow_null=True)
    contacted_at = serializers.DateTimeField(
        allow_null=True, help_text="When Kafka last answered a run. Null if never."
    )
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
    reason = serializers.CharField(
        help_text="What its last check of the lag came to, a word for programs. Empty: none yet, or it is suspended."
    )
    text = serializers.CharField(help_text="The same as a sentence.")
    checked_at = serializers.DateTimeField(allow_null=True)


class TopicReadSerializer(serializers.Serializer[Any]):
    topic = serializers.CharField(source="io_config.topic")
    supervisor = serializers.CharField(source="pk")
    state = serializers.ChoiceField(State.choices)
    detailed_state = serializers.CharField()


class SupervisorDetailSerializer(SupervisorSerializer):
    topics = TopicReadSerializer(
        many=True,
        help_text="Topics that match the pattern, each with the supervisor that reads it. Empty without a pattern.",
    )
    auto_scaler = AutoScalerSerializer(
        allow_null=True, help_text="The autoscaler. Null if there is none or it is disabled."
    )
    progress = serializers.SerializerMethodField(help_text="Of one with a `boundedStreamConfig`. Null for others.")
    spec = serializers.SerializerMethodField()
    totals = TotalsSerializer()
    why_nothing = ReasonSerializer(many=True)

    @extend_schema_field(BoundedProgressSerializer(allow_null=True))
    def get_progress(self, supervisor: Any) -> Any:
        is_bounded = supervisor.io_config.boundedStreamConfig is not None
        return BoundedProgressSerializer(bounded_progress(supervisor)).data if is_bounded else None

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_spec(self, supervisor: Any) -> dict[str, Any]:
        # As it is now, so that what is got, changed and sent back neither suspends nor resumes.
        shown = {**shown_spec(supervisor.spec), "suspended": supervisor.suspended}
        return shown if not supervisor.is_made_by_another else {**shown, "id": supervisor.pk}


class DiffLineSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(
        help_text="`added`, `removed`, `same`, or `place`, which names the part of the document that follows."
    )
    text = serializers.CharField()


class TombstoneSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    by = serializers.CharField()


class VersionSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    spec = serializers.SerializerMethodField()
    diff = serializers.SerializerMethodField(help_text="Differences from the previous version. Empty for the first.")
    secrets_changed = serializers.SerializerMethodField(
        help_text="Whether secrets changed. Null if the current keys cannot decrypt them."
    )
    terminated = serializers.SerializerMethodField(
        help_text="The termination that ended this version. Null if none did."
    )

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
    ids = serializers.ListField(child=serializers.CharField(), help_text="Ids of the changed supervisors.")


class SpecPlanSerializer(serializers.Serializer[Any]):
    supervisor = serializers.CharField()
    action = serializers.ChoiceField(
        ["create", "update", "restore", "none"], help_text="`restore`: it is terminated and starts again."
    )
    version = serializers.IntegerField(help_text="The current one; 0: it does not exist.")
    diff = DiffLineSerializer(many=True, help_text="From the current version, line by line, secrets masked.")
    secrets_changed = serializers.BooleanField(allow_null=True, help_text="Null: the stored ones can't be opened.")


class TaskStatsSerializer(serializers.Serializer[Any]):
    task = serializers.CharField()
    totals = TotalsSerializer()
    averages = serializers.DictField(child=RatesSerializer(), help_text="The rates over the last 1m, 5m and 15m.")


class ScaleBody(BodySerializer):
    taskCount = serializers.IntegerField(min_value=1, max_value=1000)
