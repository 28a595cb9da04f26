"""Supervisors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import TEAM_PARAMETER, HeadgateView, body_of, query_of
from controlplane.api.etags import IF_MATCH, IF_NONE_MATCH, etag, version_or_none_yet
from controlplane.api.idempotency import IDEMPOTENCY_KEY, once_per_key
from controlplane.api.pagination import Key, PageQuery, page_of, page_response, page_schema
from controlplane.api.v1.serializers import supervisors as serializers
from controlplane.supervisors import autoscaler, offset_reset, selectors, services
from controlplane.supervisors.health_queries import health_by_supervisor, health_of_supervisor, with_health
from controlplane.supervisors.history import history
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.spec_plan import plan
from controlplane.supervisors.status import task_stats
from controlplane.teams.models import User
from ingestion.specs.tasks.ingestion_spec import SupervisorSpec


def detail(user: User, supervisor_id: str) -> dict[str, Any]:
    """A supervisor with all its fields."""
    supervisor: Any = selectors.get_supervisor(user, supervisor_id)
    supervisor.totals = selectors.supervisor_totals(supervisor)
    supervisor.topics = selectors.visible_children(user, supervisor)
    supervisor.auto_scaler = autoscaler.auto_scaler(supervisor)
    supervisor.health = health_of_supervisor(user, supervisor)
    supervisor.why_nothing = selectors.why_nothing(supervisor, supervisor.health)
    return dict(serializers.SupervisorDetailSerializer(supervisor).data)


class SupervisorsView(HeadgateView):
    @extend_schema(
        operation_id="list_supervisors",
        tags=["supervisors"],
        parameters=[serializers.SupervisorsQuery],
        responses=page_schema(serializers.SupervisorSerializer),
    )
    def get(self, request: Request) -> Response:
        """Your teams' supervisors by id. With `terminated=true`, only terminated ones. Else only others."""
        query = query_of(request, serializers.SupervisorsQuery)
        filters = {name: query.get(name, "") for name in ("search", "state", "team")}
        supervisors = selectors.list_supervisors(self.actor, **filters, terminated=query.get("terminated", False))
        if "health" in query:
            supervisors = with_health(self.actor, supervisors, query["health"])
        page = page_of(request, supervisors, [Key("id", str)], query)
        health = health_by_supervisor(self.actor, page.rows)
        for row in page.rows:
            row.health = health[row.pk]
        return page_response(page, serializers.SupervisorSerializer)

    @extend_schema(
        operation_id="submit_supervisor",
        tags=["supervisors"],
        parameters=[TEAM_PARAMETER, IF_MATCH, IF_NONE_MATCH, IDEMPOTENCY_KEY, serializers.SubmitQuery],
        request=SupervisorSpec,
        responses={200: serializers.SupervisorDetailSerializer, 201: serializers.SupervisorDetailSerializer},
    )
    @once_per_key
    def post(self, request: Request) -> Response:
        """Create a supervisor, or add a spec version to the supervisor with this id. Needs the role admin."""
        query, asked_at = query_of(request, serializers.SubmitQuery), timezone.now()
        supervisor = services.submit_supervisor(
            user=self.actor,
            document=request.data,
            team_name=self.team_name,
            skip_unmodified=query.get("skipRestartIfUnmodified", False),
            version=version_or_none_yet(request),
        )
        is_new = supervisor.version == 1 and supervisor.created_at >= asked_at
        return Response(
            detail(self.actor, supervisor.pk),
            status=status.HTTP_201_CREATED if is_new else status.HTTP_200_OK,
            headers={"Location": reverse("api:supervisor", args=[supervisor.pk]), **etag(supervisor.version)},
        )


class PlanView(HeadgateView):
    @extend_schema(
        operation_id="plan_supervisor",
        tags=["supervisors"],
        parameters=[TEAM_PARAMETER],
        request=SupervisorSpec,
        responses=serializers.SpecPlanSerializer,
    )
    def post(self, request: Request) -> Response:
        """What submitting this spec would change; nothing is changed. Fails as the submission would. For admins."""
        planned = plan(user=self.actor, document=request.data, team_name=self.team_name)
        return Response(serializers.SpecPlanSerializer(planned).data, headers=etag(planned.version))


class SupervisorView(HeadgateView):
    @extend_schema(
        operation_id="get_supervisor", tags=["supervisors"], responses=serializers.SupervisorDetailSerializer
    )
    def get(self, request: Request, supervisor_id: str) -> Response:
        """One supervisor with its spec. Secrets are masked. It may be terminated. `ETag` is its spec version."""
        found = detail(self.actor, supervisor_id)
        return Response(found, headers=etag(found["version"]))


class StatsView(HeadgateView):
    @extend_schema(
        operation_id="get_supervisor_stats",
        tags=["supervisors"],
        responses=serializers.TaskStatsSerializer(many=True),
    )
    def get(self, request: Request, supervisor_id: str) -> Response:
        """Counters of each running task: totals, and rates per second over the last 1, 5 and 15 minutes."""
        stats = task_stats(selectors.get_supervisor(self.actor, supervisor_id))
        return Response(serializers.TaskStatsSerializer(stats, many=True).data)


class VersionsView(HeadgateView):
    @extend_schema(
        operation_id="list_spec_versions",
        tags=["supervisors"],
        parameters=[PageQuery],
        responses=page_schema(serializers.VersionSerializer),
    )
    def get(self, request: Request, supervisor_id: str) -> Response:
        """The supervisor's spec versions, newest first. Each has its author, time, changes and termination, if any."""
        query = query_of(request, PageQuery)
        versions = history(selectors.get_supervisor(self.actor, supervisor_id))
        page = page_of(request, versions, [Key("version", int, descending=True)], query)
        return page_response(page, serializers.VersionSerializer)


class ScaleActionsView(HeadgateView):
    @extend_schema(
        operation_id="list_scale_actions",
        tags=["supervisors"],
        parameters=[PageQuery],
        responses=page_schema(serializers.ScaleActionSerializer),
    )
    def get(self, request: Request, supervisor_id: str) -> Response:
        """The autoscaler's actions, newest first: time, old and new number of indexers, and reason."""
        query = query_of(request, PageQuery)
        actions = selectors.get_supervisor(self.actor, supervisor_id).scale_actions.all()
        return page_response(
            page_of(request, actions, [Key("id", int, descending=True)], query), serializers.ScaleActionSerializer
        )


def _answer(user: User, supervisor_id: str, change: Callable[..., Supervisor], **values: Any) -> Response:
    change(user=user, supervisor=selectors.get_supervisor(user, supervisor_id), **values)
    return Response(detail(user, supervisor_id))


class SuspendView(HeadgateView):
    @extend_schema(
        operation_id="suspend_supervisor",
        tags=["supervisors"],
        request=None,
        responses=serializers.SupervisorDetailSerializer,
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Suspend a supervisor: its tasks publish and end, and no new ones start. Needs the role operator.

        409 if it is already suspended.
        """
        return _answer(self.actor, supervisor_id, services.suspend)


class ResumeView(HeadgateView):
    @extend_schema(
        operation_id="resume_supervisor",
        tags=["supervisors"],
        request=None,
        responses=serializers.SupervisorDetailSerializer,
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Resume a supervisor: its tasks start again. Needs the role operator. 409 if it is not suspended."""
        return _answer(self.actor, supervisor_id, services.resume)


class TerminateView(HeadgateView):
    @extend_schema(
        operation_id="terminate_supervisor",
        tags=["supervisors"],
        request=None,
        responses=serializers.SupervisorDetailSerializer,
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Stop a supervisor permanently. Its history stays. Needs the role admin."""
        return _answer(self.actor, supervisor_id, services.terminate)


class SuspendAllView(HeadgateView):
    @extend_schema(
        operation_id="suspend_supervisors", tags=["supervisors"], request=None, responses=serializers.ChangedSerializer
    )
    def post(self, request: Request) -> Response:
        """Suspend every running supervisor of the teams in which you are an operator."""
        return Response({"ids": services.suspend_all(user=self.actor)})


class ResumeAllView(HeadgateView):
    @extend_schema(
        operation_id="resume_supervisors", tags=["supervisors"], request=None, responses=serializers.ChangedSerializer
    )
    def post(self, request: Request) -> Response:
        """Resume every suspended supervisor of the teams in which you are an operator."""
        return Response({"ids": services.resume_all(user=self.actor)})


class TerminateAllView(HeadgateView):
    @extend_schema(
        operation_id="terminate_supervisors",
        tags=["supervisors"],
        request=None,
        responses=serializers.ChangedSerializer,
    )
    def post(self, request: Request) -> Response:
        """Terminate every supervisor of the teams in which you are an admin."""
        return Response({"ids": services.terminate_all(user=self.actor)})


class HandOffView(HeadgateView):
    @extend_schema(
        operation_id="hand_off_supervisor",
        tags=["supervisors"],
        request=None,
        responses=serializers.SupervisorDetailSerializer,
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Hand off: a new task starts, then the current one publishes and ends. Needs the role operator."""
        return _answer(self.actor, supervisor_id, offset_reset.hand_off)


class ScaleView(HeadgateView):
    @extend_schema(
        operation_id="scale_supervisor",
        tags=["supervisors"],
        request=serializers.ScaleBody,
        responses=serializers.SupervisorDetailSerializer,
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Change the number of indexers without a pause. This creates a spec version. Needs the role admin."""
        task_count = body_of(request, serializers.ScaleBody)["taskCount"]
        return _answer(self.actor, supervisor_id, services.scale, task_count=task_count)
