"""Druid's addresses of SQL: what Druid's clients send runs on the same engine as Headgate's own SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4
from zoneinfo import available_timezones

from django.http import HttpResponse, HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import BodySerializer, body_of
from controlplane.api.druid.base import DruidView, error_body
from controlplane.api.druid.system_tables import system_table
from controlplane.api.masked_header import masked_header
from controlplane.api.problems import handle_error
from controlplane.common.client_gone import is_gone
from controlplane.common.errors import InvalidInput, NotFound
from controlplane.common.streaming import Download
from controlplane.query import cancelling
from controlplane.query.running import Dialect, RunningQuery, run_query
from ingestion.specs.messages.sql import MAX_STATEMENT, DruidStatement, SqlParameter

_FORMATS = ["object", "array", "objectLines", "arrayLines", "csv"]
_MAX_ID = 200


class _Parameter(BodySerializer):
    """A value for a question mark."""

    type = serializers.CharField(max_length=20, help_text="VARCHAR, BIGINT, DOUBLE, BOOLEAN, TIMESTAMP or DATE.")
    value = serializers.JSONField(allow_null=True)

    def validate_value(self, value: Any) -> Any:
        if value is not None and not isinstance(value, (str, int, float)):
            raise serializers.ValidationError("must be a text, a number, a boolean or null")
        return value


class DruidSqlBody(BodySerializer):
    """Druid's ``SqlQuery``."""

    query = serializers.CharField(max_length=MAX_STATEMENT, help_text="One SELECT of Druid's SQL.")
    resultFormat = serializers.ChoiceField(_FORMATS, default="object")
    header = serializers.BooleanField(default=False)
    typesHeader = serializers.BooleanField(default=False)
    sqlTypesHeader = serializers.BooleanField(default=False)
    context = serializers.DictField(  # type: ignore[assignment]  # the stubs know Field.context only
        required=False,
        allow_null=True,
        help_text="sqlQueryId, sqlTimeZone, sqlOuterLimit, sqlStringifyArrays and timeout have an effect.",
    )
    parameters = _Parameter(many=True, required=False, allow_null=True)

    def validate(self, attributes: Any) -> Any:
        if (attributes["typesHeader"] or attributes["sqlTypesHeader"]) and not attributes["header"]:
            raise serializers.ValidationError({"header": ["must be true for headers of types"]})
        return attributes


class DruidSqlView(DruidView):
    @extend_schema(
        operation_id="druid_sql",
        tags=["Druid-shaped"],
        request=DruidSqlBody,
        responses={(200, "application/json"): OpenApiTypes.STR},
    )
    def post(self, request: Request) -> HttpResponseBase:
        """Run one SELECT of Druid's SQL. Rows are sent as they come: an answer that fails midway has no end.

        Lines and CSV are `application/json` too, as in Druid.
        """
        body = body_of(request, DruidSqlBody)
        context = body.get("context") or {}
        query_id = _text_of(context, "sqlQueryId") or str(uuid4())
        if len(query_id) > _MAX_ID:
            raise InvalidInput(f"context.sqlQueryId has more than {_MAX_ID} characters.")
        dialect = Dialect(_statement(body, context), system_table, _seconds(context))
        try:
            query = run_query(
                user=self.actor,
                sql=body["query"],
                form="druid",
                query_id=query_id,
                is_gone=lambda: is_gone(request._request),
                dialect=dialect,
            )
        except NotFound as error:  # Druid's status of a table that does not exist
            raise InvalidInput(error.detail, error.errors) from None
        answer = Download(_Chunks(query), content_type="application/json")
        answer["X-Druid-SQL-Query-Id"] = query.query_id.encode("ascii", "backslashreplace").decode()
        answer["X-Headgate-Masked"] = masked_header(query.masked)
        if body["header"]:
            answer["X-Druid-SQL-Header-Included"] = "yes"
        return answer

    def get_exception_handler(self) -> Callable[..., Response]:
        return _sql_error


@extend_schema(exclude=True)
class DruidSqlSlashView(DruidSqlView):
    """Some clients write the address with a slash at its end."""


class DruidSqlQueryView(DruidView):
    @extend_schema(operation_id="druid_cancel_sql", tags=["Druid-shaped"], responses={202: None})
    def delete(self, request: Request, query_id: str) -> HttpResponse:
        """Cancel one of your queries."""
        cancelling.cancel(self.actor, query_id)
        return HttpResponse(status=202)


def _sql_error(error: Exception, context: Any) -> Response:
    """Druid's answer names what was wrong with the statement alone, and that it was SQL."""
    problem = handle_error(error, context)
    body = error_body(problem)
    if problem.errors and all(fault.pointer == "/query" for fault in problem.errors):
        body["errorMessage"] = problem.detail
        body["context"] = {"sourceType": "sql"}
    return Response(body, status=problem.status, headers=dict(problem.headers))


def _statement(body: dict[str, Any], context: dict[str, Any]) -> DruidStatement:
    zone = _text_of(context, "sqlTimeZone") or "UTC"
    if zone not in available_timezones():
        raise InvalidInput(f"context.sqlTimeZone {zone[:100]!r} is not a time zone's name such as Europe/Zurich.")
    return DruidStatement(
        parameters=[SqlParameter(type=p["type"], value=p["value"]) for p in body.get("parameters") or ()],
        zone=zone,
        outer_limit=_number_of(context, "sqlOuterLimit"),
        result_format=body["resultFormat"],
        header=body["header"],
        types_header=body["typesHeader"],
        sql_types_header=body["sqlTypesHeader"],
        lists_as_text=str(context.get("sqlStringifyArrays", True)).lower() != "false",
    )


def _seconds(context: dict[str, Any]) -> float | None:
    """Druid's ``timeout`` is in milliseconds; 0 means no limit."""
    timeout = _number_of(context, "timeout")
    return timeout / 1000 if timeout else None


def _number_of(context: dict[str, Any], name: str) -> int | None:
    """Druid takes texts for numbers in a context."""
    value = context.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not str(value).isdecimal() or len(str(value)) > 18:
        raise InvalidInput(f"context.{name} must be a whole number, 0 or more.")
    return int(value)


def _text_of(context: dict[str, Any], name: str) -> str:
    value = context.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"context.{name} must be a text.")
    return value or ""


class _Chunks:
    """An answer's. Closing them ends the query, also if nobody has read any."""

    def __init__(self, query: RunningQuery) -> None:
        self._chunks = query.chunks()
        self.close = query.close

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks
