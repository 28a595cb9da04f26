"""Addresses under /api/ and /druid/ that no view has: the same with or without a slash at the end, else 404.

A redirect to the other form would turn a POST into a GET, so the other form's view answers at once.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.urls import Resolver404, ResolverMatch, resolve
from django.views.decorators.csrf import csrf_exempt

from controlplane.api import problems
from controlplane.api.druid.base import error_body

NOT_FOUND = problems.Problem(404, "Not found", "There is nothing at this address.")


# The view that answers in the end checks what there is to check.
@csrf_exempt
def fallback(request: HttpRequest, rest: str = "") -> HttpResponseBase:
    """Answer as the address with or without the slash would; else 404 in the form of that part of the site."""
    view = _other_form(request.path_info)
    if view is None:
        return _not_found(request)
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


def _not_found(request: HttpRequest) -> JsonResponse:
    if request.path_info.startswith("/druid/"):
        return JsonResponse(error_body(NOT_FOUND), status=404)
    body: dict[str, Any] = NOT_FOUND.body(request.path)
    return JsonResponse(body, status=404, content_type=problems.CONTENT_TYPE)
