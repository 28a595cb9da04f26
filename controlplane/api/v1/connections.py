"""Connections, their uses, and a team's rule about connection properties in specs."""

from __future__ import annotations

from django.urls import reverse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import TEAM_PARAMETER, HeadgateView, body_of, query_of
from controlplane.api.dry_runs import DRY_RUN, with_dry_run
from controlplane.api.etags import IF_MATCH, etag, version_of
from controlplane.api.pagination import Key, page_of, page_response, page_schema
from controlplane.api.v1.serializers import connections as serializers
from controlplane.connections import selectors, services
from controlplane.connections.models import Connection
from controlplane.supervisors import connections as connection_uses
from controlplane.teams.selectors import get_team

GONE = OpenApiResponse(description="Deleted.")


class ConnectionsView(HeadgateView):
    @extend_schema(
        operation_id="list_connections",
        tags=["connections"],
        parameters=[serializers.ConnectionsQuery],
        responses=page_schema(serializers.ConnectionSerializer),
    )
    def get(self, request: Request) -> Response:
        """Your teams' connections, by team and name."""
        query = query_of(request, serializers.ConnectionsQuery)
        filters = {name: query.get(name, "") for name in ("search", "kind", "team")}
        connections = selectors.list_connections(self.actor, **filters)
        page = page_of(request, connections, [Key("team_name", str), Key("name", str)], query)
        return page_response(page, serializers.ConnectionSerializer)

    @extend_schema(
        operation_id="create_connection",
        tags=["connections"],
        parameters=[DRY_RUN, TEAM_PARAMETER],
        request=serializers.ConnectionBody,
        responses={201: serializers.ConnectionDetailSerializer},
    )
    @with_dry_run
    def post(self, request: Request) -> Response:
        """Create a connection. Its secrets are never shown again. Needs the role admin."""
        body = body_of(request, serializers.ConnectionBody)
        connection = services.create_connection(user=self.actor, team_name=self.team_name, **body)
        address = reverse("api:connection", args=[connection.team.name, connection.name])
        return _connection_response(connection, status.HTTP_201_CREATED, {"Location": address})


class ConnectionView(HeadgateView):
    @extend_schema(
        operation_id="get_connection", tags=["connections"], responses=serializers.ConnectionDetailSerializer
    )
    def get(self, request: Request, team: str, name: str) -> Response:
        """One connection without its secrets. The header `ETag` is its version."""
        return _connection_response(selectors.get_connection(self.actor, team, name))

    @extend_schema(
        operation_id="change_connection",
        tags=["connections"],
        parameters=[DRY_RUN, IF_MATCH],
        request=serializers.ChangeBody,
        responses=serializers.ConnectionDetailSerializer,
    )
    @with_dry_run
    def put(self, request: Request, team: str, name: str) -> Response:
        """Change a connection's properties. Needs the role admin.

        Specs that name it use them from their next task on, or at once after `restart`.
        """
        connection = selectors.get_connection(self.actor, team, name)
        body, version = body_of(request, serializers.ChangeBody), version_of(request)
        changed = services.change_connection(user=self.actor, connection=connection, version=version, **body)
        return _connection_response(changed)

    @extend_schema(operation_id="delete_connection", tags=["connections"], responses={204: GONE})
    def delete(self, request: Request, team: str, name: str) -> Response:
        """Delete an unused connection. 409 lists the supervisors and tasks that use it. Needs the role admin."""
        connection_uses.delete_connection(user=self.actor, connection=selectors.get_connection(self.actor, team, name))
        return Response(status=status.HTTP_204_NO_CONTENT)


class UsesView(HeadgateView):
    @extend_schema(operation_id="list_connection_uses", tags=["connections"], responses=serializers.UsesSerializer)
    def get(self, request: Request, team: str, name: str) -> Response:
        """The supervisors and running manual tasks whose specs name the connection. No terminated supervisors."""
        uses = connection_uses.uses_of(selectors.get_connection(self.actor, team, name))
        return Response(serializers.UsesSerializer({"uses": uses}).data)


class RestartView(HeadgateView):
    @extend_schema(
        operation_id="restart_connection_users",
        tags=["connections"],
        request=None,
        responses=serializers.RestartedSerializer,
    )
    def post(self, request: Request, team: str, name: str) -> Response:
        """Hand off the supervisors that use the connection, so that they use its current properties.

        Needs the role operator.
        """
        connection = selectors.get_connection(self.actor, team, name)
        return Response({"supervisors": connection_uses.hand_off_supervisors(user=self.actor, connection=connection)})


class RuleView(HeadgateView):
    @extend_schema(operation_id="get_connection_rule", tags=["connections"], responses=serializers.RuleSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Whether the team's specs may contain connection properties, or must name a connection."""
        return Response({"own_properties": selectors.own_properties_allowed(get_team(self.actor, name))})

    @extend_schema(
        operation_id="set_connection_rule",
        tags=["connections"],
        request=serializers.ConnectionRuleBody,
        responses=serializers.RuleSerializer,
    )
    def put(self, request: Request, name: str) -> Response:
        """Allow or forbid connection properties in specs that are submitted from now on. Needs the role admin."""
        body = body_of(request, serializers.ConnectionRuleBody)
        rule = services.set_rule(user=self.actor, team=get_team(self.actor, name), **body)
        return Response(serializers.RuleSerializer(rule).data)


def _connection_response(
    connection: Connection, code: int = status.HTTP_200_OK, headers: dict[str, str] | None = None
) -> Response:
    return Response(
        serializers.ConnectionDetailSerializer(connection).data,
        status=code,
        headers={**etag(connection.version), **(headers or {})},
    )
