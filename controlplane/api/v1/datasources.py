"""Datasources and what belongs to them."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, query_of
from controlplane.api.pagination import Key, SearchQuery, page_of, page_response, page_schema
from controlplane.api.v1.serializers import datasources as serializers
from controlplane.datasources.selectors import find_datasource
from controlplane.publishing.selectors.progress import progress
from controlplane.publishing.selectors.totals import datasource_totals
from controlplane.segments.selectors.columns import datasource_schema
from controlplane.segments.selectors.layers import layers
from controlplane.segments.selectors.lists import list_segments
from controlplane.segments.selectors.timeline import timeline
from controlplane.sources.events import acknowledge, get_event, list_events
from controlplane.supervisors.completeness import ongoing
from controlplane.tasks.datasources import get_datasource, list_datasources

NEWEST_FIRST = [Key("id", int, descending=True)]


class DatasourcesView(HeadgateView):
    @extend_schema(
        operation_id="list_datasources",
        tags=["datasources"],
        parameters=[SearchQuery],
        responses=page_schema(serializers.DatasourceSerializer),
    )
    def get(self, request: Request) -> Response:
        """Your teams' datasources by name."""
        query = query_of(request, SearchQuery)
        datasources = list_datasources(self.actor, search=query.get("search", ""), team=query.get("team", ""))
        return page_response(page_of(request, datasources, [Key("name", str)], query), serializers.DatasourceSerializer)


class DatasourceView(HeadgateView):
    @extend_schema(
        operation_id="get_datasource", tags=["datasources"], responses=serializers.DatasourceDetailSerializer
    )
    def get(self, request: Request, name: str) -> Response:
        """One datasource with its columns and the counters of all its records."""
        datasource: Any = get_datasource(self.actor, name)
        datasource.columns = datasource_schema(datasource)
        datasource.totals = datasource_totals(datasource)
        return Response(serializers.DatasourceDetailSerializer(datasource).data)


class SegmentsView(HeadgateView):
    order = (
        Key("interval_start", datetime, descending=True),
        Key("partition_num", int, descending=True),
        Key("id", uuid.UUID, descending=True),
    )

    @extend_schema(
        operation_id="list_segments",
        tags=["datasources"],
        parameters=[serializers.SegmentsQuery],
        responses=page_schema(serializers.SegmentSerializer),
    )
    def get(self, request: Request, name: str) -> Response:
        """The datasource's used segments, newest interval first."""
        query = query_of(request, serializers.SegmentsQuery)
        datasource = find_datasource(self.actor, name)
        listed = list_segments(datasource, interval_start=query.get("from"), interval_end=query.get("to"))
        return page_response(
            page_of(request, listed.shown_to(self.actor), self.order, query), serializers.SegmentSerializer
        )


class TimelineView(HeadgateView):
    @extend_schema(
        operation_id="get_timeline",
        tags=["datasources"],
        parameters=[serializers.TimelineQuery],
        responses=serializers.TimelineSerializer,
    )
    def get(self, request: Request, name: str) -> Response:
        """The timeline: one bar for each interval. More than 2000 are merged into `width` bars. Sums stay exact."""
        query = query_of(request, serializers.TimelineQuery)
        datasource = find_datasource(self.actor, name)
        window = {"start": query.get("from"), "end": query.get("to")}
        drawn = timeline(datasource, **window, width=query["width"], ongoing=ongoing(datasource))
        layer_names = [layer for layer in query.get("layers", "").split(",") if layer]
        fields = {**vars(drawn), "layers": layers(datasource, layer_names, **window)}
        return Response(serializers.TimelineSerializer(fields).data)


class EventsView(HeadgateView):
    @extend_schema(
        operation_id="list_events",
        tags=["datasources"],
        parameters=[serializers.EventsQuery],
        responses=page_schema(serializers.EventSerializer),
    )
    def get(self, request: Request, name: str) -> Response:
        """Events of the datasource that an operator should know, newest first."""
        query = query_of(request, serializers.EventsQuery)
        datasource = find_datasource(self.actor, name)
        events = list_events(self.actor, datasource, kind=query.get("kind", ""), alarm=query.get("alarm"))
        return page_response(page_of(request, events, NEWEST_FIRST, query), serializers.EventSerializer)


class AcknowledgeView(HeadgateView):
    @extend_schema(
        operation_id="acknowledge_event", tags=["datasources"], request=None, responses=serializers.EventSerializer
    )
    def post(self, request: Request, name: str, number: int) -> Response:
        """Acknowledge an alarm and all older ones of its kind. Needs the role operator."""
        event = get_event(self.actor, find_datasource(self.actor, name), number)
        return Response(serializers.EventSerializer(acknowledge(user=self.actor, event=event)).data)


class ProgressView(HeadgateView):
    @extend_schema(
        operation_id="get_progress", tags=["datasources"], responses=serializers.ProgressSerializer(many=True)
    )
    def get(self, request: Request, name: str) -> Response:
        """The settled offsets of each partition of the datasource's sources."""
        partitions = progress(find_datasource(self.actor, name))
        return Response(serializers.ProgressSerializer(partitions, many=True).data)
