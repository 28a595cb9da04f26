"""The Overlord's addresses of automatic compaction, which Druid has since version 33."""

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
        """Always `true`: datasources with automatic compaction have a supervisor of the type `autocompact`."""
        return Response(True)


class StatusesView(DruidView):
    @extend_schema(
        operation_id="druid_list_compaction_statuses", tags=_TAG, responses=json_responses(compaction.STATUSES)
    )
    def get(self, request: Request) -> Response:
        """How much of each datasource waits for compaction."""
        return Response({"latestStatus": compaction.statuses(self.actor)})


class StatusOfView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_status_of", tags=_TAG, responses=json_responses(compaction.STATUS)
    )
    def get(self, request: Request, name: str) -> Response:
        """How much of a datasource waits for compaction."""
        return Response(compaction.status_of(find_datasource(self.actor, name)))


class ConfigsView(DruidView):
    @extend_schema(
        operation_id="druid_list_compaction_configs_alone",
        tags=_TAG,
        responses=json_responses(shape(compactionConfigs=array(ANYTHING))),
    )
    def get(self, request: Request) -> Response:
        """The compaction configs of all datasources with automatic compaction."""
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
        """The changes of a datasource's compaction config, newest first. A null config turned compaction off."""
        entries: list[dict[str, Any]] = compaction.history_of(request, find_datasource(self.actor, name))
        return Response({"entries": entries})
