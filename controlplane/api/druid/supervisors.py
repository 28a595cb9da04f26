"""Druid's supervisor addresses. A terminated supervisor is not found."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import TEAM_PARAMETER
from controlplane.api.druid import shapes
from controlplane.api.druid.base import DruidView
from controlplane.common.errors import NotFound
from controlplane.segments.selectors import progress
from controlplane.supervisors import selectors, services
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from controlplane.tasks.sources import sources_of
from controlplane.teams.models import User
from ingestion.specs import SupervisorSpec

MOST_SUPERVISORS = 1000


def _active(user: User, supervisor_id: str) -> Supervisor:
    found = selectors.get_supervisor(user, supervisor_id)
    if found.terminated_at is not None:
        raise NotFound(f"There is no supervisor {supervisor_id!r}.")
    return found


class SupervisorsView(DruidView):
    @extend_schema(
        operation_id="druid_list_supervisors",
        tags=["Druid-shaped"],
        parameters=[OpenApiParameter("full", str), OpenApiParameter("state", bool)],
        responses=OpenApiTypes.OBJECT,
    )
    def get(self, request: Request) -> Response:
        """An array of ids; of objects with `?full` or `?state=true`."""
        found: list[Any] = list(selectors.list_supervisors(self.actor)[:MOST_SUPERVISORS])
        if self.flag("full"):
            return Response([shapes.supervisor_full(s) for s in found])
        if self.flag("state"):
            return Response([shapes.supervisor_state(s) for s in found])
        return Response([s.pk for s in found])

    @extend_schema(
        operation_id="druid_submit_supervisor",
        tags=["Druid-shaped"],
        parameters=[TEAM_PARAMETER],
        request=SupervisorSpec,
        responses=OpenApiTypes.OBJECT,
    )
    def post(self, request: Request) -> Response:
        """Create a supervisor or change its spec; answers `{"id": id}`."""
        made = services.submit_supervisor(user=self.actor, document=request.data, team_name=self.team_name)
        return Response({"id": made.pk})


class SupervisorView(DruidView):
    @extend_schema(operation_id="druid_get_supervisor", tags=["Druid-shaped"], responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, supervisor_id: str) -> Response:
        """Its spec, secrets masked."""
        return Response(shapes.supervisor_spec(_active(self.actor, supervisor_id)))


class StatusView(DruidView):
    @extend_schema(operation_id="druid_get_supervisor_status", tags=["Druid-shaped"], responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, supervisor_id: str) -> Response:
        """The status report."""
        found: Any = _active(self.actor, supervisor_id)
        io_config = found.spec["spec"]["ioConfig"]
        sources = sources_of(found.datasource_id, io_config, found.pk).filter(current=True)
        running = Task.objects.active().reading().filter(supervisor_id=found.pk)
        partitions = [p for source in sources for p in progress(source)]
        return Response(shapes.supervisor_status(found, list(running), partitions))


class SuspendView(DruidView):
    @extend_schema(
        operation_id="druid_suspend_supervisor", tags=["Druid-shaped"], request=None, responses=OpenApiTypes.OBJECT
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Answers the spec with `"suspended": true`."""
        services.suspend(user=self.actor, supervisor=_active(self.actor, supervisor_id))
        return Response(shapes.supervisor_spec(_active(self.actor, supervisor_id)))


class ResumeView(DruidView):
    @extend_schema(
        operation_id="druid_resume_supervisor", tags=["Druid-shaped"], request=None, responses=OpenApiTypes.OBJECT
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Answers the spec with `"suspended": false`."""
        services.resume(user=self.actor, supervisor=_active(self.actor, supervisor_id))
        return Response(shapes.supervisor_spec(_active(self.actor, supervisor_id)))


class TerminateView(DruidView):
    @extend_schema(
        operation_id="druid_terminate_supervisor", tags=["Druid-shaped"], request=None, responses=OpenApiTypes.OBJECT
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Answers `{"id": id}`."""
        services.terminate(user=self.actor, supervisor=_active(self.actor, supervisor_id))
        return Response({"id": supervisor_id})
