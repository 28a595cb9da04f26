"""Druid's addresses that mark segments unused and used again. Overlord and Coordinator both have them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import BodySerializer, body_of
from controlplane.api.druid.base import DruidView
from controlplane.api.druid.openapi import FLAG, NUMBER, shape
from controlplane.datasources.models import Datasource
from controlplane.datasources.selectors import find_datasource
from controlplane.retention import services
from controlplane.retention.segment_selection import select_segments
from controlplane.retention.storage_summary import find_segment
from controlplane.segments.marking import SegmentSelection

TAG = ["Druid-shaped"]
CHANGED = shape(numChangedSegments=NUMBER, segmentStateChanged=FLAG)
CHANGED_ONE = shape(segmentStateChanged=FLAG)


def json_responses(schema: dict[str, Any]) -> Any:
    """The schema of the answer 200, for OpenAPI."""
    return {(200, "application/json"): schema}


def _change_response(count: int) -> Response:
    return Response({"numChangedSegments": count, "segmentStateChanged": count > 0})


class MarkDatasourceView(DruidView):
    @extend_schema(operation_id="druid_mark_datasource_used", tags=TAG, request=None, responses=json_responses(CHANGED))
    def post(self, request: Request, name: str) -> Response:
        """Mark all segments of a datasource used again, as far as possible."""
        datasource = find_datasource(self.actor, name)
        return _change_response(
            services.mark_used(user=self.actor, datasource=datasource, chosen=SegmentSelection()).amount.segments
        )

    @extend_schema(operation_id="druid_mark_datasource_unused", tags=TAG, responses=json_responses(CHANGED))
    def delete(self, request: Request, name: str) -> Response:
        """Mark all segments of a datasource unused."""
        datasource = find_datasource(self.actor, name)
        return _change_response(
            services.mark_unused(user=self.actor, datasource=datasource, chosen=SegmentSelection()).segments
        )


class MarkBody(BodySerializer):
    interval = serializers.CharField(required=False, max_length=100)
    versions = serializers.ListField(child=serializers.CharField(max_length=100), required=False, max_length=1000)
    segmentIds = serializers.ListField(child=serializers.CharField(max_length=400), required=False)


def _read_selection(request: Request, datasource: Datasource) -> SegmentSelection:
    body = body_of(request, MarkBody)
    return select_segments(
        datasource,
        interval=body.get("interval"),
        segment_ids=body.get("segmentIds"),
        versions=body.get("versions"),
    )


class MarkUnusedView(DruidView):
    @extend_schema(operation_id="druid_mark_unused", tags=TAG, request=MarkBody, responses=json_responses(CHANGED))
    def post(self, request: Request, name: str) -> Response:
        """Mark segments unused: by interval, by interval and version, or by id."""
        datasource = find_datasource(self.actor, name)
        selection = _read_selection(request, datasource)
        return _change_response(services.mark_unused(user=self.actor, datasource=datasource, chosen=selection).segments)


class MarkUsedView(DruidView):
    @extend_schema(operation_id="druid_mark_used", tags=TAG, request=MarkBody, responses=json_responses(CHANGED))
    def post(self, request: Request, name: str) -> Response:
        """Mark segments used again. Replaced segments and segments without a file stay unused."""
        datasource = find_datasource(self.actor, name)
        selection = _read_selection(request, datasource)
        return _change_response(
            services.mark_used(user=self.actor, datasource=datasource, chosen=selection).amount.segments
        )


class MarkSegmentView(DruidView):
    @extend_schema(
        operation_id="druid_mark_segment_used",
        tags=TAG,
        request=None,
        responses=json_responses(CHANGED_ONE),
    )
    def post(self, request: Request, name: str, segment_id: str) -> Response:
        """Mark one segment used again."""
        datasource = find_datasource(self.actor, name)
        selection = SegmentSelection(ids=frozenset({find_segment(datasource, segment_id).pk}))
        amount = services.mark_used(user=self.actor, datasource=datasource, chosen=selection).amount
        return Response({"segmentStateChanged": amount.segments > 0})

    @extend_schema(operation_id="druid_mark_segment_unused", tags=TAG, responses=json_responses(CHANGED_ONE))
    def delete(self, request: Request, name: str, segment_id: str) -> Response:
        """Mark one segment unused."""
        datasource = find_datasource(self.actor, name)
        selection = SegmentSelection(ids=frozenset({find_segment(datasource, segment_id).pk}))
        amount = services.mark_unused(user=self.actor, datasource=datasource, chosen=selection)
        return Response({"segmentStateChanged": amount.segments > 0})
