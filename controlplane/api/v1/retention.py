"""Segments that are taken out of use, and put back, and the rules that do so."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of, query_of
from controlplane.api.pagination import Key, PageQuery, page_of, page_response, page_schema
from controlplane.api.v1.serializers import retention as serializers
from controlplane.datasources.models import Datasource
from controlplane.datasources.selectors import find_datasource
from controlplane.retention import rule_runner, services
from controlplane.retention.datasource_deletion import delete_datasource
from controlplane.retention.rules import read_rules, rules_json
from controlplane.retention.segment_selection import select_segments
from controlplane.retention.storage_summary import list_removals, unused_segments
from controlplane.segments.marking import SegmentSelection


def _selection_of(datasource: Datasource, body: dict[str, Any]) -> SegmentSelection:
    return select_segments(
        datasource,
        interval=body.get("interval"),
        segment_ids=body.get("segment_ids"),
        versions=body.get("versions"),
        everything=body.get("everything", False),
    )


def _read_selection(request: Request, datasource: Datasource) -> SegmentSelection:
    return _selection_of(datasource, body_of(request, serializers.MarkRequest))


class MarkUnusedView(HeadgateView):
    @extend_schema(
        operation_id="mark_segments_unused",
        tags=["datasources"],
        request=serializers.MarkRequest,
        responses=serializers.MarkedSerializer,
    )
    def post(self, request: Request, name: str) -> Response:
        """Take segments out of use: their rows are read no more, and after a while their files go."""
        datasource = find_datasource(self.actor, name)
        amount = services.mark_unused(
            user=self.actor, datasource=datasource, chosen=_read_selection(request, datasource)
        )
        return Response(serializers.MarkedSerializer(amount).data)


class MarkUsedView(HeadgateView):
    @extend_schema(
        operation_id="mark_segments_used",
        tags=["datasources"],
        request=serializers.MarkRequest,
        responses=serializers.RestoredSerializer,
    )
    def post(self, request: Request, name: str) -> Response:
        """Put segments back into use. Replaced segments and segments without a file stay unused.

        When ``segments`` names one of these, nothing is changed.
        """
        datasource = find_datasource(self.actor, name)
        restored = services.mark_used(
            user=self.actor, datasource=datasource, chosen=_read_selection(request, datasource)
        )
        return Response(serializers.RestoredSerializer(restored).data)


class KillView(HeadgateView):
    @extend_schema(
        operation_id="kill_segments",
        tags=["datasources"],
        request=serializers.KillRequest,
        responses=serializers.MarkedSerializer,
    )
    def post(self, request: Request, name: str) -> Response:
        """Delete unused segments for good, once no reader's lease holds them; with `dry_run` say how much it were."""
        datasource = find_datasource(self.actor, name)
        body = body_of(request, serializers.KillRequest)
        amount = services.kill(
            user=self.actor, datasource=datasource, chosen=_selection_of(datasource, body), dry_run=body["dry_run"]
        )
        return Response(serializers.MarkedSerializer(amount).data)


class DeleteView(HeadgateView):
    @extend_schema(
        operation_id="delete_datasource",
        tags=["datasources"],
        request=serializers.DeleteRequest,
        responses=serializers.MarkedSerializer,
    )
    def post(self, request: Request, name: str) -> Response:
        """Delete it whole: all its segments are lost. Refused while a supervisor or a task reads into it."""
        datasource = find_datasource(self.actor, name)
        body = body_of(request, serializers.DeleteRequest)
        amount = delete_datasource(user=self.actor, datasource=datasource, name=body["name"])
        return Response(serializers.MarkedSerializer(amount).data)


class UnusedSegmentsView(HeadgateView):
    order = (Key("unused_at", datetime), Key("id", uuid.UUID))

    @extend_schema(
        operation_id="list_unused_segments",
        tags=["datasources"],
        parameters=[PageQuery],
        responses=page_schema(serializers.UnusedSegmentSerializer),
    )
    def get(self, request: Request, name: str) -> Response:
        """Its segments that are not in use, until their files go; those that have been so for longest first."""
        query = query_of(request, PageQuery)
        segments = unused_segments(self.actor, find_datasource(self.actor, name))
        return page_response(page_of(request, segments, self.order, query), serializers.UnusedSegmentSerializer)


class RemovalsView(HeadgateView):
    order = (Key("id", int, descending=True),)

    @extend_schema(
        operation_id="list_removals",
        tags=["datasources"],
        parameters=[PageQuery],
        responses=page_schema(serializers.RemovalSerializer),
    )
    def get(self, request: Request, name: str) -> Response:
        """What was taken out of use, by whom, the newest first."""
        query = query_of(request, PageQuery)
        removals = list_removals(find_datasource(self.actor, name))
        return page_response(page_of(request, removals, self.order, query), serializers.RemovalSerializer)


class RulesView(HeadgateView):
    @extend_schema(operation_id="get_rules", tags=["datasources"], responses=serializers.RulesSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Its load and drop rules in Druid's form, and those of the site, which are asked after them."""
        return Response(_rules(find_datasource(self.actor, name)))

    @extend_schema(
        operation_id="set_rules",
        tags=["datasources"],
        request=serializers.RulesRequest,
        responses=serializers.RulesSerializer,
    )
    def put(self, request: Request, name: str) -> Response:
        """Put these in place of its rules; the next round, within a minute, carries them out."""
        datasource = find_datasource(self.actor, name)
        rules = read_rules(body_of(request, serializers.RulesRequest)["rules"], "rules")
        rule_runner.set_rules(user=self.actor, datasource=datasource, rules=rules)
        return Response(_rules(datasource))


def _rules(datasource: Datasource) -> dict[str, Any]:
    rules = {"rules": rules_json(rule_runner.rules_of(datasource)), "site": rules_json(rule_runner.rules_of(None))}
    return dict(serializers.RulesSerializer(rules).data)


class RulesPreviewView(HeadgateView):
    @extend_schema(
        operation_id="preview_rules",
        tags=["datasources"],
        request=serializers.RulesRequest,
        responses=serializers.GoingSerializer,
    )
    def post(self, request: Request, name: str) -> Response:
        """What these rules, and after them the site's, would take out of use now. Nothing is changed."""
        datasource = find_datasource(self.actor, name)
        rules = read_rules(body_of(request, serializers.RulesRequest)["rules"], "rules")
        return Response(serializers.GoingSerializer(rule_runner.preview(datasource, rules)).data)
