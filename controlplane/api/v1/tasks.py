"""Tasks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import TEAM_PARAMETER, HeadgateView, body_of, query_of
from controlplane.api.idempotency import IDEMPOTENCY_KEY, once_per_key
from controlplane.api.pagination import Key, page_of, page_response, page_schema
from controlplane.api.v1.serializers import tasks as serializers
from controlplane.tasks import selectors, services
from ingestion.specs.tasks.any_task import AnyTaskSpec

NEWEST_FIRST = (Key("created_at", datetime, descending=True), Key("id", str, descending=True))


class TasksView(HeadgateView):
    @extend_schema(
        operation_id="list_tasks",
        tags=["tasks"],
        parameters=[serializers.TasksQuery],
        responses=page_schema(serializers.TaskSerializer),
    )
    def get(self, request: Request) -> Response:
        """Your teams' tasks, newest first."""
        query = query_of(request, serializers.TasksQuery)
        filters: dict[str, Any] = {k: v for k, v in query.items() if k not in ("limit", "cursor")}
        tasks = selectors.list_tasks(self.actor, **filters)
        return page_response(page_of(request, tasks, NEWEST_FIRST, query), serializers.TaskSerializer)

    @extend_schema(
        operation_id="submit_task",
        tags=["tasks"],
        parameters=[TEAM_PARAMETER, IDEMPOTENCY_KEY],
        request=AnyTaskSpec,
        responses={201: serializers.TaskDetailSerializer},
    )
    @once_per_key
    def post(self, request: Request) -> Response:
        """Submit a task spec: flat, as Druid documents it for share groups, or nested under `spec`."""
        task = services.submit_task(user=self.actor, document=request.data, team_name=self.team_name)
        return Response(
            serializers.TaskDetailSerializer(selectors.get_task(self.actor, task.pk)).data,
            status=status.HTTP_201_CREATED,
            headers={"Location": reverse("api:task", args=[task.pk])},
        )


class TaskView(HeadgateView):
    @extend_schema(operation_id="get_task", tags=["tasks"], responses=serializers.TaskDetailSerializer)
    def get(self, request: Request, task_id: str) -> Response:
        """One task with its spec. Secrets are masked."""
        return Response(serializers.TaskDetailSerializer(selectors.get_task(self.actor, task_id)).data)


class ReportView(HeadgateView):
    @extend_schema(operation_id="get_task_report", tags=["tasks"], responses=serializers.ReportSerializer)
    def get(self, request: Request, task_id: str) -> Response:
        """The report of a task: counters in total and by indexer. A running task's report is preliminary."""
        report = selectors.task_report(self.actor, selectors.get_task(self.actor, task_id))
        return Response(serializers.ReportSerializer(report).data)


class LogView(HeadgateView):
    @extend_schema(
        operation_id="get_task_log",
        tags=["tasks"],
        responses={(200, "text/plain"): OpenApiResponse(OpenApiTypes.STR, description="The end of the log.")},
    )
    def get(self, request: Request, task_id: str) -> HttpResponse:
        """The last 64 KiB of the application's log."""
        return log_response(selectors.task_log_tail(selectors.get_task(self.actor, task_id)))


def log_response(text: str | bytes) -> HttpResponse:
    """The log as plain text, so that browsers do not read it as markup."""
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


class StopView(HeadgateView):
    @extend_schema(
        operation_id="stop_task",
        tags=["tasks"],
        request=serializers.StopBody,
        responses=serializers.TaskDetailSerializer,
    )
    def post(self, request: Request, task_id: str) -> Response:
        """Ask a task to end. Needs the role operator."""
        task = selectors.get_task(self.actor, task_id)
        finish = body_of(request, serializers.StopBody)["finish"]
        services.stop_task(user=self.actor, task=task, finish=finish)
        return Response(serializers.TaskDetailSerializer(selectors.get_task(self.actor, task_id)).data)
