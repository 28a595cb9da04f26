"""Druid's compaction supervisors, at the addresses of all supervisors: a datasource's compaction config once more.

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
    """Newest first; where it was turned off, Druid's tombstone."""
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
    """Its id, and what was set of it."""
    changes = selectors.list_changes(row.datasource)[: selectors.SHOWN_CHANGES]
    return supervisor_documents.id_of(row.datasource), history_of(row.datasource.name, list(changes))


class AutoCompactView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_supervisor", tags=_TAG, responses={(200, "application/json"): _SPEC}
    )
    def get(self, request: Request, name: str) -> Response:
        """The config as a supervisor's spec; 404 where nobody has set one."""
        return Response(spec_of(supervisor_documents.get_supervisor(self.actor, name)))


class StatusView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_supervisor_status", tags=_TAG, responses={(200, "application/json"): _REPORT}
    )
    def get(self, request: Request, name: str) -> Response:
        """How much waits to be merged, is merged and is skipped."""
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
        """`{"healthy": true}`: a merge that fails is tried again by itself."""
        supervisor_documents.get_supervisor(self.actor, name)
        return Response({"healthy": True})


class StatsView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_supervisor_stats",
        tags=_TAG,
        responses={(200, "application/json"): openapi.STATS},
    )
    def get(self, request: Request, name: str) -> Response:
        """Nothing: it reads no records."""
        supervisor_documents.get_supervisor(self.actor, name)
        return Response({})


class HistoryView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_supervisor_history",
        tags=_TAG,
        responses={(200, "application/json"): openapi.HISTORY},
    )
    def get(self, request: Request, name: str) -> Response:
        """What was set, newest first."""
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
        """No job is made any more until it is resumed; 400 when it is suspended already."""
        return Response(_switch(self, name, suspended=True))


class ResumeView(DruidView):
    @extend_schema(
        operation_id="druid_resume_compaction_supervisor",
        tags=_TAG,
        request=None,
        responses={(200, "application/json"): _SPEC},
    )
    def post(self, request: Request, name: str) -> Response:
        """Jobs are made once more, by its config; 400 when it runs already."""
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
