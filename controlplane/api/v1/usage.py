"""What teams use, by month: listed, and as a file."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, QuerySerializer, query_of
from controlplane.api.pagination import Key, PageQuery, page_of, page_response, page_schema
from controlplane.common.streaming import download
from controlplane.metrics.usage import csv_lines, usage


class UsageExportQuery(QuerySerializer):
    team = serializers.CharField(required=False, max_length=63, help_text="Only this team's.")


class UsageQuery(PageQuery, UsageExportQuery):
    pass


class UsageSerializer(serializers.Serializer[Any]):
    team = serializers.CharField(source="team.name")
    month = serializers.CharField(help_text="Of UTC: 2026-03.")
    core_seconds = serializers.FloatField(help_text="For which its tasks held a slot, summed over slots.")
    read_bytes = serializers.IntegerField(help_text="Of records.")
    stored_bytes = serializers.IntegerField(help_text="Of segments that were published.")


class UsageView(HeadgateView):
    @extend_schema(
        operation_id="list_usage", tags=["teams"], parameters=[UsageQuery], responses=page_schema(UsageSerializer)
    )
    def get(self, request: Request) -> Response:
        """What the teams that you administer have used, newest month first."""
        query = query_of(request, UsageQuery)
        keys = [Key("month", str, descending=True), Key("id", int)]
        return page_response(page_of(request, usage(self.actor, query.get("team", "")), keys, query), UsageSerializer)


class UsageExportView(HeadgateView):
    @extend_schema(
        operation_id="export_usage",
        tags=["teams"],
        parameters=[UsageExportQuery],
        responses={(200, "text/csv"): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """What the teams that you administer have used, in all months, as CSV.

        An apostrophe stands before what a spreadsheet would take for a formula.
        """
        rows = usage(self.actor, query_of(request, UsageExportQuery).get("team", ""))
        return download(csv_lines(rows), "usage.csv", "text/csv; charset=utf-8")
