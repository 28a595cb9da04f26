"""What is taken of those who have not said who they are."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase

from controlplane.api.problems import CONTENT_TYPE, Problem
from controlplane.config.request_body import BEGINNING_BYTES, REST_PATHS, Body

_LOGIN = "/api/v1/auth/login"


class NothingLargeFromStrangers:
    """Middleware, behind the one that knows the user: who is not logged in sends no large form."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        logs_in = request.path.startswith(_LOGIN)
        view_checks = request.path.startswith(REST_PATHS) and not logs_in  # before it reads
        if view_checks or not _is_large(request) or (request.user.is_authenticated and not logs_in):
            return self._get_response(request)
        detail = f"More than {BEGINNING_BYTES} bytes are taken of those only who are logged in."
        problem = Problem(413, "Too large", detail)
        return JsonResponse(problem.body(request.path), status=problem.status, content_type=CONTENT_TYPE)


def _is_large(request: HttpRequest) -> bool:
    stream = getattr(request, "_stream", None)
    if isinstance(stream, Body):
        return not stream.is_whole
    length = request.META.get("CONTENT_LENGTH") or "0"
    return length.isdigit() and int(length) > BEGINNING_BYTES
