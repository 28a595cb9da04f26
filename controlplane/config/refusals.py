"""What a role or a scope did not allow stands in the site's audit trail.

A form that has expired, a wrong password and a login that is over do not: they say nothing of anybody's rights.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.encoding import iri_to_uri

from controlplane.common.rate_limit import is_first
from controlplane.common.unverified_requests import is_unproven
from controlplane.teams import audit
from controlplane.teams.models import AuditEntry, User

EVERY_S = 60  # of one user at one route: a script that goes on asking fills no trail
_LONGEST = AuditEntry._meta.get_field("target_id").max_length


class RefusalsInTheTrail:
    """Middleware, behind the one that knows the user."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self._get_response(request)
        user = getattr(request, "user", None)  # a token's, once a view has looked at it
        is_refusal = answer.status_code == HTTPStatus.FORBIDDEN and not is_unproven(request)
        if is_refusal and isinstance(user, User):
            requested = f"{request.method} {iri_to_uri(request.path)}"[:_LONGEST]
            route = request.resolver_match.route if request.resolver_match else ""
            # By the route: an address may hold anything, so whoever likes would write as many entries as they like.
            if is_first(f"refused {user.pk} {user.shown_token} {request.method} {route}", EVERY_S):
                audit.record(user=user, team=None, target="request", target_id=requested, action="refuse")
        return answer
