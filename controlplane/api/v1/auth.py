"""Login, logout, tokens."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import authenticate, logout
from django.contrib.auth.signals import user_logged_in
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import SimpleRateThrottle

from controlplane.api.base import HeadgateView, body_of, query_of
from controlplane.api.pagination import Key, PageQuery, page_of, page_response, paged
from controlplane.api.v1.serializers.teams import (
    LoginBody,
    LoginSerializer,
    NewTokenSerializer,
    TokenBody,
    TokenSerializer,
)
from controlplane.common.clients import client_address, counted_as
from controlplane.login.codes import Verdict, has_second_factor, try_code
from controlplane.login.demanding import must_set_up
from controlplane.teams import selectors, services
from controlplane.teams.models import ApiToken, User
from controlplane.teams.roles import Scope

GONE = OpenApiResponse(description="Done.")


class LoginThrottle(SimpleRateThrottle):
    """By the caller's address: what a caller writes into a header counts nothing."""

    scope = "login"

    def get_cache_key(self, request: Request, view: Any) -> str:
        return self.cache_format % {"scope": self.scope, "ident": counted_as(client_address(request._request))}


class LoginView(HeadgateView):
    """Changes a user name and password for a token."""

    authentication_classes = []
    permission_classes = [AllowAny]
    throttle_classes = [LoginThrottle]

    def get_authenticate_header(self, request: Request) -> str:
        return 'Basic realm="headgate", charset="UTF-8"'

    @extend_schema(operation_id="login", tags=["auth"], request=LoginBody, responses=LoginSerializer, auth=[])
    def post(self, request: Request) -> Response:
        """HTTP basic authentication, or the name and password as JSON. At most 20 attempts a minute.

        Who has a second factor gives a code of it, too: as ``code``, or with basic authentication in the header
        ``X-Headgate-Code``.
        """
        given = _credentials(request)
        code = str(given.pop("code", "") or request.headers.get("X-Headgate-Code", ""))
        user = authenticate(request._request, **given)
        if not isinstance(user, User):
            raise AuthenticationFailed("The user name or the password is wrong.")
        _second_factor(user, code)
        token, secret = services.create_token(user=user, name="login")
        user_logged_in.send(sender=User, request=request._request, user=user)
        return Response(LoginSerializer({"token": secret, "expiry": token.expiry}).data)


def _second_factor(user: User, code: str) -> None:
    """A password alone opens nothing for who has a second factor, here as on the pages."""
    if must_set_up(user):
        raise AuthenticationFailed(
            "This site wants a second factor of you: log in on its pages and set one up.", code="second_factor_required"
        )
    if not has_second_factor(user):
        return
    if not code:
        raise AuthenticationFailed("A code of the second factor is needed, too.", code="second_factor_required")
    verdict, _ = try_code(user, code)
    if verdict is not Verdict.RIGHT:
        raise AuthenticationFailed(verdict.value, code="second_factor_required")


def _credentials(request: Request) -> dict[str, Any]:
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return body_of(request, LoginBody)
    try:
        username, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        colon = ""
    body = LoginBody(data={"username": username, "password": password}) if colon else None
    if body is None or not body.is_valid():
        raise AuthenticationFailed("The Authorization header can't be read.")
    data: dict[str, Any] = body.validated_data
    return data


class LogoutView(HeadgateView):
    @extend_schema(operation_id="logout", tags=["auth"], request=None, responses={204: GONE})
    def post(self, request: Request) -> Response:
        """Revoke the token of this request, or end its session."""
        if isinstance(request.auth, ApiToken):
            request.auth.delete()
        else:
            logout(request._request)
        return Response(status=status.HTTP_204_NO_CONTENT)


def new_token_response(token: ApiToken, secret: str) -> Response:
    """The one answer that has a token's secret."""
    token.secret = secret  # shown once, kept nowhere
    return Response(NewTokenSerializer(token).data, status=status.HTTP_201_CREATED)


class TokensView(HeadgateView):
    @extend_schema(operation_id="list_tokens", tags=["auth"], parameters=[PageQuery], responses=paged(TokenSerializer))
    def get(self, request: Request) -> Response:
        """Your own tokens, newest first."""
        order = (Key("created", datetime, descending=True), Key("digest", str))
        page = page_of(request, selectors.list_tokens(self.actor), order, query_of(request, PageQuery))
        return page_response(page, TokenSerializer)

    @extend_schema(operation_id="create_token", tags=["auth"], request=TokenBody, responses={201: NewTokenSerializer})
    def post(self, request: Request) -> Response:
        """A new token. Its secret is in this answer and never again."""
        body = body_of(request, TokenBody)
        token, secret = services.create_token(
            user=self.actor,
            name=body["name"],
            lifetime=timedelta(days=body["days"]),
            scope=Scope(body["scope"]) if "scope" in body else None,
            datasources=body.get("datasources", ()),
        )
        return new_token_response(token, secret)


class TokenView(HeadgateView):
    @extend_schema(operation_id="revoke_token", tags=["auth"], responses={204: GONE})
    def delete(self, request: Request, token_id: str) -> Response:
        """Revoke one of your own tokens."""
        services.revoke_token(user=self.actor, token_id=token_id)
        return Response(status=status.HTTP_204_NO_CONTENT)
