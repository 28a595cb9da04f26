"""The base of the catalog's views: errors have the format of Iceberg's specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, ProblemSchema
from controlplane.api.problems import Problem, handle_error

UNSUPPORTED = 406  # the specification's answer to a request that the server does not support
READ_ONLY = "This catalog is read-only. Streams, batch tasks and compaction change its tables."
# What clients raise, by status.
_TYPES = {
    401: "NotAuthorizedException",
    403: "ForbiddenException",
    UNSUPPORTED: "UnsupportedOperationException",
    429: "TooManyRequestsException",
    503: "ServiceUnavailableException",
}


def error_body(status: int, message: str, kind: str = "") -> dict[str, Any]:
    """The specification's error response. ``kind``: what clients raise, if the status does not say it."""
    usual = "InternalServerError" if status >= 500 else "BadRequestException"
    return {"error": {"message": message, "type": kind or _TYPES.get(status, usual), "code": status}}


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """Answers an error in Iceberg's format. A method that no view has is a write."""
    problem: Problem = handle_error(error, context)
    status, message = (UNSUPPORTED, READ_ONLY) if problem.status == 405 else (problem.status, problem.detail)
    kind = context["view"].missing if status == 404 else ""
    return Response(error_body(status, message, kind), status=status, headers=dict(problem.headers))


class IcebergErrorSerializer(serializers.Serializer[Any]):
    """An error in Iceberg's format."""

    # Only OpenAPI uses this: ``error_body`` writes the answer.

    error = serializers.DictField()


class IcebergSchema(ProblemSchema):
    problem = IcebergErrorSerializer
    problem_type = "application/json"


class IcebergView(HeadgateView):
    """Base of the catalog's views."""

    schema = IcebergSchema()
    metadata_class = None
    missing = "NoSuchNamespaceException"  # what clients raise for a 404

    def get_exception_handler(self) -> Callable[..., Response]:
        return exception_handler
