"""The Coordinator's addresses of servers with segments. There are none, because readers read deep storage."""

from __future__ import annotations

from typing import Any

from django.http.request import split_domain_port
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.druid.base import DruidView
from controlplane.api.druid.datasources import SIMPLE, visible_datasources
from controlplane.api.druid.marking import TAG, json_responses
from controlplane.api.druid.openapi import ANYTHING, FLAG, NUMBER, TEXT, array, named, shape
from controlplane.api.druid.segment_shapes import TIER, interval
from controlplane.common.errors import InvalidInput
from controlplane.retention.storage_summary import MAX_NAMED, intervals_in_use

# Of Druid's settings those that say something here: nothing is moved, copied or put off.
_NOTHING_MOVES: dict[str, Any] = {
    "maxSegmentsToMove": 0,
    "replicationThrottleLimit": 0,
    "replicateAfterLoadTimeout": False,
    "decommissioningNodes": [],
    "pauseCoordination": False,
    "killDataSourceWhitelist": [],
}
_CONFIG = shape(
    maxSegmentsToMove=NUMBER,
    replicationThrottleLimit=NUMBER,
    replicateAfterLoadTimeout=FLAG,
    decommissioningNodes=array(TEXT),
    pauseCoordination=FLAG,
    killDataSourceWhitelist=array(TEXT),
)
_NODES = array(
    {**shape(host=TEXT, service=TEXT, plaintextPort=NUMBER, tlsPort=NUMBER), "required": ["host", "service"]}
)
_INTERVALS = named(named(shape(size=NUMBER, count=NUMBER)))


class ServersView(DruidView):
    @extend_schema(operation_id="druid_list_servers", tags=TAG, responses=json_responses(array(ANYTHING)))
    def get(self, request: Request) -> Response:
        """Always empty: no server holds segments."""
        return Response([])


class TiersView(DruidView):
    @extend_schema(
        operation_id="druid_list_all_tiers",
        tags=TAG,
        parameters=[SIMPLE],
        responses=json_responses({"oneOf": [array(TEXT), named(shape(currSize=NUMBER, maxSize=NUMBER))]}),
    )
    def get(self, request: Request) -> Response:
        """The tiers that rules may name. There is one, without servers."""
        return Response({TIER: {"currSize": 0, "maxSize": 0}} if self.flag("simple") else [TIER])


class LoadQueueView(DruidView):
    @extend_schema(operation_id="druid_get_load_queue", tags=TAG, responses=json_responses(ANYTHING))
    def get(self, request: Request) -> Response:
        """Always empty: no server loads or drops segments."""
        return Response({})


class ConfigView(DruidView):
    @extend_schema(operation_id="druid_get_coordinator_config", tags=TAG, responses=json_responses(_CONFIG))
    def get(self, request: Request) -> Response:
        """The part of the Coordinator's dynamic configuration that says that no segment is moved between servers."""
        return Response(_NOTHING_MOVES)


class ClusterView(DruidView):
    @extend_schema(
        operation_id="druid_get_cluster",
        tags=TAG,
        responses=json_responses(shape(coordinator=_NODES, overlord=_NODES, broker=_NODES, historical=_NODES)),
    )
    def get(self, request: Request) -> Response:
        """This site as Coordinator and Overlord. There are no Brokers and no Historicals."""
        return Response(
            {
                "coordinator": [_node(request, "druid/coordinator")],
                "overlord": [_node(request, "druid/overlord")],
                "broker": [],
                "historical": [],
            }
        )


def _node(request: Request, service: str) -> dict[str, Any]:
    host, port = split_domain_port(request.get_host())
    secure = request.is_secure()
    return {
        "host": host,
        "service": service,
        "tlsPort" if secure else "plaintextPort": int(port or (443 if secure else 80)),
    }


class AllIntervalsView(DruidView):
    @extend_schema(operation_id="druid_list_all_intervals", tags=TAG, responses=json_responses(_INTERVALS))
    def get(self, request: Request) -> Response:
        """Intervals with used segments, latest first, each with the sizes and counts of its datasources."""
        by_interval: dict[str, dict[str, dict[str, int]]] = {}
        left = MAX_NAMED
        for datasource in visible_datasources(self):
            intervals = list(intervals_in_use(datasource, None, None)[: left + 1])
            left -= len(intervals)
            if left < 0:
                raise InvalidInput(f"There are more than {MAX_NAMED:,} intervals; ask for those of a datasource.")
            for row in intervals:
                amount = {"size": row.size_bytes, "count": row.segments}
                by_interval.setdefault(interval(row.start, row.end), {})[datasource.name] = amount
        return Response(dict(sorted(by_interval.items(), reverse=True)))
