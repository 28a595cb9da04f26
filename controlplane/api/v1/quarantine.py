"""The quarantine of a datasource: list, view, export, replay and purge."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of, query_of
from controlplane.api.pagination import Key, page_of, page_response, page_schema
from controlplane.api.v1.serializers import quarantine as serializers
from controlplane.common.streaming import download
from controlplane.datasources.selectors import find_datasource
from controlplane.quarantine import services as quarantine
from controlplane.quarantine.selectors.filters import MAX_KEY, Choice, QuarantineFilter
from controlplane.quarantine.selectors.lists import get_quarantined, list_quarantined
from controlplane.supervisors import replays, reprocess
from controlplane.tasks.models import Task

NEWEST_FIRST = [Key("id", int, descending=True)]


def filter_of(values: dict[str, Any]) -> QuarantineFilter:
    """The filter of a query or a body."""
    return QuarantineFilter.of({**values, "since": values.get("from"), "until": values.get("to")})


def choice_of(body: dict[str, Any]) -> Choice:
    """The records that a body selects."""
    if "ids" in body:
        return Choice(ids=tuple(body["ids"]))
    return Choice(filter=filter_of(body["filter"]), max_id=body.get("upto", MAX_KEY))


class QuarantineView(HeadgateView):
    @extend_schema(
        operation_id="list_quarantined",
        tags=["quarantine"],
        parameters=[serializers.QuarantineQuery],
        responses=page_schema(serializers.QuarantinedSerializer),
    )
    def get(self, request: Request, name: str) -> Response:
        """The quarantined records, newest first, each with the beginning of its payload."""
        query = query_of(request, serializers.QuarantineQuery)
        records = list_quarantined(self.actor, find_datasource(self.actor, name), filter_of(query))
        return page_response(page_of(request, records, NEWEST_FIRST, query), serializers.QuarantinedSerializer)


class QuarantinedView(HeadgateView):
    @extend_schema(
        operation_id="get_quarantined", tags=["quarantine"], responses=serializers.WholeQuarantinedSerializer
    )
    def get(self, request: Request, name: str, number: int) -> Response:
        """One quarantined record with its whole payload."""
        record = get_quarantined(self.actor, find_datasource(self.actor, name), number)
        return Response(serializers.WholeQuarantinedSerializer(record).data)


class ExportView(HeadgateView):
    @extend_schema(
        operation_id="export_quarantine",
        tags=["quarantine"],
        parameters=[serializers.ExportQuery],
        responses={(200, "application/x-ndjson"): OpenApiTypes.STR},
    )
    def get(self, request: Request, name: str) -> HttpResponseBase:
        """All matching records, whole, as newline-delimited JSON. Binary payloads are in Base64 (`payload_base64`)."""
        filters = filter_of(query_of(request, serializers.ExportQuery))
        datasource = find_datasource(self.actor, name)
        lines = quarantine.export(user=self.actor, datasource=datasource, wanted=filters)
        return download(lines, "quarantine.ndjson", "application/x-ndjson")


class ReplayView(HeadgateView):
    @extend_schema(
        operation_id="replay_quarantined",
        tags=["quarantine"],
        request=serializers.ReplayBody,
        responses={202: serializers.ReplaySerializer},
    )
    def post(self, request: Request, name: str) -> Response:
        """Ingest quarantined records with the current spec, or write them to their topic. Needs the role operator.

        Records of files are ingested with the spec that last read them, or with `spec`.
        """
        body = body_of(request, serializers.ReplayBody)
        user, datasource, choice = self.actor, find_datasource(self.actor, name), choice_of(body)
        if "spec" in body:
            spec = body["spec"]
            started = reprocess.replay_changed(user=user, datasource=datasource, choice=choice, document=spec)
        else:
            mode = Task.Replay(body["mode"])
            started = replays.replay(user=user, datasource=datasource, choice=choice, mode=mode)
        shown = {"records": started.records, "tasks": [task.pk for task in started.tasks]}
        return Response(shown, status=status.HTTP_202_ACCEPTED)


class TryView(HeadgateView):
    @extend_schema(
        operation_id="try_spec_on_quarantined",
        tags=["quarantine"],
        request=serializers.TryBody,
        responses=serializers.TriedSpecSerializer,
    )
    def post(self, request: Request, name: str) -> Response:
        """Try a changed spec on a cause's quarantined records and on the topic's newest. Needs the role operator.

        Nothing is stored or submitted.
        """
        body = body_of(request, serializers.TryBody)
        user, datasource = self.actor, find_datasource(self.actor, name)
        target = reprocess.reprocess_target(user, datasource, body["cause"], body["task"])
        tried = reprocess.try_spec(user=user, datasource=datasource, found=target, document=body["spec"])
        return Response(serializers.TriedSpecSerializer(tried).data)


class PurgeView(HeadgateView):
    @extend_schema(
        operation_id="purge_quarantine",
        tags=["quarantine"],
        request=serializers.ChoiceBody,
        responses=serializers.PurgedSerializer,
    )
    def post(self, request: Request, name: str) -> Response:
        """Delete records permanently, except those that a replay is reading. Needs the role admin."""
        choice = choice_of(body_of(request, serializers.ChoiceBody))
        datasource = find_datasource(self.actor, name)
        return Response({"records": quarantine.purge(user=self.actor, datasource=datasource, choice=choice)})
