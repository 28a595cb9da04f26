"""Druid's Overlord about itself: leader, workers, tasks by state, locks."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.druid import openapi, shapes
from controlplane.api.druid.base import DruidView
from controlplane.api.druid.tasks import IN_STATE, MAX_TASKS, filter_by_type, limit_of
from controlplane.common.errors import InvalidInput
from controlplane.tasks import capacity, selectors
from controlplane.tasks.models import Status


class LeaderView(DruidView):
    @extend_schema(
        operation_id="druid_leader",
        tags=["Druid-shaped"],
        responses={
            (200, "application/json"): OpenApiResponse(OpenApiTypes.URI, description="The address, without quotes.")
        },
    )
    def get(self, request: Request) -> HttpResponse:
        """This site's address, without quotes, as in Druid. Every process is a leader."""
        return HttpResponse(request.build_absolute_uri("/").rstrip("/"), content_type="application/json")


class IsLeaderView(DruidView):
    """For load balancers. Needs no login, as in Druid."""

    authentication_classes: list[Any] = []
    permission_classes = [AllowAny]

    @extend_schema(
        operation_id="druid_is_leader",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.LEADER},
        auth=[],
    )
    def get(self, request: Request) -> Response:
        """Always `{"leader": true}`."""
        return Response({"leader": True})


@extend_schema_view(get=extend_schema(operation_id="druid_coordinator_leader"))
class CoordinatorLeaderView(LeaderView):
    pass


@extend_schema_view(get=extend_schema(operation_id="druid_coordinator_is_leader"))
class CoordinatorIsLeaderView(IsLeaderView):
    pass


class WorkersView(DruidView):
    @extend_schema(
        operation_id="druid_list_workers",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.WORKERS},
    )
    def get(self, request: Request) -> Response:
        """All slots as one worker. It has only tasks that you may see. Its capacity is the whole installation's."""
        tasks = selectors.list_tasks(self.actor)
        running = list(tasks.filter(status=Status.RUNNING)[:MAX_TASKS])
        last = tasks.exclude(ended_at=None).order_by("-ended_at").first()
        return Response([shapes.worker(request.get_host(), str(request.scheme), capacity.shown_pool(), running, last)])


class WorkerConfigView(DruidView):
    @extend_schema(
        operation_id="druid_get_worker_config",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.WORKER_CONFIG},
    )
    def get(self, request: Request) -> Response:
        """How tasks are assigned to workers. Headgate has one worker and no autoscaler of workers."""
        strategy = {"type": "equalDistribution", "affinityConfig": None}
        return Response({"type": "default", "selectStrategy": strategy, "autoScaler": None})


class ScalingView(DruidView):
    @extend_schema(operation_id="druid_get_scaling", tags=["Druid-shaped"], responses={200: None})
    def get(self, request: Request) -> HttpResponse:
        """Always empty, as in a Druid without an autoscaler of workers."""
        return HttpResponse(content_type="application/json")


class _TasksInState(DruidView):
    state = ""  # a word of ``IN_STATE``

    def statuses(self, request: Request, most: str | None = None) -> Response:
        """The statuses of the tasks in this state, newest first."""
        tasks = selectors.list_tasks(self.actor).filter(IN_STATE[self.state])
        kind = request.query_params.get("type")
        if kind:
            tasks = filter_by_type(tasks, kind)
        return Response([shapes.task_status(t) for t in tasks[: limit_of(most)]])


class RunningTasksView(_TasksInState):
    state = "running"

    @extend_schema(
        operation_id="druid_list_running_tasks",
        tags=["Druid-shaped"],
        parameters=[OpenApiParameter("type", str)],
        responses={(200, "application/json"): openapi.TASK_STATUSES},
    )
    def get(self, request: Request) -> Response:
        """Running tasks. `type`: only tasks of this type."""
        return self.statuses(request)


class PendingTasksView(_TasksInState):
    state = "pending"

    @extend_schema(
        operation_id="druid_list_pending_tasks",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.TASK_STATUSES},
    )
    def get(self, request: Request) -> Response:
        """Tasks that were launched and do not run yet."""
        return self.statuses(request)


class WaitingTasksView(_TasksInState):
    state = "waiting"

    @extend_schema(
        operation_id="druid_list_waiting_tasks",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.TASK_STATUSES},
    )
    def get(self, request: Request) -> Response:
        """Tasks that wait to be launched."""
        return self.statuses(request)


class CompleteTasksView(_TasksInState):
    state = "complete"

    @extend_schema(
        operation_id="druid_list_complete_tasks",
        tags=["Druid-shaped"],
        parameters=[OpenApiParameter("n", int, description=f"At most {MAX_TASKS}.")],
        responses={(200, "application/json"): openapi.TASK_STATUSES},
    )
    def get(self, request: Request) -> Response:
        """Ended tasks, newest first, at most `n`."""
        return self.statuses(request, request.query_params.get("n"))


class TaskStatusesView(DruidView):
    @extend_schema(
        operation_id="druid_task_statuses",
        tags=["Druid-shaped"],
        request={"application/json": openapi.array(openapi.TEXT)},
        responses={(200, "application/json"): openapi.STATUSES_BY_ID},
    )
    def post(self, request: Request) -> Response:
        """The short statuses of the given tasks by id. Tasks that do not exist or that you may not see are left out."""
        ids = request.data
        if not (isinstance(ids, list) and ids and all(isinstance(i, str) for i in ids)):
            raise InvalidInput("The body must be a list of task ids.")
        if len(ids) > MAX_TASKS:
            raise InvalidInput(f"One request may ask for at most {MAX_TASKS} tasks.")
        tasks = selectors.list_tasks(self.actor).filter(pk__in=ids)
        return Response({task.pk: shapes.short_status(task) for task in tasks})


class LockedIntervalsView(DruidView):
    @extend_schema(
        operation_id="druid_locked_intervals",
        tags=["Druid-shaped"],
        request=OpenApiTypes.ANY,
        responses={(200, "application/json"): openapi.LOCKED},
    )
    def post(self, request: Request) -> Response:
        """Always empty, because Headgate's tasks do not lock intervals."""
        return Response({})


@extend_schema_view(post=extend_schema(operation_id="druid_locked_intervals_v2"))
class LockedIntervalsV2View(LockedIntervalsView):
    pass
