"""Druid's metadata addresses: datasources and segments, including unused ones."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.druid import segment_shapes as shapes
from controlplane.api.druid.base import DruidView
from controlplane.api.druid.datasources import FULL, MAX_DATASOURCES, visible_datasources
from controlplane.api.druid.marking import TAG, json_responses
from controlplane.api.druid.openapi import TEXT, array
from controlplane.common.errors import InvalidInput
from controlplane.datasources.masked_querysets import conceal
from controlplane.datasources.models import Datasource
from controlplane.datasources.selectors import find_datasource
from controlplane.retention.segment_selection import interval_bounds
from controlplane.retention.storage_summary import (
    MAX_LISTED_SEGMENTS,
    MAX_NAMED,
    find_segment,
    has_segments,
    list_at_most,
    segments_in_use,
    unused_segments,
)

_MAX_INTERVALS = 100
_SEGMENTS = {"oneOf": [array(TEXT), array(shapes.SEGMENT)]}


class MetadataDatasourcesView(DruidView):
    @extend_schema(
        operation_id="druid_list_metadata_datasources",
        tags=TAG,
        parameters=[FULL, OpenApiParameter("includeUnused", bool)],
        responses=json_responses({"oneOf": [array(TEXT), array(shapes.FULL)]}),
    )
    def get(self, request: Request) -> Response:
        """Names of datasources with used segments. With `includeUnused`, of all datasources."""
        if self.flag("full"):
            return Response(
                [
                    shapes.full(d, list_at_most(segments_in_use(self.actor, d), MAX_LISTED_SEGMENTS))
                    for d in visible_datasources(self)
                ]
            )
        if self.flag("includeUnused") or self.flag("includeDisabled"):
            datasources = Datasource.objects.visible_to(self.actor).filter(has_segments()).order_by("name")
            return Response(list(datasources.values_list("name", flat=True)[:MAX_DATASOURCES]))
        return Response([d.name for d in visible_datasources(self)])


class MetadataDatasourceView(DruidView):
    @extend_schema(operation_id="druid_get_metadata_datasource", tags=TAG, responses=json_responses(shapes.FULL))
    def get(self, request: Request, name: str) -> Response:
        """A datasource with its used segments."""
        datasource = find_datasource(self.actor, name)
        return Response(
            shapes.full(datasource, list_at_most(segments_in_use(self.actor, datasource), MAX_LISTED_SEGMENTS))
        )


class MetadataDatasourceSegmentsView(DruidView):
    @extend_schema(
        operation_id="druid_list_metadata_segments_of", tags=TAG, parameters=[FULL], responses=json_responses(_SEGMENTS)
    )
    def get(self, request: Request, name: str) -> Response:
        """Ids of a datasource's used segments. With `full`, the segments."""
        return _segments_response(self, segments_in_use(self.actor, find_datasource(self.actor, name)))

    @extend_schema(
        operation_id="druid_list_metadata_segments_within",
        tags=TAG,
        parameters=[FULL],
        request={"application/json": array(TEXT)},
        responses=json_responses(_SEGMENTS),
    )
    def post(self, request: Request, name: str) -> Response:
        """Used segments that overlap one of the given intervals."""
        segments = segments_in_use(self.actor, find_datasource(self.actor, name))
        intervals = request.data
        is_valid = isinstance(intervals, list) and all(isinstance(i, str) for i in intervals)
        if not is_valid or not 1 <= len(intervals) <= _MAX_INTERVALS:
            raise InvalidInput(f'The body must be a list of 1 to {_MAX_INTERVALS} intervals: ["2025-06-01/P1D"].')
        matching = segments.none()
        for interval in intervals:
            start, end = interval_bounds(interval)
            matching = matching | segments.filter(interval_start__lt=end, interval_end__gt=start)
        return _segments_response(self, matching)


def _segments_response(view: DruidView, segments: Any) -> Response:
    if view.flag("full"):
        return Response(shapes.data_segments(list_at_most(segments, MAX_LISTED_SEGMENTS)))
    return Response([s.identifier for s in list_at_most(segments, MAX_NAMED)])


class MetadataSegmentView(DruidView):
    @extend_schema(operation_id="druid_get_metadata_segment", tags=TAG, responses=json_responses(shapes.SEGMENT))
    def get(self, request: Request, name: str, segment_id: str) -> Response:
        """One used segment."""
        segment = find_segment(find_datasource(self.actor, name), segment_id, used=True)
        conceal(self.actor, [segment])
        return Response(shapes.data_segments([segment])[0])


class UnusedSegmentsView(DruidView):
    @extend_schema(
        operation_id="druid_list_unused_segments",
        tags=TAG,
        parameters=[OpenApiParameter("interval", str), OpenApiParameter("limit", int)],
        responses=json_responses(array(shapes.UNUSED)),
    )
    def get(self, request: Request, name: str) -> Response:
        """A datasource's unused segments whose files still exist, at most 10,000."""
        segments = unused_segments(self.actor, find_datasource(self.actor, name))
        interval = request.query_params.get("interval")
        if interval is not None:
            start, end = interval_bounds(interval.replace("_", "/"))
            segments = segments.filter(interval_start__gte=start, interval_end__lte=end)
        return Response(shapes.unused(list(segments[: _limit(request)])))


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", str(MAX_LISTED_SEGMENTS))
    if not text.isdecimal() or not 1 <= int(text[:9]) <= MAX_LISTED_SEGMENTS:
        raise InvalidInput(f"limit must be 1 to {MAX_LISTED_SEGMENTS:,}.")
    return int(text)


class MetadataSegmentsView(DruidView):
    @extend_schema(
        operation_id="druid_list_metadata_segments",
        tags=TAG,
        parameters=[
            OpenApiParameter("datasources", str, many=True),
            OpenApiParameter("includeOvershadowedStatus", bool),
        ],
        responses=json_responses({"oneOf": [array(shapes.SEGMENT), array(shapes.WITH_STATUS)]}),
    )
    def get(self, request: Request) -> Response:
        """The used segments of the given datasources, or of all."""
        names = request.query_params.getlist("datasources")[:MAX_DATASOURCES]
        datasources = [find_datasource(self.actor, name) for name in names] if names else visible_datasources(self)
        segments = list_at_most(segments_in_use(self.actor, *datasources), MAX_LISTED_SEGMENTS)
        flagged = self.flag("includeOvershadowedStatus")
        return Response(shapes.with_status(segments) if flagged else shapes.data_segments(segments))
