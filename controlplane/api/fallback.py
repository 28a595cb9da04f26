"""Addresses under /api, /druid and /status without a view: tries them with or without the last slash, else 404.

A redirect to the other form would turn a POST into a GET, so the other form's view answers at once.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.urls import Resolver404, ResolverMatch, resolve
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt

from controlplane.api import problems
from controlplane.api.druid.base import error_body

NOT_FOUND = problems.Problem(404, "Not found", "There is nothing at this address.")
UNREADABLE = problems.Problem(400, "The request is not valid", "This site does not accept the request's Host header.")


# The view that answers in the end checks what there is to check.
@csrf_exempt
def fallback(request: HttpRequest, rest: str = "") -> HttpResponseBase:
    """Answer with the view of the address with or without the last slash. Else 404 in the format of these addresses."""
    view = _other_form(request.path_info)
    if view is None:
        return problem_response(request, NOT_FOUND)
    request.resolver_match = view
    answer: HttpResponseBase = view.func(request, *view.args, **view.kwargs)
    return answer


def _other_form(path: str) -> ResolverMatch | None:
    other = path.rstrip("/") if path.endswith("/") else f"{path}/"
    try:
        view = resolve(other)
    except Resolver404:
        return None
    return None if view.func is fallback else view


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answers requests that Django refuses before a view, such as an unknown host name. REST answers JSON."""
    if not request.path_info.startswith(("/api", "/druid", "/status")):
        return defaults.bad_request(request, exception)
    return problem_response(request, UNREADABLE)


def problem_response(request: HttpRequest, problem: problems.Problem) -> JsonResponse:
    """The problem in the format of the request's address."""
    if not request.path_info.startswith("/api"):
        return JsonResponse(error_body(problem), status=problem.status)
    body: dict[str, Any] = problem.body(request.path)
    return JsonResponse(body, status=problem.status, content_type=problems.CONTENT_TYPE)
