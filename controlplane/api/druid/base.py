"""The base of the Druid-shaped views: errors have Druid's format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.authentication import (
    BasicAuthentication,
    SessionAuthentication,
    TokenAuthentication,
    from_browser,
)
from controlplane.api.base import HeadgateView, ProblemSchema
from controlplane.api.passwords import BASIC_CHALLENGE
from controlplane.api.problems import MAX_ERRORS, Problem, handle_error

# status → Druid's error code and category (DruidException.Category).
_CATEGORIES = {
    400: ("invalidInput", "INVALID_INPUT"),
    401: ("unauthorized", "UNAUTHORIZED"),
    403: ("forbidden", "FORBIDDEN"),
    404: ("notFound", "NOT_FOUND"),
    409: ("conflict", "CONFLICT"),
    429: ("capacityExceeded", "CAPACITY_EXCEEDED"),
    503: ("serviceUnavailable", "SERVICE_UNAVAILABLE"),
}


def error_body(problem: Problem) -> dict[str, Any]:
    """Druid's error response. Its context has a spec's errors by path."""
    ours = problem.status >= 500
    usual = ("general", "RUNTIME_FAILURE") if ours else ("invalidInput", "INVALID_INPUT")
    code, category = _CATEGORIES.get(problem.status, usual)
    faults = [{"path": e.path, "pointer": e.pointer, "detail": e.message} for e in problem.errors[:MAX_ERRORS]]
    return {
        "error": "druidException",
        "errorCode": code,
        "persona": "OPERATOR" if ours else "USER",
        "category": category,
        "errorMessage": _message(problem),
        "context": {"errors": faults} if faults else {},
    }


def _message(problem: Problem) -> str:
    """The message with all errors, because Druid's console shows only the message."""
    faults = "; ".join(f"{e.path}: {e.message}" if e.path else e.message for e in problem.errors[:10])
    return f"{problem.detail} {faults}" if faults else problem.detail


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """Answers an error in Druid's format; ``problems.exception_handler`` uses Headgate's."""
    problem = handle_error(error, context)
    return Response(error_body(problem), status=problem.status, headers=dict(problem.headers))


class DruidErrorSerializer(serializers.Serializer[Any]):
    """An error in Druid's format."""

    # Only OpenAPI uses this: ``error_body`` writes the answer.

    error = serializers.CharField()
    errorCode = serializers.CharField()
    persona = serializers.CharField()
    category = serializers.CharField()
    errorMessage = serializers.CharField()
    context = serializers.DictField()  # type: ignore[assignment]  # the stubs know Field.context only


class DruidSchema(ProblemSchema):
    problem = DruidErrorSerializer
    problem_type = "application/json"


class DruidView(HeadgateView):
    """Base of views with Druid's formats. They accept a password with each request, as Druid's clients send it."""

    schema = DruidSchema()
    authentication_classes = [TokenAuthentication, BasicAuthentication, SessionAuthentication]
    how_to_log_in = "You are not logged in. Send a password (HTTP Basic), or 'Authorization: Bearer TOKEN'."

    def get_authenticate_header(self, request: Request) -> str:
        """The challenge of a 401. None for browsers, so that they do not ask for a password."""
        bearer = TokenAuthentication().authenticate_header(request)
        return bearer if from_browser(request) else f"{bearer}, {BASIC_CHALLENGE}"

    def get_exception_handler(self) -> Callable[..., Response]:
        return exception_handler
