"""The causes of quarantined records in all datasources that a user may see."""

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
    cause = serializers.CharField(
        required=False, max_length=FINGERPRINT_LENGTH, help_text="The fingerprint of a cause."
    )
    since = serializers.DateTimeField(
        required=False, default_timezone=UTC, help_text="Only causes that quarantined a record after this time."
    )
    waiting = serializers.BooleanField(
        required=False,
        help_text="If true, only causes with records that nobody has replayed yet.",
    )


class CauseSerializer(serializers.Serializer[Any]):
    cause = serializers.CharField(
        source="cause.cause", help_text="The cause's fingerprint. Its records have the same one."
    )
    team = serializers.CharField(source="cause.datasource.team.name")
    datasource = serializers.CharField(source="cause.datasource.name")
    reason = serializers.CharField(source="cause.reason")
    title = serializers.CharField(help_text="The error message without values of single records.")
    records = serializers.IntegerField(
        source="cause.records", help_text="Number of the cause's records in quarantine, in any state."
    )
    kept = serializers.IntegerField(
        source="cause.kept", help_text="Number of the records that nobody has replayed yet."
    )
    first_seen = serializers.DateTimeField(source="cause.first_at")
    last_seen = serializers.DateTimeField(source="cause.last_at")
    trend = serializers.ListField(
        child=serializers.IntegerField(),
        help_text=f"Records by hour of quarantine, for the last {HOURS} hours. The current hour is the last.",
    )
    example = serializers.SerializerMethodField(help_text="The id of the newest record in the datasource's quarantine.")
    error = serializers.SerializerMethodField(help_text="The error message of the newest record.")
    supervisor = serializers.CharField(
        source="supervisor_id",
        help_text="The id of the supervisor whose task quarantined the newest record. Empty for a manual task.",
    )
    spec_version = serializers.IntegerField(
        allow_null=True, help_text="The spec version that the supervisor had then. Null for a manual task."
    )

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
        """The causes of quarantined records in your datasources, most recent first."""
        query = query_of(request, CausesQuery)
        page = page_of(request, list_causes(self.actor, CauseFilter.of(query)), SEEN_LAST_FIRST, query)
        return page_response(Page(describe_causes(self.actor, page.rows), page.next), CauseSerializer)
