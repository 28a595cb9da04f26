"""Maps all exceptions to problem+json (RFC 9457)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.signals import got_request_exception
from django.db import DataError, IntegrityError, InterfaceError, InternalError, OperationalError
from django.http import Http404
from django.http.request import UnreadablePostError
from django.utils.encoding import iri_to_uri
from redis.exceptions import RedisError
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import set_rollback

from controlplane.common.errors import FieldError, HeadgateError

logger = logging.getLogger(__name__)
CONTENT_TYPE = "application/problem+json"
MAX_ERRORS = 100
READ_ONLY = "25006"  # PostgreSQL's state of a change on a standby
RETRY_AFTER_S = 10  # until what is unavailable may be asked for again

# The names under urn:headgate:problem: are part of the API: they do not change.
_NAMES = {
    400: "invalid-input",
    401: "not-authenticated",
    403: "not-allowed",
    404: "not-found",
    405: "method-not-allowed",
    409: "conflict",
    412: "changed-meanwhile",
    413: "too-large",
    415: "unsupported-media-type",
    429: "too-many-requests",
    503: "unavailable",
}
# Answers of one status that a program must tell apart, by the code of their exception.
SPECIAL = {"second_factor_required": "second-factor-required"}


@dataclass(frozen=True)
class Problem:
    """An error for the caller. ``headers`` are sent with it. ``code`` is one of ``SPECIAL``."""

    status: int
    title: str
    detail: str
    errors: list[FieldError] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str = ""

    @property
    def name(self) -> str:
        return SPECIAL.get(self.code) or _NAMES.get(self.status, "internal" if self.status >= 500 else "invalid-input")

    def body(self, instance: str) -> dict[str, Any]:
        """RFC 9457's members and ``errors``: each error that has a place in the input, with this place."""
        return {
            "type": f"urn:headgate:problem:{self.name}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "instance": iri_to_uri(instance),
            "errors": [{"pointer": e.pointer, "detail": e.message, "path": e.path} for e in self.errors[:MAX_ERRORS]],
        }


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's hook: answers every exception of a view. An unexpected one is logged, and the answer has no details."""
    problem = handle_error(error, context)
    request: Request = context["request"]
    return Response(
        problem.body(request.path), status=problem.status, headers=dict(problem.headers), content_type=CONTENT_TYPE
    )


def handle_error(error: Exception, context: Mapping[str, Any]) -> Problem:
    """The problem for an exception. Rolls back, and reports unexpected exceptions."""
    set_rollback()
    problem = problem_of(error)
    if problem.status == 500:
        request = context["request"]
        logger.error("%s %s failed", request.method, request.path, exc_info=error)
        got_request_exception.send(sender=None, request=request._request)
    elif problem.status == 503:
        logger.warning("unavailable: %s", error)
    return problem


def problem_of(error: Exception) -> Problem:
    """The status and text for any exception."""
    match error:
        case HeadgateError():
            headers = {"Retry-After": str(RETRY_AFTER_S)} if error.status == 503 else {}
            return Problem(error.status, error.title, error.detail, error.errors, headers=headers)
        case exceptions.ValidationError():
            return Problem(400, "The request is not valid", "The request has errors.", _field_errors(error.detail))
        case exceptions.APIException():
            return _drf_problem(error)
        case Http404():
            return Problem(404, "Not found", "There is nothing at this address.")
        case PermissionDenied():
            return Problem(403, "Not allowed", "This is not allowed.")
        case RequestDataTooBig():
            return Problem(413, "Too large", "The request's body is too large.")
        case SuspiciousOperation() | UnreadablePostError():
            return Problem(400, "The request is not valid", "The request can't be read.")
    return _store_problem(error)


def _store_problem(error: Exception) -> Problem:
    match error:
        case OperationalError() | InterfaceError():
            return Problem(503, "Unavailable", "The metadata store does not answer; try again.")
        case RedisError():
            return Problem(503, "Unavailable", "Redis does not answer; try again.")
        case IntegrityError():
            return Problem(
                409, "Conflict", "Someone else created the same object at the same time. Check it, then try again."
            )
        case InternalError() if getattr(error.__cause__, "sqlstate", None) == READ_ONLY:
            return Problem(503, "Unavailable", "The metadata store takes no changes at the moment; try again.")
        case DataError():
            return Problem(400, "The request is not valid", "A value is out of range and can't be stored.")
    return Problem(500, "Something went wrong", "The server failed. Its log has the details.")


def _drf_problem(error: exceptions.APIException) -> Problem:
    status = error.status_code
    # DRF sets these on the instance.
    header_values = {
        "WWW-Authenticate": getattr(error, "auth_header", None),
        "Retry-After": getattr(error, "wait", None),
    }
    headers = {k: v if isinstance(v, str) else str(int(v) + 1) for k, v in header_values.items() if v}
    title = HTTPStatus(status).phrase.capitalize() if status in HTTPStatus._value2member_map_ else "Error"
    code = str(getattr(error.detail, "code", ""))
    wait_s = headers.get("Retry-After")
    detail = f"Too many attempts. Wait {wait_s} seconds, then try again." if wait_s else str(error.detail)
    return Problem(status, title, detail, headers=headers, code=code)


def _field_errors(detail: Any) -> list[FieldError]:
    return list(_walk(detail, []))


def _walk(detail: Any, parts: list[str]) -> Iterator[FieldError]:
    if isinstance(detail, dict):
        for key, value in detail.items():
            yield from _walk(value, parts if key == "non_field_errors" else [*parts, str(key)])
    elif isinstance(detail, list):
        for index, value in enumerate(detail):
            nested = isinstance(value, dict | list)
            yield from _walk(value, [*parts, str(index)] if nested else parts)
    else:
        pointer = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)
        yield FieldError(pointer, str(detail), ".".join(parts))
