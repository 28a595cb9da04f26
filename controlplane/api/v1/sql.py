"""SQL over the segments in use."""

from __future__ import annotations

import json
from collections.abc import Iterator

from django.http import HttpResponseBase
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of, query_of
from controlplane.api.masked_header import masked_header
from controlplane.api.pagination import Key, PageQuery, SearchQuery, page_of, page_response, page_schema
from controlplane.api.v1.serializers import sql as serializers
from controlplane.common.client_gone import is_gone
from controlplane.common.streaming import Download
from controlplane.query import cancelling, saved
from controlplane.query.history import past_queries
from controlplane.query.running import RunningQuery, run_query
from ingestion.specs.messages.sql import Format

CONTENT_TYPES: dict[Format, str] = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}


class SqlView(HeadgateView):
    @extend_schema(
        operation_id="run_sql",
        tags=["sql"],
        request=serializers.SqlBody,
        responses={
            (200, "application/json"): serializers.SqlSerializer,
            **{
                (200, CONTENT_TYPES[form].partition(";")[0]): OpenApiTypes.BINARY
                for form in ("csv", "arrow", "parquet")
            },
        },
    )
    def post(self, request: Request) -> HttpResponseBase:
        """Run one SELECT. Rows are sent as they come: an answer that fails midway has no end."""
        body = body_of(request, serializers.SqlBody)
        form: Format = body["format"]
        query = run_query(
            user=self.actor,
            sql=body["query"],
            form=form,
            query_id=body.get("query_id", ""),
            is_gone=lambda: is_gone(request._request),
        )
        if query.head.plan is not None:
            query.close()
            return Response(_explained(query))
        answer = Download(_Chunks(query), content_type=CONTENT_TYPES[form])
        answer["X-Headgate-Query-Id"] = query.query_id
        answer["X-Headgate-Masked"] = masked_header(query.masked)
        return answer


class SqlQueryView(HeadgateView):
    @extend_schema(operation_id="cancel_sql", tags=["sql"], responses={204: None})
    def delete(self, request: Request, query_id: str) -> Response:
        """Cancel one of your queries. Its answer is 409, or has no end if it has begun."""
        cancelling.cancel(self.actor, query_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class HistoryView(HeadgateView):
    @extend_schema(
        operation_id="list_past_sql",
        tags=["sql"],
        parameters=[PageQuery],
        responses=page_schema(serializers.PastQuerySerializer),
    )
    def get(self, request: Request) -> Response:
        """Your last 200 queries that have ended, the last one first."""
        page = page_of(
            request, past_queries(self.actor), [Key("id", int, descending=True)], query_of(request, PageQuery)
        )
        return page_response(page, serializers.PastQuerySerializer)


class SavedQueriesView(HeadgateView):
    @extend_schema(
        operation_id="list_saved_sql",
        tags=["sql"],
        parameters=[SearchQuery],
        responses=page_schema(serializers.SavedQuerySerializer),
    )
    def get(self, request: Request) -> Response:
        """Your saved queries and those shared with your teams, by name."""
        query = query_of(request, SearchQuery)
        found = saved.saved_queries(self.actor, query.get("search", ""), query.get("team", ""))
        page = page_of(request, found, [Key("name", str), Key("id", int)], query)
        return page_response(page, serializers.SavedQuerySerializer)

    @extend_schema(
        operation_id="save_sql",
        tags=["sql"],
        request=serializers.SavedQueryBody,
        responses={201: serializers.SavedQuerySerializer},
    )
    def post(self, request: Request) -> Response:
        """Save a statement. It is not checked. Not for tokens with a scope."""
        made = saved.save_query(user=self.actor, **body_of(request, serializers.SavedQueryBody))
        headers = {"Location": reverse("api:saved-sql", args=[made.pk])}
        return Response(serializers.SavedQuerySerializer(made).data, status.HTTP_201_CREATED, headers=headers)


class SavedQueryView(HeadgateView):
    @extend_schema(operation_id="get_saved_sql", tags=["sql"], responses=serializers.SavedQuerySerializer)
    def get(self, request: Request, number: int) -> Response:
        """One saved query."""
        return Response(serializers.SavedQuerySerializer(saved.get_saved(self.actor, number)).data)

    @extend_schema(
        operation_id="change_saved_sql",
        tags=["sql"],
        request=serializers.SavedQueryBody,
        responses=serializers.SavedQuerySerializer,
    )
    def put(self, request: Request, number: int) -> Response:
        """Replace a saved query. Needs its owner or an admin of its team. Only the owner changes the team."""
        body = body_of(request, serializers.SavedQueryBody)
        changed = saved.change_saved(user=self.actor, saved=saved.get_saved(self.actor, number), **body)
        return Response(serializers.SavedQuerySerializer(changed).data)

    @extend_schema(operation_id="delete_saved_sql", tags=["sql"], responses={204: None})
    def delete(self, request: Request, number: int) -> Response:
        """Delete a saved query. Needs its owner or an admin of its team."""
        saved.delete_saved(user=self.actor, saved=saved.get_saved(self.actor, number))
        return Response(status=status.HTTP_204_NO_CONTENT)


class _Chunks:
    """An answer's. Closing them ends the query, also if nobody has read any."""

    def __init__(self, query: RunningQuery) -> None:
        self._chunks = _json(query) if query.form == "json" else query.chunks()
        self.close = query.close

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks


def _json(query: RunningQuery) -> Iterator[bytes]:
    columns = [{"name": n, "type": t} for n, t in zip(query.head.names, query.head.types, strict=True)]
    start = json.dumps({"query_id": query.query_id, "columns": columns, "masked": query.masked})
    yield f'{start[:-1]}, "rows": [\n'.encode()
    yield from query.chunks()
    end = json.dumps({"row_count": query.tail.rows, "truncated": query.tail.truncated})
    yield f"\n], {end[1:]}".encode()


def _explained(query: RunningQuery) -> dict[str, object]:
    tables = serializers.SqlTableSerializer(query.tables, many=True).data
    return {"query_id": query.query_id, "masked": query.masked, "tables": tables, "plan": query.head.plan}
