"""OAuth2 for clients of the catalog: a token of Headgate, sent as a client's secret, is the access token.

So no second kind of token exists. What is revoked ends at once, and a scope applies here too.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import Throttled
from rest_framework.parsers import FormParser
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.authentication import token_owner
from controlplane.api.iceberg.base import IcebergView
from controlplane.api.passwords import FailureThrottle, basic_pair
from controlplane.teams.models import ApiToken

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105


class OAuthTokensView(IcebergView):
    authentication_classes = []
    permission_classes = [AllowAny]
    parser_classes = [FormParser]

    @extend_schema(
        operation_id="iceberg_token",
        tags=["iceberg"],
        request={"application/x-www-form-urlencoded": OpenApiTypes.OBJECT},
        responses=OpenApiTypes.OBJECT,
        auth=[],
    )
    def post(self, request: Request) -> Response:
        """Client credentials: the name of a service account or user, and one of its tokens as the secret."""
        throttle = FailureThrottle()
        if not throttle.allow_request(request, self):
            raise Throttled(throttle.wait())
        form: Any = request.data
        grant = form.get("grant_type")
        if grant not in ("client_credentials", _EXCHANGE):
            return _refusal(400, "unsupported_grant_type", f"grant_type must be client_credentials or {_EXCHANGE}.")
        secret = _secret(request, is_exchange=grant == _EXCHANGE)
        found = None if secret is None else token_owner(*secret)
        if secret is None or found is None:
            throttle.count()
            text = "client_id must be the name of a service account or user, client_secret one of its API tokens."
            return _refusal(401, "invalid_client", text)
        return Response(_grant(found[1], secret[1]))


def _secret(request: Request, *, is_exchange: bool) -> tuple[str | None, str] | None:
    """The user's name, if the grant has one, and the token; None without a token."""
    form: Any = request.data
    if is_exchange:
        return None, str(form.get("subject_token", ""))
    if "client_secret" in form:
        return str(form.get("client_id", "")), str(form["client_secret"])
    return basic_pair(request)


def _grant(token: ApiToken, secret: str) -> dict[str, Any]:
    granted = {"access_token": secret, "token_type": "bearer", "issued_token_type": _ACCESS_TOKEN}
    if token.expiry is None:
        return granted
    return {**granted, "expires_in": int((token.expiry - timezone.now()).total_seconds())}


def _refusal(status: int, error: str, description: str) -> Response:
    """OAuth2's own format of an error."""
    return Response({"error": error, "error_description": description}, status=status)
