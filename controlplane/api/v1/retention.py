"""Marking segments unused and used again, deleting them, and load and drop rules."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of, query_of
from controlplane.api.dry_runs import DRY_RUN, with_dry_run
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
        """Mark segments unused. Readers ignore them, and their files are deleted later."""
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
        """Mark segments used again. Replaced segments and segments without a file stay unused.

        If ``segment_ids`` has one of these, nothing is changed.
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
        """Delete unused segments permanently, when no reader's lease holds them. With `dry_run`, only count them."""
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
        """Delete the datasource with all its segments. Refused while a supervisor or a task writes to it."""
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
        """The datasource's unused segments whose files still exist, longest unused first."""
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
        """Past changes that marked segments unused, newest first, each with its user or rule."""
        query = query_of(request, PageQuery)
        removals = list_removals(find_datasource(self.actor, name))
        return page_response(page_of(request, removals, self.order, query), serializers.RemovalSerializer)


class RulesView(HeadgateView):
    @extend_schema(operation_id="get_rules", tags=["datasources"], responses=serializers.RulesSerializer)
    def get(self, request: Request, name: str) -> Response:
        """The datasource's load and drop rules in Druid's format, and the site's rules, which apply after them."""
        return Response(_rules(find_datasource(self.actor, name)))

    @extend_schema(
        operation_id="set_rules",
        tags=["datasources"],
        parameters=[DRY_RUN],
        request=serializers.RulesRequest,
        responses=serializers.RulesSerializer,
    )
    @with_dry_run
    def put(self, request: Request, name: str) -> Response:
        """Replace the datasource's rules. They take effect within a minute."""
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
        """Preview which segments these rules, followed by the site's, would mark unused now. Nothing is changed."""
        datasource = find_datasource(self.actor, name)
        rules = read_rules(body_of(request, serializers.RulesRequest)["rules"], "rules")
        return Response(serializers.GoingSerializer(rule_runner.preview(datasource, rules)).data)
