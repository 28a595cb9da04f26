"""Why records are in quarantine, across the datasources that one may see."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, get_args

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, query_of
from controlplane.api.pagination import Key, Page, PageQuery, page_of, page_response, page_schema
from controlplane.quarantine.selectors.causes import HOURS, CauseFilter, list_causes
from controlplane.tasks.causes import describe_causes
from ingestion.specs.causes import FINGERPRINT_LENGTH
from ingestion.specs.messages.protocol import QuarantinedRecord as WireRecord

SEEN_LAST_FIRST = [Key("last_at", datetime, descending=True), Key("datasource_id", int), Key("cause", str)]


class CausesQuery(PageQuery):
    team = serializers.CharField(required=False, max_length=100)
    datasource = serializers.CharField(required=False, max_length=200)
    reason = serializers.ChoiceField(get_args(WireRecord.model_fields["reason"].annotation), required=False)
    cause = serializers.CharField(required=False, max_length=FINGERPRINT_LENGTH, help_text="A fingerprint.")
    since = serializers.DateTimeField(
        required=False, default_timezone=UTC, help_text="Only causes that have put records there since."
    )
    waiting = serializers.BooleanField(
        required=False, help_text="Only causes with records that nothing has been done with."
    )


class CauseSerializer(serializers.Serializer[Any]):
    cause = serializers.CharField(source="cause.cause", help_text="Its fingerprint; records have the same.")
    team = serializers.CharField(source="cause.datasource.team.name")
    datasource = serializers.CharField(source="cause.datasource.name")
    reason = serializers.CharField(source="cause.reason")
    title = serializers.CharField(help_text="The message without what is a record's own.")
    records = serializers.IntegerField(source="cause.records", help_text="In quarantine, whatever their state.")
    kept = serializers.IntegerField(source="cause.kept", help_text="Those that nothing has been done with.")
    first_seen = serializers.DateTimeField(source="cause.first_at")
    last_seen = serializers.DateTimeField(source="cause.last_at")
    trend = serializers.ListField(
        child=serializers.IntegerField(),
        help_text=f"Records by the hour they were quarantined in, of the last {HOURS}; the present hour is the last.",
    )
    example = serializers.SerializerMethodField(help_text="The last one's number in the datasource's quarantine.")
    error = serializers.SerializerMethodField(help_text="The last one's.")
    supervisor = serializers.CharField(
        source="supervisor_id", help_text="Whose task quarantined the last one; empty for a manual task."
    )
    spec_version = serializers.IntegerField(allow_null=True, help_text="Of the supervisor's spec that was in force.")

    def get_example(self, row: Any) -> int | None:
        return row.latest.pk if row.latest else None

    def get_error(self, row: Any) -> str:
        return row.latest.error if row.latest else ""


class CausesView(HeadgateView):
    @extend_schema(
        operation_id="list_quarantine_causes",
        tags=["quarantine"],
        parameters=[CausesQuery],
        responses=page_schema(CauseSerializer),
    )
    def get(self, request: Request) -> Response:
        """Why records of your datasources are in quarantine, the cause seen last first."""
        query = query_of(request, CausesQuery)
        page = page_of(request, list_causes(self.actor, CauseFilter.of(query)), SEEN_LAST_FIRST, query)
        return page_response(Page(describe_causes(self.actor, page.rows), page.next), CauseSerializer)
