"""Druid's supervisor addresses. A terminated supervisor is not found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import TEAM_PARAMETER
from controlplane.api.druid import compaction_supervisors, openapi, shapes
from controlplane.api.druid.base import DruidView
from controlplane.api.druid.compaction import COMMENT
from controlplane.common.errors import InvalidInput, NotFound
from controlplane.compaction import supervisor_documents
from controlplane.supervisors import backfills, offset_reset, selectors, services
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.status import status_report, task_stats
from controlplane.tasks.models import Status
from controlplane.tasks.selectors import list_tasks, parse_exceptions
from controlplane.teams.models import User
from ingestion.specs.tasks.ingestion_spec import SupervisorSpec

MAX_SUPERVISORS = 1000


@contextmanager
def _refused_as_druid() -> Iterator[None]:
    """Turns a conflict (already suspended or running) into Druid's 400. Raises ``InvalidInput``."""
    try:
        yield
    except services.AlreadyInState as refused:
        raise InvalidInput(refused.detail) from refused


def _get_active(user: User, supervisor_id: str) -> Supervisor:
    if supervisor_id.startswith(supervisor_documents.PREFIX):
        supervisor_documents.get_supervisor(user, supervisor_id.removeprefix(supervisor_documents.PREFIX))
        raise InvalidInput(f"Supervisor {supervisor_id!r} merges segments, and has no offsets and no tasks.")
    supervisor = selectors.get_supervisor(user, supervisor_id)
    if supervisor.terminated_at is not None:
        raise NotFound(f"There is no supervisor {supervisor_id!r}.")
    return supervisor


def _history(supervisor: Supervisor) -> list[dict[str, Any]]:
    versions, switches = selectors.versions(supervisor), selectors.switches(supervisor)
    return shapes.supervisor_history(supervisor, list(versions), list(switches))


class SupervisorsView(DruidView):
    @extend_schema(
        operation_id="druid_list_supervisors",
        tags=["Druid-shaped"],
        parameters=[OpenApiParameter("full", str), OpenApiParameter("state", bool)],
        responses={(200, "application/json"): openapi.SUPERVISORS},
    )
    def get(self, request: Request) -> Response:
        """The ids of all supervisors. With `?full` (with any value) or `?state=true`, objects."""
        supervisors: list[Any] = list(selectors.list_supervisors(self.actor)[:MAX_SUPERVISORS])
        merging = list(supervisor_documents.list_supervisors(self.actor)[:MAX_SUPERVISORS])
        if self.flag("full"):
            return Response([*map(shapes.supervisor_full, supervisors), *map(compaction_supervisors.full_of, merging)])
        if self.is_true("state"):
            return Response(
                [*map(shapes.supervisor_state, supervisors), *map(compaction_supervisors.state_of, merging)]
            )
        return Response(
            [*(s.pk for s in supervisors), *(supervisor_documents.id_of(row.datasource) for row in merging)]
        )

    @extend_schema(
        operation_id="druid_submit_supervisor",
        tags=["Druid-shaped"],
        parameters=[TEAM_PARAMETER, OpenApiParameter("skipRestartIfUnmodified", bool)],
        request=SupervisorSpec,
        responses={(200, "application/json"): openapi.ID},
    )
    def post(self, request: Request) -> Response:
        """Create a supervisor or change its spec. Answers `{"id": id}`. The type `autocompact` is for compaction."""
        if supervisor_documents.is_supervisor(request.data):
            comment, same = request.headers.get(COMMENT, ""), self.is_true("skipRestartIfUnmodified")
            return Response(
                {
                    "id": supervisor_documents.submit(
                        user=self.actor, document=request.data, comment=comment, skip_unmodified=same
                    )
                }
            )
        supervisor = services.submit_supervisor(
            user=self.actor,
            document=request.data,
            team_name=self.team_name,
            skip_unmodified=self.is_true("skipRestartIfUnmodified"),
        )
        return Response({"id": supervisor.pk})


class SupervisorView(DruidView):
    @extend_schema(
        operation_id="druid_get_supervisor",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.SPEC},
    )
    def get(self, request: Request, supervisor_id: str) -> Response:
        """A supervisor's spec. Secrets are masked."""
        return Response(shapes.supervisor_spec(_get_active(self.actor, supervisor_id)))


class StatusView(DruidView):
    @extend_schema(
        operation_id="druid_get_supervisor_status",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.REPORT},
    )
    def get(self, request: Request, supervisor_id: str) -> Response:
        """A supervisor's status report."""
        supervisor = _get_active(self.actor, supervisor_id)
        return Response(shapes.supervisor_status(supervisor, status_report(supervisor)))


class HealthView(DruidView):
    @extend_schema(
        operation_id="druid_get_supervisor_health",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.HEALTH, (503, "application/json"): openapi.HEALTH},
    )
    def get(self, request: Request, supervisor_id: str) -> Response:
        """A supervisor's health: `{"healthy": true}` with 200, or `{"healthy": false}` with 503."""
        healthy = selectors.is_healthy(_get_active(self.actor, supervisor_id))
        return Response({"healthy": healthy}, status=200 if healthy else 503)


class StatsView(DruidView):
    @extend_schema(
        operation_id="druid_get_supervisor_stats",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.STATS},
    )
    def get(self, request: Request, supervisor_id: str) -> Response:
        """Row stats of the supervisor's running tasks, with averages per second over 1, 5 and 15 minutes."""
        return Response(shapes.supervisor_stats(task_stats(_get_active(self.actor, supervisor_id))))


class ParseErrorsView(DruidView):
    @extend_schema(
        operation_id="druid_get_supervisor_parse_errors",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.PARSE_ERRORS},
    )
    def get(self, request: Request, supervisor_id: str) -> Response:
        """Records that the supervisor's running tasks could not read, newest first."""
        supervisor = _get_active(self.actor, supervisor_id)
        readers = [supervisor.pk, *supervisor.children.values_list("pk", flat=True)]
        running = list_tasks(self.actor).filter(supervisor_id__in=readers, status=Status.RUNNING)
        records = [record for task in running for record in parse_exceptions(self.actor, task)]
        newest = sorted(records, key=lambda record: record.created_at, reverse=True)
        return Response([shapes.unparseable_event(record) for record in newest])


class AllHistoryView(DruidView):
    @extend_schema(
        operation_id="druid_list_histories",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.HISTORIES},
    )
    def get(self, request: Request) -> Response:
        """The spec versions of all supervisors by id, including terminated ones."""
        supervisors = Supervisor.objects.visible_to(self.actor).order_by("pk")[:MAX_SUPERVISORS]
        merging = supervisor_documents.list_supervisors(self.actor)[:MAX_SUPERVISORS]
        return Response(
            {s.pk: _history(s) for s in supervisors} | dict(map(compaction_supervisors.id_and_history, merging))
        )


class HistoryView(DruidView):
    @extend_schema(
        operation_id="druid_get_history",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.HISTORY},
    )
    def get(self, request: Request, supervisor_id: str) -> Response:
        """A supervisor's spec versions, suspensions and resumptions, newest first. A termination has no spec."""
        return Response(_history(selectors.get_supervisor(self.actor, supervisor_id)))


class ResetView(DruidView):
    @extend_schema(
        operation_id="druid_reset_supervisor",
        tags=["Druid-shaped"],
        request=None,
        responses={(200, "application/json"): openapi.ID},
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Delete the stored offsets. Records may be skipped or stored twice."""
        offset_reset.reset(user=self.actor, supervisor=_get_active(self.actor, supervisor_id))
        return Response({"id": supervisor_id})


class ResetOffsetsView(DruidView):
    @extend_schema(
        operation_id="druid_reset_offsets",
        tags=["Druid-shaped"],
        request=OpenApiTypes.OBJECT,
        responses={(200, "application/json"): openapi.ID},
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Set the stored offsets of some partitions with Druid's `partitionOffsetMap`. Without a body, delete all."""
        supervisor = _get_active(self.actor, supervisor_id)
        if not request.body:
            offset_reset.reset(user=self.actor, supervisor=supervisor)
            return Response({"id": supervisor_id})
        topic, offsets = shapes.partition_offsets(request.data)
        offset_reset.reset_offsets(user=self.actor, supervisor=supervisor, topic=topic, offsets=offsets)
        return Response({"id": supervisor_id})


class SkipAndFillView(DruidView):
    @extend_schema(
        operation_id="druid_reset_to_latest_and_backfill",
        tags=["Druid-shaped"],
        parameters=[OpenApiParameter("backfillTaskCount", int)],
        request=None,
        responses={(200, "application/json"): openapi.BACKFILL},
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Go on at the end of the topic, and read what is skipped by a backfill. No offset is stored twice."""
        text = request.query_params.get("backfillTaskCount", "")
        if text and not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise InvalidInput("backfillTaskCount must be a whole number, 1 or more.")
        plan = backfills.skip_and_fill(
            user=self.actor,
            supervisor=_get_active(self.actor, supervisor_id),
            task_count=int(text) if text else None,
        )
        return Response({"id": supervisor_id, "backfillSupervisorId": plan.backfill_id})


class HandOffView(DruidView):
    @extend_schema(
        operation_id="druid_hand_off",
        tags=["Druid-shaped"],
        request=OpenApiTypes.OBJECT,
        responses={(200, "application/json"): openapi.ID},
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Hand off: a new task starts, then the current one publishes and ends. The only task group is 0."""
        supervisor = _get_active(self.actor, supervisor_id)
        shapes.check_task_groups(request.data)
        offset_reset.hand_off(user=self.actor, supervisor=supervisor)
        return Response({"id": supervisor_id})


class SuspendAllView(DruidView):
    @extend_schema(
        operation_id="druid_suspend_all",
        tags=["Druid-shaped"],
        request=None,
        responses={(200, "application/json"): openapi.DONE},
    )
    def post(self, request: Request) -> Response:
        """Suspend all supervisors of your teams that you may suspend."""
        services.suspend_all(user=self.actor)
        supervisor_documents.switch_all(user=self.actor, suspended=True)
        return Response({"status": "success"})


class ResumeAllView(DruidView):
    @extend_schema(
        operation_id="druid_resume_all",
        tags=["Druid-shaped"],
        request=None,
        responses={(200, "application/json"): openapi.DONE},
    )
    def post(self, request: Request) -> Response:
        """Resume all supervisors of your teams that you may resume."""
        services.resume_all(user=self.actor)
        supervisor_documents.switch_all(user=self.actor, suspended=False)
        return Response({"status": "success"})


class TerminateAllView(DruidView):
    @extend_schema(
        operation_id="druid_terminate_all",
        tags=["Druid-shaped"],
        request=None,
        responses={(200, "application/json"): openapi.DONE},
    )
    def post(self, request: Request) -> Response:
        """Terminate all supervisors of teams in which you are an admin, and compaction where you are an operator."""
        services.terminate_all(user=self.actor)
        supervisor_documents.terminate_all(user=self.actor)
        return Response({"status": "success"})


class SuspendView(DruidView):
    @extend_schema(
        operation_id="druid_suspend_supervisor",
        tags=["Druid-shaped"],
        request=None,
        responses={(200, "application/json"): openapi.SPEC},
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Suspend a supervisor. Answers its spec with `"suspended": true`. 400 if it is already suspended."""
        with _refused_as_druid():
            services.suspend(user=self.actor, supervisor=_get_active(self.actor, supervisor_id))
        return Response(shapes.supervisor_spec(_get_active(self.actor, supervisor_id)))


class ResumeView(DruidView):
    @extend_schema(
        operation_id="druid_resume_supervisor",
        tags=["Druid-shaped"],
        request=None,
        responses={(200, "application/json"): openapi.SPEC},
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Resume a supervisor. Answers its spec with `"suspended": false`. 400 if it is not suspended."""
        with _refused_as_druid():
            services.resume(user=self.actor, supervisor=_get_active(self.actor, supervisor_id))
        return Response(shapes.supervisor_spec(_get_active(self.actor, supervisor_id)))


class TerminateView(DruidView):
    @extend_schema(
        operation_id="druid_terminate_supervisor",
        tags=["Druid-shaped"],
        request=None,
        responses={(200, "application/json"): openapi.ID},
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Terminate a supervisor. Answers `{"id": id}`."""
        services.terminate(user=self.actor, supervisor=_get_active(self.actor, supervisor_id))
        return Response({"id": supervisor_id})


@extend_schema_view(post=extend_schema(operation_id="druid_shut_down_supervisor", deprecated=True))
class ShutdownView(TerminateView):
    """Druid's older name of ``terminate``, for older scripts."""
