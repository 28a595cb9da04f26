"""Automatic compaction at the Overlord's addresses, which Druid has beside its Coordinator's as of version 33."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.druid import compaction
from controlplane.api.druid.base import DruidView
from controlplane.api.druid.marking import json_responses
from controlplane.api.druid.openapi import ANYTHING, FLAG, array, shape
from controlplane.datasources.selectors import find_datasource

_TAG = ["Druid-shaped"]


class SupervisorsEnabledView(DruidView):
    @extend_schema(operation_id="druid_compaction_is_supervised", tags=_TAG, responses=json_responses(FLAG))
    def get(self, request: Request) -> Response:
        """`true`: each datasource whose compaction is on has a supervisor of the type `autocompact`."""
        return Response(True)


class StatusesView(DruidView):
    @extend_schema(
        operation_id="druid_list_compaction_statuses", tags=_TAG, responses=json_responses(compaction.STATUSES)
    )
    def get(self, request: Request) -> Response:
        """How much of each datasource waits to be merged."""
        return Response({"latestStatus": compaction.statuses(self.actor)})


class StatusOfView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_status_of", tags=_TAG, responses=json_responses(compaction.STATUS)
    )
    def get(self, request: Request, name: str) -> Response:
        """How much of it waits to be merged."""
        return Response(compaction.status_of(find_datasource(self.actor, name)))


class ConfigsView(DruidView):
    @extend_schema(
        operation_id="druid_list_compaction_configs_alone",
        tags=_TAG,
        responses=json_responses(shape(compactionConfigs=array(ANYTHING))),
    )
    def get(self, request: Request) -> Response:
        """The configs in force, of each datasource whose automatic compaction is on."""
        return Response({"compactionConfigs": compaction.configs_in_force(self.actor)})


@extend_schema_view(
    get=extend_schema(operation_id="druid_get_compaction_config_of"),
    delete=extend_schema(operation_id="druid_delete_compaction_config_of"),
)
class ConfigOfView(compaction.ConfigView):
    pass


class HistoryView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_history_of",
        tags=_TAG,
        parameters=[OpenApiParameter("count", int)],
        responses=json_responses(shape(entries=compaction.HISTORY)),
    )
    def get(self, request: Request, name: str) -> Response:
        """What was set of it, the newest first; a null config: it was turned off."""
        entries: list[dict[str, Any]] = compaction.history_of(request, find_datasource(self.actor, name))
        return Response({"entries": entries})
