"""Who must have a second factor and has none is led to set one up, and sees nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from controlplane.config.request_body import REST_PATHS
from controlplane.login.mfa_policy import must_add_factor

_SET_UP_VIEW = "frontend:account-app"
_EXEMPT_PATHS = (*REST_PATHS, "/status", "/login/", "/logout/", "/password/", "/healthz", "/readyz")
_EXEMPT_VIEWS = {_SET_UP_VIEW, "frontend:account-passkey", "frontend:account-codes", "frontend:favicon"}


class SecondFactorFirst:
    """Middleware, behind the one that knows the user. REST has its own door, where a session is taken."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponseBase | None:
        """Instead of the page: the one where a second factor is set up."""
        name = request.resolver_match.view_name if request.resolver_match else ""
        if name in _EXEMPT_VIEWS or request.path.startswith(_EXEMPT_PATHS):
            return None
        if not must_add_factor(request.user):
            return None
        if name == "frontend:live":
            return HttpResponse(status=204)  # nothing is to be heard

        return redirect(_SET_UP_VIEW)
