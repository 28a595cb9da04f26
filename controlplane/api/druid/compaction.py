"""The Coordinator's addresses of automatic compaction."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.druid import openapi
from controlplane.api.druid.base import DruidView
from controlplane.api.druid.openapi import ANYTHING, NUMBER, TEXT, array, nullable, shape
from controlplane.api.druid.shapes import instant
from controlplane.common.errors import InvalidInput, NotFound
from controlplane.compaction import configs, selectors
from controlplane.compaction.selectors import Amount
from controlplane.compaction.slots import read_cluster_config, set_share, shown_share
from controlplane.datasources.models import Datasource
from controlplane.datasources.selectors import find_datasource
from controlplane.teams.models import User

MAX_DATASOURCES = 1000
COMMENT = "X-Druid-Comment"
_TAG = ["Druid-shaped"]
_CONFIGS = shape(
    compactionConfigs=array(ANYTHING),
    compactionTaskSlotRatio={"type": "number"},
    maxCompactionTaskSlots=NUMBER,
    engine=TEXT,
)
_CLUSTER = shape(
    compactionTaskSlotRatio={"type": "number"},
    maxCompactionTaskSlots=NUMBER,
    useSupervisors=openapi.FLAG,
    engine=TEXT,
)
HISTORY = array(
    shape(
        compactionConfig=nullable(ANYTHING),
        auditInfo=shape(author=TEXT, comment=TEXT, ip=TEXT),
        auditTime=openapi.TIME,
    )
)
_AMOUNTS = {
    f"{what}{how}": NUMBER
    for what in ("bytes", "segmentCount", "intervalCount")
    for how in ("AwaitingCompaction", "Compacted", "Skipped")
}
STATUS = shape(dataSource=TEXT, scheduleStatus=TEXT, **_AMOUNTS)
STATUSES = shape(latestStatus=array(STATUS))
_PROGRESS = shape(remainingSegmentSize=NUMBER)


class ConfigsView(DruidView):
    @extend_schema(
        operation_id="druid_list_compaction_configs", tags=_TAG, responses={(200, "application/json"): _CONFIGS}
    )
    def get(self, request: Request) -> Response:
        """The compaction configs of all datasources with automatic compaction."""
        return Response(
            {
                "compactionConfigs": configs_in_force(self.actor),
                **shown_share(),
                "engine": "native",
            }
        )

    @extend_schema(
        operation_id="druid_set_compaction_config",
        tags=_TAG,
        request={"application/json": ANYTHING},
        responses={(200, "application/json"): ANYTHING},
    )
    def post(self, request: Request) -> Response:
        """Turn on a datasource's automatic compaction, with this config."""
        config = configs.read_config(request.data)
        datasource = find_datasource(self.actor, config.dataSource)
        comment = request.headers.get(COMMENT, "")
        configs.set_config(user=self.actor, datasource=datasource, config=config, comment=comment)
        return Response({})


def configs_in_force(user: User) -> list[dict[str, Any]]:
    """The compaction configs of the user's datasources, by name."""
    datasources = Datasource.objects.visible_to(user).order_by("name")[:MAX_DATASOURCES]
    return [config for d in datasources if (config := configs.config_of(d)) is not None]


class TaskSlotsView(DruidView):
    @extend_schema(
        operation_id="druid_set_compaction_task_slots",
        tags=_TAG,
        request=None,
        parameters=[OpenApiParameter("ratio", float), OpenApiParameter("max", int)],
        responses={(200, "application/json"): ANYTHING},
    )
    def post(self, request: Request) -> Response:
        """Set how many slots compaction may use. Parameters that are left out keep their values."""
        names = {"ratio": "compactionTaskSlotRatio", "max": "maxCompactionTaskSlots"}
        changes = {name: request.query_params[short] for short, name in names.items() if short in request.query_params}
        set_share(user=self.actor, config=read_cluster_config(changes))
        return Response({})


class ClusterConfigView(DruidView):
    @extend_schema(
        operation_id="druid_get_cluster_compaction_config",
        tags=_TAG,
        responses={(200, "application/json"): _CLUSTER},
    )
    def get(self, request: Request) -> Response:
        """How many slots compaction may use."""
        return Response({**shown_share(), "useSupervisors": True, "engine": "native"})

    @extend_schema(
        operation_id="druid_set_cluster_compaction_config",
        tags=_TAG,
        request={"application/json": ANYTHING},
        responses={(200, "application/json"): shape(success=openapi.FLAG)},
    )
    def post(self, request: Request) -> Response:
        """Set how many slots compaction may use. Fields that are left out keep their values."""
        set_share(user=self.actor, config=read_cluster_config(request.data))
        return Response({"success": True})


class ConfigView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_config", tags=_TAG, responses={(200, "application/json"): ANYTHING}
    )
    def get(self, request: Request, name: str) -> Response:
        """A datasource's compaction config with defaults. 404 if its automatic compaction is off."""
        config = configs.config_of(find_datasource(self.actor, name))
        if config is None:
            raise NotFound(f"Automatic compaction of {name!r} is off.")
        return Response(config)

    @extend_schema(
        operation_id="druid_delete_compaction_config", tags=_TAG, responses={(200, "application/json"): ANYTHING}
    )
    def delete(self, request: Request, name: str) -> Response:
        """Turn off a datasource's automatic compaction."""
        datasource = find_datasource(self.actor, name)
        configs.turn_off(user=self.actor, datasource=datasource, comment=request.headers.get(COMMENT, ""))
        return Response({})


class HistoryView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_history",
        tags=_TAG,
        parameters=[OpenApiParameter("count", int)],
        responses={(200, "application/json"): HISTORY},
    )
    def get(self, request: Request, name: str) -> Response:
        """The changes of a datasource's compaction config, newest first. A null config turned compaction off."""
        return Response(history_of(request, find_datasource(self.actor, name)))


def history_of(request: Request, datasource: Datasource) -> list[dict[str, Any]]:
    """A datasource's changes in Druid's format, as many as the request asks for."""
    return [
        {
            "compactionConfig": None if change.suspended else change.document,
            "auditInfo": {"author": change.author, "comment": change.comment, "ip": change.address},
            "auditTime": instant(change.created_at),
        }
        for change in selectors.list_changes(datasource)[: _count(request)]
    ]


def _count(request: Request) -> int:
    text = request.query_params.get("count", "100")
    if not text.isdecimal() or not 1 <= int(text[:9]) <= MAX_DATASOURCES:
        raise InvalidInput(f"count must be 1 to {MAX_DATASOURCES}.")
    return int(text)


class StatusView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_status",
        tags=_TAG,
        parameters=[OpenApiParameter("dataSource", str)],
        responses={(200, "application/json"): STATUSES},
    )
    def get(self, request: Request) -> Response:
        """How much of each datasource, or of one, waits for compaction."""
        name = request.query_params.get("dataSource")
        latest = [status_of(find_datasource(self.actor, name))] if name else statuses(self.actor)
        return Response({"latestStatus": latest})


def statuses(user: User) -> list[dict[str, Any]]:
    """The compaction statuses of the user's datasources, by name."""
    return [status_of(d) for d in Datasource.objects.visible_to(user).order_by("name")[:MAX_DATASOURCES]]


def status_of(datasource: Datasource) -> dict[str, Any]:
    """How much of a datasource waits for compaction, is merged, and is skipped."""
    status = selectors.status_of(datasource)
    parts = {"AwaitingCompaction": status.awaiting, "Compacted": status.compacted, "Skipped": status.skipped}
    return {
        "dataSource": datasource.name,
        "scheduleStatus": "RUNNING" if status.on else "NOT_ENABLED",
        **{name: n for how, amount in parts.items() for name, n in _numbers(how, amount).items()},
    }


def _numbers(how: str, amount: Amount) -> dict[str, int]:
    return {
        f"bytes{how}": amount.size_bytes,
        f"segmentCount{how}": amount.segments,
        f"intervalCount{how}": amount.intervals,
    }


class ProgressView(DruidView):
    @extend_schema(
        operation_id="druid_get_compaction_progress",
        tags=_TAG,
        parameters=[OpenApiParameter("dataSource", str, required=True)],
        responses={(200, "application/json"): _PROGRESS},
    )
    def get(self, request: Request) -> Response:
        """The bytes of a datasource's segments that wait for compaction."""
        name = request.query_params.get("dataSource")
        if not name:
            raise InvalidInput("The parameter dataSource is missing. Name a datasource.")
        return Response(
            {"remainingSegmentSize": selectors.status_of(find_datasource(self.actor, name)).awaiting.size_bytes}
        )
