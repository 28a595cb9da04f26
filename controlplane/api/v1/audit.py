"""The audit trails of a team and of the site, as a list and as a file."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, query_of
from controlplane.api.pagination import Key, page_of, page_response, page_schema
from controlplane.api.v1.serializers.teams import (
    AuditExportQuery,
    AuditQuery,
    AuditSerializer,
    SiteAuditExportQuery,
    SiteAuditQuery,
)
from controlplane.common.streaming import download
from controlplane.teams import audit, audit_export, selectors
from controlplane.teams.models import AuditEntry


def filter_of(query: dict[str, Any]) -> audit.AuditFilter:
    """The filter of a query."""
    plain = {name: query.get(name, "") for name in ("target", "target_id", "action", "team", "text")}
    return audit.AuditFilter(username=query.get("user", ""), since=query.get("from"), until=query.get("to"), **plain)


class AuditView(HeadgateView):
    @extend_schema(
        operation_id="list_audit_entries",
        tags=["teams"],
        parameters=[AuditQuery],
        responses=page_schema(AuditSerializer),
    )
    def get(self, request: Request, name: str) -> Response:
        """The team's audit trail, newest first. Needs the role admin."""
        query = query_of(request, AuditQuery)
        entries = audit.list_entries(self.actor, selectors.get_team(self.actor, name), filter_of(query))
        return page_response(page_of(request, entries, [Key("id", int, descending=True)], query), AuditSerializer)


class AuditExportView(HeadgateView):
    @extend_schema(
        operation_id="export_audit_entries",
        tags=["teams"],
        parameters=[AuditExportQuery],
        responses={(200, "text/csv"): OpenApiTypes.STR, (200, "application/x-ndjson"): OpenApiTypes.STR},
    )
    def get(self, request: Request, name: str) -> HttpResponseBase:
        """All matching entries, newest first, as CSV. With `as=ndjson`, as newline-delimited JSON.

        Needs the role admin. In CSV, an apostrophe precedes values that a spreadsheet would run as a formula.
        """
        query = query_of(request, AuditExportQuery)
        entries = audit.list_entries(self.actor, selectors.get_team(self.actor, name), filter_of(query))
        return _file(entries, f"audit-{name}", query["as"])


class SiteAuditView(HeadgateView):
    @extend_schema(
        operation_id="list_site_audit_entries",
        tags=["people"],
        parameters=[SiteAuditQuery],
        responses=page_schema(AuditSerializer),
    )
    def get(self, request: Request) -> Response:
        """The audit trail of the whole site, newest first. Only for site administrators."""
        query = query_of(request, SiteAuditQuery)
        entries = audit.list_site_entries(self.actor, filter_of(query))
        return page_response(page_of(request, entries, [Key("id", int, descending=True)], query), AuditSerializer)


class SiteAuditExportView(HeadgateView):
    @extend_schema(
        operation_id="export_site_audit_entries",
        tags=["people"],
        parameters=[SiteAuditExportQuery],
        responses={(200, "text/csv"): OpenApiTypes.STR, (200, "application/x-ndjson"): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """All matching entries of the site, newest first, in a team's formats. Only for site administrators."""
        query = query_of(request, SiteAuditExportQuery)
        return _file(audit.list_site_entries(self.actor, filter_of(query)), "audit-site", query["as"])


def _file(entries: QuerySet[AuditEntry], name: str, form: str) -> HttpResponseBase:
    return download(audit_export.chunks(entries, form), f"{name}.{form}", audit_export.CONTENT_TYPES[form])
