"""Druid's task addresses."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime

from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.utils.dateparse import parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import TEAM_PARAMETER
from controlplane.api.druid import openapi, shapes
from controlplane.api.druid.base import DruidView
from controlplane.api.v1.tasks import log_response
from controlplane.common.errors import FieldError, InvalidInput
from controlplane.publishing.selectors.published import rates
from controlplane.tasks import capacity, selectors, services
from controlplane.tasks.models import Status, Task, task_types
from ingestion.specs.tasks.any_task import AnyTaskSpec

MAX_TASKS = 1000
# Druid's word for a state → our rows.
IN_STATE = {
    "running": Q(status=Status.RUNNING),
    "pending": Q(status=Status.PENDING, launched_at__isnull=False),
    "waiting": Q(status=Status.PENDING, launched_at=None),
    "complete": Q(status__in=[Status.SUCCESS, Status.FAILED]),
}


class SubmitTaskView(DruidView):
    @extend_schema(
        operation_id="druid_submit_task",
        tags=["Druid-shaped"],
        parameters=[TEAM_PARAMETER],
        request=AnyTaskSpec,
        responses={(200, "application/json"): openapi.TASK_ID},
    )
    def post(self, request: Request) -> Response:
        """Submit a task spec. Answers `{"task": id}`."""
        task = services.submit_task(user=self.actor, document=request.data, team_name=self.team_name)
        return Response({"task": task.pk})


class TasksView(DruidView):
    @extend_schema(
        operation_id="druid_list_tasks",
        tags=["Druid-shaped"],
        parameters=[
            OpenApiParameter("state", str, enum=sorted(IN_STATE)),
            OpenApiParameter("datasource", str),
            OpenApiParameter("type", str),
            OpenApiParameter("createdTimeInterval", str, description="Two ISO 8601 times, joined by `_` or `/`."),
            OpenApiParameter(
                "max", int, description=f"At most {MAX_TASKS}. The limit counts all tasks, not only complete ones."
            ),
        ],
        responses={(200, "application/json"): openapi.TASK_STATUSES},
    )
    def get(self, request: Request) -> Response:
        """The statuses of tasks, newest first."""
        query = request.query_params
        tasks = selectors.list_tasks(self.actor, datasource=query.get("datasource", ""))
        if "state" in query:
            tasks = _filter_by_state(tasks, query["state"])
        for name, narrow in (("type", filter_by_type), ("createdTimeInterval", _filter_by_created)):
            if query.get(name):
                tasks = narrow(tasks, query[name])
        return Response([shapes.task_status(t) for t in tasks[: limit_of(query.get("max"))]])


class TaskView(DruidView):
    @extend_schema(
        operation_id="druid_get_task",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.TASK_PAYLOAD},
    )
    def get(self, request: Request, task_id: str) -> Response:
        """A task's spec: `{"task": id, "payload": spec}`. Secrets are masked."""
        task = selectors.get_task(self.actor, task_id)
        return Response({"task": task.pk, "payload": shapes.task_payload(task)})


class StatusView(DruidView):
    @extend_schema(
        operation_id="druid_get_task_status",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.TASK_STATUS},
    )
    def get(self, request: Request, task_id: str) -> Response:
        """A task's status: `{"task": id, "status": {…}}`."""
        task = selectors.get_task(self.actor, task_id)
        return Response({"task": task.pk, "status": shapes.task_status(task)})


class ReportsView(DruidView):
    @extend_schema(operation_id="druid_get_task_reports", tags=["Druid-shaped"], responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, task_id: str) -> Response:
        """A task's report: Druid's `ingestionStatsAndErrors`, and Headgate's own counters under `headgate`."""
        task = selectors.get_task(self.actor, task_id)
        averages = None if task.ended else rates([task.pk])[task.pk]
        return Response(shapes.task_reports(selectors.task_report(self.actor, task), averages))


class LogView(DruidView):
    @extend_schema(
        operation_id="druid_get_task_log",
        tags=["Druid-shaped"],
        parameters=[
            OpenApiParameter(
                "offset",
                int,
                description="Start at this byte. A negative number counts from the end. At most 1 MiB is returned.",
            )
        ],
        responses={(200, "text/plain"): OpenApiResponse(OpenApiTypes.STR, description="The log, or its end.")},
    )
    def get(self, request: Request, task_id: str) -> HttpResponse:
        """The last 64 KiB of the application's log. With `offset`, the log from there on."""
        task = selectors.get_task(self.actor, task_id)
        offset = _offset(request.query_params.get("offset"))
        return log_response(selectors.task_log_tail(task) if offset is None else selectors.task_log_from(task, offset))


class ShutdownView(DruidView):
    @extend_schema(
        operation_id="druid_shutdown_task",
        tags=["Druid-shaped"],
        request=None,
        responses={(200, "application/json"): openapi.TASK_ID},
    )
    def post(self, request: Request, task_id: str) -> Response:
        """Ask a task to end. It releases its unpublished records. An ended task does not change, as in Druid."""
        task = selectors.get_task(self.actor, task_id)
        with suppress(services.EndedAlready):
            services.stop_task(user=self.actor, task=task)
        return Response({"task": task_id})


class CapacityView(DruidView):
    @extend_schema(
        operation_id="druid_total_worker_capacity",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.CAPACITY},
    )
    def get(self, request: Request) -> Response:
        """The number of slots. -1 means no limit."""
        return Response(shapes.worker_capacity(capacity.shown_pool()))


def _filter_by_state(tasks: QuerySet[Task], state: str) -> QuerySet[Task]:
    if state not in IN_STATE:
        raise _fault("state", f"must be one of {', '.join(IN_STATE)}")
    return tasks.filter(IN_STATE[state])


def filter_by_type(tasks: QuerySet[Task], kind: str) -> QuerySet[Task]:
    """The tasks of this type, by Druid's name of the type. No tasks for an unknown type, as in Druid."""
    return tasks.filter(kind__in=task_types().get(kind, ()))


def _filter_by_created(tasks: QuerySet[Task], interval: str) -> QuerySet[Task]:
    start, _, end = interval.replace("_", "/").partition("/")
    times = [_time(start), _time(end)]
    return tasks.filter(created_at__gte=times[0], created_at__lt=times[1])


def _time(text: str) -> datetime:
    try:
        time = parse_datetime(text)
    except ValueError:
        time = None
    if time is None:
        raise _fault("createdTimeInterval", "must be two ISO 8601 times joined by '_'")
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def limit_of(text: str | None) -> int:
    """The largest number of tasks to return. Raises ``InvalidInput``."""
    if text is None:
        return MAX_TASKS
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 18):
        raise _fault("max", "must be a whole number of at least 0")
    return min(int(text), MAX_TASKS)


def _offset(text: str | None) -> int | None:
    if text is None:
        return None
    if re.fullmatch(r"-?[0-9]{1,18}", text) is None:
        raise _fault("offset", "must be a whole number")
    return int(text)


def _fault(name: str, message: str) -> InvalidInput:
    return InvalidInput("The query parameters have errors.", [FieldError("", message, name)])
