"""What is checked of each request, before the view or after it: second factors, refusals, sizes of forms."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.encoding import iri_to_uri

from controlplane.api.problems import CONTENT_TYPE, Problem
from controlplane.common.rate_limit import is_first
from controlplane.common.unverified_requests import is_unproven
from controlplane.config.request_body import BEGINNING_BYTES, REST_PATHS, Body
from controlplane.login.mfa_policy import must_add_factor
from controlplane.teams import audit
from controlplane.teams.models import AuditEntry, User

_SET_UP_VIEW = "frontend:account-app"
_EXEMPT_PATHS = (*REST_PATHS, "/status", "/login/", "/logout/", "/password/", "/healthz", "/readyz", "/metrics")
_EXEMPT_VIEWS = {_SET_UP_VIEW, "frontend:account-passkey", "frontend:account-codes", "frontend:favicon"}
_LOGIN_PATH = "/api/v1/auth/login"
REFUSAL_EVERY_S = 60  # of one user at one route: a script that goes on asking fills no trail
_LONGEST_TARGET = AuditEntry._meta.get_field("target_id").max_length


class SecondFactorFirst:
    """Middleware, behind the one that knows the user: who must have a second factor and has none has to set one up.

    REST checks that itself where it takes a session.
    """

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


class RefusalsInTheTrail:
    """Middleware, behind the one that knows the user: the audit trail has what a role or a scope did not allow.

    It has no expired forms, wrong passwords and ended logins: they say nothing of anybody's rights.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self._get_response(request)
        user = getattr(request, "user", None)  # a token's, once a view has looked at it
        is_refusal = answer.status_code == HTTPStatus.FORBIDDEN and not is_unproven(request)
        if is_refusal and isinstance(user, User):
            requested = f"{request.method} {iri_to_uri(request.path)}"[:_LONGEST_TARGET]
            route = request.resolver_match.route if request.resolver_match else ""
            # By the route: an address may hold anything, so whoever likes would write as many entries as they like.
            if is_first(f"refused {user.pk} {user.token_name} {request.method} {route}", REFUSAL_EVERY_S):
                audit.record(user=user, team=None, target="request", target_id=requested, action="refuse")
        return answer


class NothingLargeFromStrangers:
    """Middleware, behind the one that knows the user: who is not logged in sends no large form."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        logs_in = request.path.startswith(_LOGIN_PATH)
        view_checks = request.path.startswith(REST_PATHS) and not logs_in  # before it reads
        if view_checks or not _is_large(request) or (request.user.is_authenticated and not logs_in):
            return self._get_response(request)
        detail = f"More than {BEGINNING_BYTES} bytes are taken of those only who are logged in."
        problem = Problem(413, "Too large", detail)
        return JsonResponse(problem.body(request.path), status=problem.status, content_type=CONTENT_TYPE)


def _is_large(request: HttpRequest) -> bool:
    stream = getattr(request, "_stream", None)
    if isinstance(stream, Body):
        return not stream.is_complete
    length = request.META.get("CONTENT_LENGTH") or "0"
    return length.isdigit() and int(length) > BEGINNING_BYTES
