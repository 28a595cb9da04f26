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
from controlplane.teams import selectors, services
from controlplane.teams.models import ApiToken, User

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
        """HTTP basic authentication, or the name and password as JSON. At most 20 attempts a minute."""
        given = _credentials(request)
        user = authenticate(request._request, **given)
        if not isinstance(user, User):
            raise AuthenticationFailed("The user name or the password is wrong.")
        token, secret = services.create_token(user=user, name="login")
        user_logged_in.send(sender=User, request=request._request, user=user)
        return Response(LoginSerializer({"token": secret, "expiry": token.expiry}).data)


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
        token, secret = services.create_token(user=self.actor, name=body["name"], lifetime=timedelta(days=body["days"]))
        shown = {
            "token_key": token.token_key,
            "name": token.name,
            "created": token.created,
            "expiry": token.expiry,
            "secret": secret,
        }
        return Response(NewTokenSerializer(shown).data, status=status.HTTP_201_CREATED)


class TokenView(HeadgateView):
    @extend_schema(operation_id="revoke_token", tags=["auth"], responses={204: GONE})
    def delete(self, request: Request, token_id: str) -> Response:
        """Revoke one of your own tokens."""
        services.revoke_token(user=self.actor, token_id=token_id)
        return Response(status=status.HTTP_204_NO_CONTENT)
