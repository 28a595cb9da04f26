"""Tasks and their reports."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.base import BodySerializer
from controlplane.api.pagination import SearchQuery
from controlplane.api.v1.serializers.datasources import EventSerializer
from controlplane.api.v1.serializers.quarantine import QuarantinedSerializer
from controlplane.api.v1.serializers.totals import ReasonSerializer, TotalsSerializer
from controlplane.tasks.bounded_reads import progress_of
from controlplane.tasks.models import Goal, Status, Task, task_kinds
from controlplane.tasks.selectors import Report, shown_spec, task_duration, why_nothing


class TasksQuery(SearchQuery):
    status = serializers.ChoiceField(Status.choices, required=False)
    kind = serializers.ChoiceField([], required=False)
    datasource = serializers.CharField(required=False, max_length=200)
    supervisor = serializers.CharField(required=False, max_length=200)

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        fields["kind"] = serializers.ChoiceField(task_kinds(), required=False)
        return fields


class TaskSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    kind = serializers.CharField(help_text=f"The task's kind: {', '.join(dict(task_kinds()))}.")
    datasource = serializers.CharField(source="datasource.name")
    team = serializers.CharField(source="datasource.team.name")
    supervisor = serializers.SerializerMethodField(help_text="The id of its supervisor. Null for a manual task.")
    spec_version = serializers.IntegerField(allow_null=True)
    status = serializers.ChoiceField(Status.choices)
    goal = serializers.ChoiceField(Goal.choices)
    indexers_wanted = serializers.IntegerField()
    published = serializers.SerializerMethodField(help_text="Number of published rows.")
    submitted_by = serializers.CharField(source="submitted_by.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()
    launched_at = serializers.DateTimeField(allow_null=True)
    host = serializers.CharField(help_text="The host on which it was launched. Empty before that.")
    shared_application = serializers.CharField(
        help_text="The application that it shares with other small topics. Empty if it has its own."
    )
    started_at = serializers.DateTimeField(allow_null=True)
    last_heartbeat_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    duration_s = serializers.SerializerMethodField()
    error = serializers.CharField()
    message = serializers.CharField()

    def get_supervisor(self, task: Task) -> str | None:
        return task.supervisor_id or None

    def get_published(self, task: Task) -> int:
        return int(getattr(task, "published", 0))  # a task just made has no annotation yet

    def get_duration_s(self, task: Task) -> float | None:
        return _seconds(task_duration(task))


class BoundedProgressSerializer(serializers.Serializer[Any]):
    total = serializers.IntegerField(help_text="Offsets that the task reads.")
    done = serializers.IntegerField(help_text="How many of them are settled, by any task.")
    percent = serializers.IntegerField()
    seconds_left = serializers.IntegerField(
        allow_null=True, help_text="At the rate of the last minute. Null while that is unknown."
    )


class TaskDetailSerializer(TaskSerializer):
    progress = serializers.SerializerMethodField(help_text="Of a bounded read. Null for other tasks.")
    spec = serializers.SerializerMethodField()
    observation = serializers.JSONField(help_text="The topic's partitions and offsets when they were last read.")
    why_nothing = serializers.SerializerMethodField()

    @extend_schema_field(BoundedProgressSerializer(allow_null=True))
    def get_progress(self, task: Task) -> Any:
        return BoundedProgressSerializer(progress_of(task)).data if task.is_bounded else None

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_spec(self, task: Task) -> dict[str, Any]:
        return shown_spec(task.spec)

    @extend_schema_field(ReasonSerializer(many=True))
    def get_why_nothing(self, task: Task) -> Any:
        return ReasonSerializer(why_nothing(task), many=True).data


class IndexerSerializer(serializers.Serializer[Any]):
    """An indexer. The fields from ``state`` on are null before the first heartbeat."""

    number = serializers.IntegerField()
    totals = TotalsSerializer()
    state = serializers.CharField(source="seen.state", default=None, allow_null=True)
    epoch = serializers.IntegerField(source="seen.epoch", default=None, allow_null=True)
    pid = serializers.IntegerField(source="seen.pid", default=None, allow_null=True)
    in_flight = serializers.IntegerField(source="seen.in_flight", default=None, allow_null=True)
    partitions = serializers.ListField(
        child=serializers.IntegerField(), source="seen.partitions", default=None, allow_null=True
    )
    restarts = serializers.IntegerField(source="seen.restarts", default=None, allow_null=True)
    ack_failures = serializers.IntegerField(source="seen.ack_failures", default=None, allow_null=True)
    redelivery_counts = serializers.DictField(
        child=serializers.IntegerField(), source="seen.redelivery_counts", default=None, allow_null=True
    )
    message = serializers.CharField(source="seen.message", default=None, allow_null=True)
    last_heartbeat_at = serializers.DateTimeField(source="seen.last_heartbeat_at", default=None, allow_null=True)


class UnreadSerializer(serializers.Serializer[Any]):
    place = serializers.CharField(help_text="The file, and the byte or row where the record begins.")
    start = serializers.CharField(
        help_text="The beginning of the record's text. A row of Parquet, ORC or Avro is shown as JSON."
    )
    error = serializers.CharField()
    stored = serializers.BooleanField(
        help_text="True: it was stored without its faulty fields. False: it could not be read."
    )


class ReportSerializer(serializers.Serializer[Any]):
    task = serializers.CharField(source="task.id")
    status = serializers.ChoiceField(Status.choices, source="task.status")
    error = serializers.CharField(source="task.error")
    duration_s = serializers.SerializerMethodField()
    totals = TotalsSerializer()
    indexers = IndexerSerializer(many=True)
    parse_exceptions = QuarantinedSerializer(
        many=True, help_text="Records with parse errors, at most maxSavedParseExceptions."
    )
    unread = UnreadSerializer(
        many=True,
        source="task.unread",
        help_text="Unreadable records of a batch task, or of a failed task that did not publish them; at most "
        "maxSavedParseExceptions.",
    )
    options_without_effect = serializers.ListField(child=serializers.CharField(), source="without_effect")
    events = EventSerializer(many=True)
    why_nothing = ReasonSerializer(many=True, source="reasons")

    def get_duration_s(self, report: Report) -> float | None:
        return _seconds(report.duration)


class StopBody(BodySerializer):
    finish = serializers.BooleanField(
        default=False,
        help_text="True: the task publishes its rows first. False: it releases its records, and others read "
        "them again.",
    )


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
