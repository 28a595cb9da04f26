"""Bearer tokens, and their description in OpenAPI."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from knox.auth import TokenAuthentication as KnoxTokenAuthentication
from rest_framework.exceptions import AuthenticationFailed


class TokenAuthentication(KnoxTokenAuthentication):
    """``Authorization: Bearer <token>``. One that is wrong or over answers 401 and the challenge ``Bearer``."""

    def authenticate_credentials(self, token: bytes) -> Any:
        if not token.isascii() or b"\x00" in token:  # knox would fail while decoding it, or the database would
            raise AuthenticationFailed("Invalid token.")
        return super().authenticate_credentials(token)


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = "controlplane.api.authentication.TokenAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A token from /api/v1/auth/login/ or /api/v1/tokens/.",
        }
