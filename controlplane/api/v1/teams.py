"""Teams and their members."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of, query_of
from controlplane.api.pagination import Key, PageQuery, page_of, page_response, paged
from controlplane.api.v1.serializers.teams import (
    AuditQuery,
    AuditSerializer,
    MemberBody,
    MemberSerializer,
    TeamSerializer,
)
from controlplane.teams import audit, selectors, services
from controlplane.teams.models import Role

GONE = OpenApiResponse(description="No member any more.")


class TeamsView(HeadgateView):
    @extend_schema(operation_id="list_teams", tags=["teams"], parameters=[PageQuery], responses=paged(TeamSerializer))
    def get(self, request: Request) -> Response:
        """Your teams."""
        found = selectors.list_teams(self.actor)
        return page_response(page_of(request, found, [Key("name", str)], query_of(request, PageQuery)), TeamSerializer)


class MembersView(HeadgateView):
    @extend_schema(
        operation_id="list_members", tags=["teams"], parameters=[PageQuery], responses=paged(MemberSerializer)
    )
    def get(self, request: Request, name: str) -> Response:
        """A team's members."""
        found = selectors.list_members(selectors.get_team(self.actor, name))
        page = page_of(request, found, [Key("username", str)], query_of(request, PageQuery))
        return page_response(page, MemberSerializer)


class MemberView(HeadgateView):
    @extend_schema(
        operation_id="set_member",
        tags=["teams"],
        request=MemberBody,
        responses={200: MemberSerializer, 201: MemberSerializer},
    )
    def put(self, request: Request, name: str, username: str) -> Response:
        """Add a member or change the role of one. Needs the role admin."""
        team = selectors.get_team(self.actor, name)
        role = Role(body_of(request, MemberBody)["role"])
        member, new = services.set_member(user=self.actor, team=team, username=username, role=role)
        code = status.HTTP_201_CREATED if new else status.HTTP_200_OK
        return Response(MemberSerializer(member).data, status=code)

    @extend_schema(operation_id="remove_member", tags=["teams"], responses={204: GONE})
    def delete(self, request: Request, name: str, username: str) -> Response:
        """Remove a member. Needs the role admin; the last admin stays."""
        team = selectors.get_team(self.actor, name)
        services.remove_member(user=self.actor, team=team, username=username)
        return Response(status=status.HTTP_204_NO_CONTENT)


class AuditView(HeadgateView):
    @extend_schema(
        operation_id="list_audit_entries", tags=["teams"], parameters=[AuditQuery], responses=paged(AuditSerializer)
    )
    def get(self, request: Request, name: str) -> Response:
        """Who did what to what the team owns, newest first. Needs the role admin."""
        query = query_of(request, AuditQuery)
        wanted = {key: query.get(key, "") for key in ("target", "target_id", "action")}
        team = selectors.get_team(self.actor, name)
        found = audit.list_entries(self.actor, team, username=query.get("user", ""), **wanted)
        return page_response(page_of(request, found, [Key("id", int, descending=True)], query), AuditSerializer)
