"""A team's service accounts and their tokens."""

from __future__ import annotations

from datetime import datetime, timedelta

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of, query_of
from controlplane.api.pagination import Key, PageQuery, page_of, page_response, page_schema
from controlplane.api.v1.auth import new_token_response
from controlplane.api.v1.serializers.teams import (
    AccountBody,
    AccountSerializer,
    AccountTokenBody,
    NewTokenSerializer,
    TokenSerializer,
)
from controlplane.teams import service_accounts as accounts
from controlplane.teams.roles import Scope
from controlplane.teams.selectors import get_team

GONE = OpenApiResponse(description="Deleted.")


class AccountsView(HeadgateView):
    @extend_schema(
        operation_id="list_service_accounts",
        tags=["teams"],
        parameters=[PageQuery],
        responses=page_schema(AccountSerializer),
    )
    def get(self, request: Request, name: str) -> Response:
        """A team's service accounts by name. Needs the role admin."""
        listed = accounts.list_accounts(self.actor, get_team(self.actor, name))
        page = page_of(request, listed, [Key("username", str)], query_of(request, PageQuery))
        return page_response(page, AccountSerializer)

    @extend_schema(
        operation_id="create_service_account", tags=["teams"], request=AccountBody, responses={201: AccountSerializer}
    )
    def post(self, request: Request, name: str) -> Response:
        """Create a service account. It needs a token before it can do anything. Needs the role admin."""
        team, body = get_team(self.actor, name), body_of(request, AccountBody)
        accounts.create_account(user=self.actor, team=team, name=body["name"])
        account = accounts.get_account(self.actor, team, body["name"])
        return Response(AccountSerializer(account).data, status=status.HTTP_201_CREATED)


class AccountView(HeadgateView):
    @extend_schema(operation_id="delete_service_account", tags=["teams"], responses={204: GONE})
    def delete(self, request: Request, name: str, account: str) -> Response:
        """Delete a service account and its tokens. Its supervisors and tasks continue. Needs the role admin."""
        accounts.delete_account(user=self.actor, team=get_team(self.actor, name), name=account)
        return Response(status=status.HTTP_204_NO_CONTENT)


class AccountTokensView(HeadgateView):
    @extend_schema(
        operation_id="list_service_account_tokens",
        tags=["teams"],
        parameters=[PageQuery],
        responses=page_schema(TokenSerializer),
    )
    def get(self, request: Request, name: str, account: str) -> Response:
        """A service account's tokens, newest first. Needs the role admin."""
        tokens = accounts.list_account_tokens(self.actor, get_team(self.actor, name), account)
        order = (Key("created", datetime, descending=True), Key("digest", str))
        return page_response(page_of(request, tokens, order, query_of(request, PageQuery)), TokenSerializer)

    @extend_schema(
        operation_id="create_service_account_token",
        tags=["teams"],
        request=AccountTokenBody,
        responses={201: NewTokenSerializer},
    )
    def post(self, request: Request, name: str, account: str) -> Response:
        """Create a token for a service account. Its secret is shown only in this answer.

        Needs the role admin. You cannot use a token with a scope for this.
        """
        team, body = get_team(self.actor, name), body_of(request, AccountTokenBody)
        token, secret = accounts.create_account_token(
            user=self.actor,
            team=team,
            account=account,
            name=body["name"],
            scope=Scope(body["scope"]),
            datasources=body.get("datasources", ()),
            lifetime=timedelta(days=body["days"]),
        )
        return new_token_response(token, secret)


class AccountTokenView(HeadgateView):
    @extend_schema(operation_id="revoke_service_account_token", tags=["teams"], responses={204: GONE})
    def delete(self, request: Request, name: str, account: str, token_id: str) -> Response:
        """Revoke a token. Needs the role admin."""
        team = get_team(self.actor, name)
        accounts.revoke_account_token(user=self.actor, team=team, account=account, token_id=token_id)
        return Response(status=status.HTTP_204_NO_CONTENT)
