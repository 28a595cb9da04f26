"""User names and passwords over REST: authentication, and the limit of failed attempts."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from django.contrib.auth import authenticate
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from controlplane.common.client_address import client_address, rate_limit_key
from controlplane.common.text import storable
from controlplane.login.codes import CodeResult, has_second_factor, try_code
from controlplane.login.mfa_policy import must_add_factor
from controlplane.teams.models import User

BASIC_CHALLENGE = 'Basic realm="headgate", charset="UTF-8"'
CODE_HEADER = "X-Headgate-Code"
LONGEST_NAME, LONGEST_PASSWORD = 150, 1000
_UNREADABLE = "The Authorization header cannot be read. Send base64(NAME:PASSWORD) in UTF-8."


class LoginThrottle(SimpleRateThrottle):
    """Limits attempts by the client's address. Headers that the client sets have no effect."""

    scope = "login"

    def get_cache_key(self, request: Request, view: Any) -> str:
        return self.cache_format % {"scope": self.scope, "ident": rate_limit_key(client_address(request._request))}


class FailureThrottle(LoginThrottle):
    """Counts only failed requests, together with logins, because scripts send their password with each request."""

    def throttle_success(self) -> bool:
        return True

    def count(self) -> None:
        """Count the admitted request as failed."""
        super().throttle_success()


def basic_pair(request: Request) -> tuple[str, str] | None:
    """User name and password of HTTP basic authentication. None if the request has none.

    Raises ``AuthenticationFailed`` for a header that cannot be read.
    """
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        username, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise AuthenticationFailed(_UNREADABLE) from None
    fits = 0 < len(username) <= LONGEST_NAME and 0 < len(password) <= LONGEST_PASSWORD
    if not colon or not fits or not storable(username + password):
        raise AuthenticationFailed(_UNREADABLE)
    return username, password


def authenticate_person(request: Request, username: str, password: str, code: str) -> User:
    """The user with this name and password. Raises ``AuthenticationFailed``.

    A user with a second factor also needs its code, as on the pages.
    """
    user = authenticate(request._request, username=username, password=password)
    if not isinstance(user, User):
        raise AuthenticationFailed("The user name or the password is wrong.")
    if must_add_factor(user):
        raise AuthenticationFailed(
            "This site requires a second factor. Log in on its pages and set one up.", code="second_factor_required"
        )
    if not has_second_factor(user):
        return user
    if not code:
        raise AuthenticationFailed("A code of your second factor is required too.", code="second_factor_required")
    verdict, _ = try_code(user, code)
    if verdict is not CodeResult.RIGHT:
        raise AuthenticationFailed(verdict.value, code="second_factor_required")
    return user
