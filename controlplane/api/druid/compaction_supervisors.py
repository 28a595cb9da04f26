"""Druid's compaction supervisors: a datasource's compaction config at the addresses of supervisors.

The id is ``autocompact__`` and the datasource's name. They read no topic.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.druid import openapi
from controlplane.api.druid.base import DruidView
from controlplane.api.druid.compaction import COMMENT, STATUS, status_of
from controlplane.api.druid.openapi import FLAG, TEXT, shape
from controlplane.api.druid.shapes import instant
from controlplane.compaction import configs, selectors, supervisor_documents
from controlplane.compaction.models import ConfigChange, Configured
from controlplane.datasources.selectors import find_datasource

_TAG = ["Druid-shaped"]
_SPEC = shape(type=TEXT, id=TEXT, suspended=FLAG, spec=openapi.ANYTHING)
_REPORT = shape(id=TEXT, generationTime=openapi.TIME, payload=STATUS)


def state_of(row: Configured) -> dict[str, Any]:
    """An element of ``/supervisor?state=true``."""
    state = "SUSPENDED" if row.suspended else "RUNNING"
    return {
        "id": supervisor_documents.id_of(row.datasource),
        "state": state,
        "detailedState": state,
        "healthy": True,
        "suspended": row.suspended,
    }


def spec_of(row: Configured) -> dict[str, Any]:
    """Its spec, as ``/supervisor/{id}`` shows it: the config with its defaults."""
    return _spec(row.datasource.name, row.document, row.suspended)


def full_of(row: Configured) -> dict[str, Any]:
    """An element of ``/supervisor?full``."""
    return {**state_of(row), "spec": spec_of(row)}


def _spec(name: str, document: Any, suspended: bool) -> dict[str, Any]:
    config = configs.read_config(document).model_dump(mode="json", exclude_none=True)
    return {
        "type": supervisor_documents.TYPE,
        "id": f"{supervisor_documents.PREFIX}{name}",
        "suspended": suspended,
        "spec": config,
    }


def history_of(name: str, changes: list[ConfigChange]) -> list[dict[str, Any]]:
    """The config's changes, newest first. Druid's tombstone means that compaction was turned off."""
    tombstone = {
        "type": "NoopSupervisorSpec",
        "id": f"{supervisor_documents.PREFIX}{name}",
        "dataSources": [name],
        "suspended": False,
    }
    return [
        {
            "spec": tombstone if change.document is None else _spec(name, change.document, change.suspended),
            "version": instant(change.created_at),
        }
        for change in changes
    ]


def id_and_history(row: Configured) -> tuple[str, list[dict[str, Any]]]:
    """The supervisor's id and the changes of its config."""
    changes = selectors.list_changes(row.datasource)[: selectors.SHOWN_CHANGES]
    return supervisor_documents.id_of(row.datasource), history_of(row.datasource.name, list(changes))


class AutoCompactView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_supervisor", tags=_TAG, responses={(200, "application/json"): _SPEC}
    )
    def get(self, request: Request, name: str) -> Response:
        """A compaction config as a supervisor's spec. 404 if there is none."""
        return Response(spec_of(supervisor_documents.get_supervisor(self.actor, name)))


class StatusView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_supervisor_status", tags=_TAG, responses={(200, "application/json"): _REPORT}
    )
    def get(self, request: Request, name: str) -> Response:
        """How much of the datasource waits for compaction, is merged, and is skipped."""
        row = supervisor_documents.get_supervisor(self.actor, name)
        report = {"id": supervisor_documents.id_of(row.datasource), "generationTime": instant(timezone.now())}
        return Response({**report, "payload": status_of(row.datasource)})


class HealthView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_supervisor_health",
        tags=_TAG,
        responses={(200, "application/json"): openapi.HEALTH},
    )
    def get(self, request: Request, name: str) -> Response:
        """Always `{"healthy": true}`, because a failed merge is retried automatically."""
        supervisor_documents.get_supervisor(self.actor, name)
        return Response({"healthy": True})


class StatsView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_supervisor_stats",
        tags=_TAG,
        responses={(200, "application/json"): openapi.STATS},
    )
    def get(self, request: Request, name: str) -> Response:
        """Always empty: compaction supervisors read no records."""
        supervisor_documents.get_supervisor(self.actor, name)
        return Response({})


class HistoryView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_supervisor_history",
        tags=_TAG,
        responses={(200, "application/json"): openapi.HISTORY},
    )
    def get(self, request: Request, name: str) -> Response:
        """The changes of the compaction config, newest first."""
        datasource = find_datasource(self.actor, name)
        return Response(history_of(name, list(selectors.list_changes(datasource)[: selectors.SHOWN_CHANGES])))


class SuspendView(DruidView):
    @extend_schema(
        operation_id="druid_suspend_compaction_supervisor",
        tags=_TAG,
        request=None,
        responses={(200, "application/json"): _SPEC},
    )
    def post(self, request: Request, name: str) -> Response:
        """Suspend compaction: no new merges are planned. 400 if it is already suspended."""
        return Response(_switch(self, name, suspended=True))


class ResumeView(DruidView):
    @extend_schema(
        operation_id="druid_resume_compaction_supervisor",
        tags=_TAG,
        request=None,
        responses={(200, "application/json"): _SPEC},
    )
    def post(self, request: Request, name: str) -> Response:
        """Resume compaction with its config. 400 if it is not suspended."""
        return Response(_switch(self, name, suspended=False))


def _switch(view: DruidView, name: str, *, suspended: bool) -> dict[str, Any]:
    row = supervisor_documents.get_supervisor(view.actor, name)
    comment = view.request.headers.get(COMMENT, "")
    supervisor_documents.switch(user=view.actor, row=row, suspended=suspended, comment=comment)
    return spec_of(supervisor_documents.get_supervisor(view.actor, name))


class TerminateView(DruidView):
    @extend_schema(
        operation_id="druid_terminate_compaction_supervisor",
        tags=_TAG,
        request=None,
        responses={(200, "application/json"): openapi.ID},
    )
    def post(self, request: Request, name: str) -> Response:
        """Turn the datasource's compaction off."""
        row = supervisor_documents.get_supervisor(self.actor, name)
        supervisor_documents.terminate(user=self.actor, row=row, comment=request.headers.get(COMMENT, ""))
        return Response({"id": supervisor_documents.id_of(row.datasource)})
