"""How long answers take, by view, method and class of status: for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from controlplane.common.measures import HTTP_REQUESTS

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class MeasuredRequests:
    """Middleware. What a client makes up, an address or a method, is no label."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        began = perf_counter()
        answer = self._get_response(request)
        measure(request, answer, perf_counter() - began)
        return answer


def measure(request: HttpRequest, answer: HttpResponseBase, seconds: float) -> None:
    """Count one request."""
    match = request.resolver_match
    view = (match.view_name or match.route) if match else "none"
    method = request.method if request.method in _METHODS else "other"
    HTTP_REQUESTS.labels(view, method, f"{answer.status_code // 100}xx").observe(seconds)
