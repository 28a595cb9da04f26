"""Authentication by bearer token, session or, at Druid's addresses, password; and the OpenAPI schemes of these."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.authentication import SessionScheme as PlainSessionScheme
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from knox.auth import TokenAuthentication as KnoxTokenAuthentication
from rest_framework.authentication import BaseAuthentication
from rest_framework.authentication import SessionAuthentication as PlainSessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied, Throttled
from rest_framework.request import Request

from controlplane.api.passwords import CODE_HEADER, FailureThrottle, authenticate_person, basic_pair
from controlplane.login.mfa_policy import must_add_factor
from controlplane.teams.models import ApiToken, User
from controlplane.teams.service_accounts import note_use, used_lately

_BROWSER_HEADERS = ("Origin", "Sec-Fetch-Site")


class TokenAuthentication(KnoxTokenAuthentication):
    """``Authorization: Bearer <token>``. A wrong or expired token is answered with 401 and the challenge ``Bearer``."""

    def authenticate_credentials(self, token: bytes) -> Any:
        if not token.isascii() or b"\x00" in token:  # knox would fail while decoding it, or the database would
            raise AuthenticationFailed("Invalid token.")
        user, api_token = super().authenticate_credentials(token)
        user.limits, user.token_name = api_token.limits, api_token.display_name
        note_use(api_token)
        return user, api_token

    def _cleanup_token(self, auth_token: ApiToken) -> bool:
        """Whether it has expired; then it is deleted. A user's other expired tokens are deleted once a minute.

        Knox looks for these in each request, and reads all tokens of the user for that.
        """
        now = timezone.now()
        if used_lately(auth_token, now) and (auth_token.expiry is None or auth_token.expiry >= now):
            return False
        return bool(super()._cleanup_token(auth_token))


def from_browser(request: Request) -> bool:
    """Whether the request has a header that only browsers add."""
    return any(name in request.headers for name in _BROWSER_HEADERS)


class BasicAuthentication(BaseAuthentication):
    """HTTP basic authentication with each request, as Druid's clients send it: a password, or a token in its place.

    Wrong passwords count towards the limit of login attempts. Browsers cannot use it: they would also add a stored
    password to requests that other sites caused. People in a browser have a session.
    """

    def authenticate(self, request: Request) -> Any:
        if from_browser(request):
            return None
        pair = basic_pair(request)
        if pair is None:
            return None
        throttle = FailureThrottle()
        if not throttle.allow_request(request, request.parser_context["view"]):
            raise Throttled(throttle.wait())
        try:
            return token_owner(*pair) or (
                authenticate_person(request, *pair, request.headers.get(CODE_HEADER, "")),
                None,
            )
        except AuthenticationFailed:
            throttle.count()
            raise


def token_owner(username: str | None, password: str) -> tuple[User, ApiToken] | None:
    """The owner of the token that was sent as password. None if it is no token, or not of this user."""
    try:
        user, token = TokenAuthentication().authenticate_credentials(password.encode())
    except AuthenticationFailed:
        return None
    return (user, token) if username in (None, user.get_username()) else None


class SessionAuthentication(PlainSessionAuthentication):
    """A login on the pages. A user who must set up a second factor first is refused here too."""

    def authenticate(self, request: Request) -> Any:
        user_and_auth = super().authenticate(request)
        if user_and_auth is not None and must_add_factor(user_and_auth[0]):
            text = "This site requires a second factor. Set one up on the page Your account."
            raise PermissionDenied(text, code="second_factor_required")
        return user_and_auth


class SessionScheme(PlainSessionScheme):
    target_class = "controlplane.api.authentication.SessionAuthentication"


class BasicScheme(OpenApiAuthenticationExtension):
    target_class = "controlplane.api.authentication.BasicAuthentication"
    name = "basic"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "basic",
            "description": "A user name and a password. A token of the user can replace the password.",
        }


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = "controlplane.api.authentication.TokenAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A token from /api/v1/auth/login/ or /api/v1/tokens/.",
        }
