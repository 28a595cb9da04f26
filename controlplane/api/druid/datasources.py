"""The Coordinator's addresses of datasources and their segments."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.druid import segment_shapes as shapes
from controlplane.api.druid.base import DruidView
from controlplane.api.druid.marking import TAG, MarkDatasourceView, MarkSegmentView, json_responses
from controlplane.api.druid.openapi import NUMBER, TEXT, array, named, shape
from controlplane.common.errors import InvalidInput
from controlplane.datasources.masked_querysets import conceal
from controlplane.datasources.models import Datasource
from controlplane.datasources.selectors import find_datasource
from controlplane.retention import services
from controlplane.retention.segment_selection import interval_bounds, select_segments
from controlplane.retention.storage_summary import (
    MAX_LISTED_SEGMENTS,
    MAX_NAMED,
    StorageSummary,
    find_segment,
    intervals_in_use,
    list_at_most,
    segments_in_use,
    storage_summary,
)

MAX_DATASOURCES = 1000
SIMPLE, FULL = (OpenApiParameter(name, bool, description="A flag without a value.") for name in ("simple", "full"))
_INTERVALS = {"oneOf": [array(TEXT), named(shape(size=NUMBER, count=NUMBER)), named(named(shapes.LOADED))]}


def visible_datasources(view: DruidView) -> list[Datasource]:
    """The datasources of the caller's teams that have used segments."""
    datasources = list(Datasource.objects.visible_to(view.actor).order_by("name")[:MAX_DATASOURCES])
    summaries = storage_summary(datasources)
    return [d for d in datasources if d.pk in summaries]


class DatasourcesView(DruidView):
    @extend_schema(
        operation_id="druid_list_datasources",
        tags=TAG,
        parameters=[SIMPLE, FULL],
        responses=json_responses(
            {"oneOf": [array(TEXT), array(shape(name=TEXT, properties=shapes.SIMPLE)), array(shapes.FULL)]}
        ),
    )
    def get(self, request: Request) -> Response:
        """Names of the datasources that have used segments. With `simple` or `full`, objects."""
        datasources = visible_datasources(self)
        if self.flag("full"):
            return Response(
                [shapes.full(d, list_at_most(segments_in_use(self.actor, d), MAX_LISTED_SEGMENTS)) for d in datasources]
            )
        if self.flag("simple"):
            summaries = storage_summary(datasources)
            return Response([{"name": d.name, "properties": shapes.simple(summaries[d.pk])} for d in datasources])
        return Response([d.name for d in datasources])


class DatasourceView(MarkDatasourceView):
    @extend_schema(
        operation_id="druid_get_datasource",
        tags=TAG,
        parameters=[FULL],
        responses=json_responses({"oneOf": [shapes.SIMPLE, shapes.FULL]}),
    )
    def get(self, request: Request, name: str) -> Response:
        """A datasource's size and time range. With `full`, its used segments."""
        datasource = find_datasource(self.actor, name)
        if self.flag("full"):
            return Response(
                shapes.full(datasource, list_at_most(segments_in_use(self.actor, datasource), MAX_LISTED_SEGMENTS))
            )
        return Response(shapes.simple(storage_summary([datasource]).get(datasource.pk, StorageSummary())))


class IntervalsView(DruidView):
    @extend_schema(
        operation_id="druid_list_intervals",
        tags=TAG,
        parameters=[SIMPLE, FULL],
        responses=json_responses(_INTERVALS),
    )
    def get(self, request: Request, name: str) -> Response:
        """A datasource's intervals that have used segments, latest first."""
        datasource = find_datasource(self.actor, name)
        if self.flag("full"):
            segments = list_at_most(segments_in_use(self.actor, datasource), MAX_LISTED_SEGMENTS)
            return Response(dict(sorted(shapes.by_interval(segments).items(), reverse=True)))
        intervals = list(intervals_in_use(datasource, None, None)[: MAX_NAMED + 1])
        if len(intervals) > MAX_NAMED:
            raise InvalidInput(
                f"There are more than {MAX_NAMED:,} intervals. Ask for a single interval that contains them."
            )
        if self.flag("simple"):
            return Response(
                {shapes.interval(i.start, i.end): {"size": i.size_bytes, "count": i.segments} for i in intervals}
            )
        return Response([shapes.interval(i.start, i.end) for i in intervals])


class IntervalView(DruidView):
    @extend_schema(
        operation_id="druid_get_interval",
        tags=TAG,
        parameters=[SIMPLE, FULL],
        responses=json_responses(_INTERVALS),
    )
    def get(self, request: Request, name: str, interval: str) -> Response:
        """Ids of the used segments within an interval. Write the interval with `_` instead of the slash."""
        datasource = find_datasource(self.actor, name)
        start, end = interval_bounds(interval.replace("_", "/"))
        if self.flag("simple"):
            intervals = intervals_in_use(datasource, start, end)[:MAX_NAMED]
            return Response(
                {shapes.interval(i.start, i.end): {"size": i.size_bytes, "count": i.segments} for i in intervals}
            )
        segments = segments_in_use(self.actor, datasource).filter(interval_start__gte=start, interval_end__lte=end)
        if self.flag("full"):
            return Response(shapes.by_interval(list_at_most(segments, MAX_LISTED_SEGMENTS)))
        return Response([s.identifier for s in list_at_most(segments, MAX_NAMED)])

    @extend_schema(operation_id="druid_kill_interval", tags=TAG, responses={200: None})
    def delete(self, request: Request, name: str, interval: str) -> HttpResponse:
        """Delete the files of unused segments within an interval, when no reader's lease holds them."""
        datasource = find_datasource(self.actor, name)
        selection = select_segments(datasource, interval=interval.replace("_", "/"))
        services.kill(user=self.actor, datasource=datasource, chosen=selection, dry_run=False)
        return HttpResponse(content_type="application/json")


class SegmentsView(DruidView):
    @extend_schema(
        operation_id="druid_list_segments",
        tags=TAG,
        parameters=[FULL],
        responses=json_responses({"oneOf": [array(TEXT), array(shapes.SEGMENT)]}),
    )
    def get(self, request: Request, name: str) -> Response:
        """Ids of a datasource's used segments. With `full`, the segments."""
        segments = segments_in_use(self.actor, find_datasource(self.actor, name))
        if self.flag("full"):
            return Response(shapes.data_segments(list_at_most(segments, MAX_LISTED_SEGMENTS)))
        return Response([s.identifier for s in list_at_most(segments, MAX_NAMED)])


class SegmentView(MarkSegmentView):
    @extend_schema(operation_id="druid_get_segment", tags=TAG, responses=json_responses(shapes.LOADED))
    def get(self, request: Request, name: str, segment_id: str) -> Response:
        """One used segment."""
        segment = find_segment(find_datasource(self.actor, name), segment_id, used=True)
        conceal(self.actor, [segment])
        return Response(shapes.loaded(shapes.data_segments([segment])[0]))


class TiersView(DruidView):
    @extend_schema(operation_id="druid_list_tiers", tags=TAG, responses=json_responses(array(TEXT)))
    def get(self, request: Request, name: str) -> Response:
        """The datasource's tiers. There is only one: deep storage."""
        summaries = storage_summary([find_datasource(self.actor, name)])
        return Response([shapes.TIER] if summaries else [])


class LoadStatusView(DruidView):
    @extend_schema(
        operation_id="druid_get_load_status",
        tags=TAG,
        parameters=[SIMPLE, FULL],
        responses=json_responses({"oneOf": [named({"type": "number"}), named(named(NUMBER))]}),
    )
    def get(self, request: Request) -> Response:
        """The percentage of each datasource that is loaded. Always 100, because readers read deep storage."""
        return Response(_load_status(self, [d.name for d in visible_datasources(self)]))


class DatasourceLoadStatusView(DruidView):
    @extend_schema(
        operation_id="druid_get_datasource_load_status",
        tags=TAG,
        parameters=[OpenApiParameter("forceMetadataRefresh", bool, required=True), SIMPLE, FULL],
        responses=json_responses({"oneOf": [named({"type": "number"}), named(named(NUMBER))]}),
    )
    def get(self, request: Request, name: str) -> Response:
        """The percentage of a datasource that is loaded. Always 100."""
        datasource = find_datasource(self.actor, name)
        if "forceMetadataRefresh" not in request.query_params:
            raise InvalidInput("The parameter forceMetadataRefresh is missing. It may have any value.")
        return Response(_load_status(self, [datasource.name]))


def _load_status(view: DruidView, names: list[str]) -> dict[str, Any]:
    if view.flag("full"):
        return {shapes.TIER: dict.fromkeys(names, 0)}  # segments that are still to be loaded
    return dict.fromkeys(names, 0 if view.flag("simple") else 100.0)
