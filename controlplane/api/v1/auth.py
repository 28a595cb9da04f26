"""Login, logout, tokens."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth import logout
from django.contrib.auth.signals import user_logged_in
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of, query_of
from controlplane.api.pagination import Key, PageQuery, page_of, page_response, page_schema
from controlplane.api.passwords import BASIC_CHALLENGE, CODE_HEADER, LoginThrottle, authenticate_person, basic_pair
from controlplane.api.v1.serializers.teams import (
    LoginBody,
    LoginSerializer,
    NewTokenSerializer,
    TokenBody,
    TokenSerializer,
)
from controlplane.login.login_audit import record_login
from controlplane.teams import selectors, services
from controlplane.teams.models import ApiToken, User
from controlplane.teams.roles import Scope

GONE = OpenApiResponse(description="Done.")


class LoginView(HeadgateView):
    """Exchanges a user name and password for a token."""

    authentication_classes = []
    permission_classes = [AllowAny]
    throttle_classes = [LoginThrottle]

    def get_authenticate_header(self, request: Request) -> str:
        return BASIC_CHALLENGE

    @extend_schema(operation_id="login", tags=["auth"], request=LoginBody, responses=LoginSerializer, auth=[])
    def post(self, request: Request) -> Response:
        """Create a token with your password: HTTP basic authentication, or JSON. At most 20 attempts a minute.

        If you have a second factor, also send a code: in ``code`` or, with basic authentication, in the header
        ``X-Headgate-Code``.
        """
        user = authenticate_person(request, *_credentials(request))
        token, secret = services.create_token(user=user, name="login")
        user_logged_in.send(sender=User, request=request._request, user=user)
        record_login(user, "rest")
        return Response(LoginSerializer({"token": secret, "expiry": token.expiry}).data)


def _credentials(request: Request) -> tuple[str, str, str]:
    """User name, password, and the code of a second factor if there is one."""
    pair = basic_pair(request)
    if pair is not None:
        return *pair, request.headers.get(CODE_HEADER, "")
    body = body_of(request, LoginBody)
    return body["username"], body["password"], body.get("code") or request.headers.get(CODE_HEADER, "")


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
    """The only answer that has a token's secret."""
    token.secret = secret  # shown once, kept nowhere
    return Response(NewTokenSerializer(token).data, status=status.HTTP_201_CREATED)


class TokensView(HeadgateView):
    @extend_schema(
        operation_id="list_tokens", tags=["auth"], parameters=[PageQuery], responses=page_schema(TokenSerializer)
    )
    def get(self, request: Request) -> Response:
        """Your own tokens, newest first."""
        order = (Key("created", datetime, descending=True), Key("digest", str))
        page = page_of(request, selectors.list_tokens(self.actor), order, query_of(request, PageQuery))
        return page_response(page, TokenSerializer)

    @extend_schema(operation_id="create_token", tags=["auth"], request=TokenBody, responses={201: NewTokenSerializer})
    def post(self, request: Request) -> Response:
        """Create a token. Its secret is shown only in this answer."""
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
