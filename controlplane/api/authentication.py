"""Bearer tokens, and their description in OpenAPI."""

from __future__ import annotations

from typing import Any

from drf_spectacular.authentication import SessionScheme as PlainSessionScheme
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from knox.auth import TokenAuthentication as KnoxTokenAuthentication
from rest_framework.authentication import SessionAuthentication as PlainSessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from controlplane.login.demanding import must_set_up
from controlplane.teams.service_accounts import note_use


class TokenAuthentication(KnoxTokenAuthentication):
    """``Authorization: Bearer <token>``. One that is wrong or over answers 401 and the challenge ``Bearer``."""

    def authenticate_credentials(self, token: bytes) -> Any:
        if not token.isascii() or b"\x00" in token:  # knox would fail while decoding it, or the database would
            raise AuthenticationFailed("Invalid token.")
        user, found = super().authenticate_credentials(token)
        user.limits = found.limits
        note_use(found)
        return user, found


class SessionAuthentication(PlainSessionAuthentication):
    """A login on the pages. Whoever must set up a second factor first gets no further here either."""

    def authenticate(self, request: Request) -> Any:
        found = super().authenticate(request)
        if found is not None and must_set_up(found[0]):
            text = "This site wants a second factor of you: set one up on the page of your account."
            raise PermissionDenied(text, code="second_factor_required")
        return found


class SessionScheme(PlainSessionScheme):
    target_class = "controlplane.api.authentication.SessionAuthentication"


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = "controlplane.api.authentication.TokenAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A token from /api/v1/auth/login/ or /api/v1/tokens/.",
        }
