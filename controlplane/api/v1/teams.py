"""Teams and their members."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of, query_of
from controlplane.api.dry_runs import DRY_RUN, with_dry_run
from controlplane.api.pagination import Key, PageQuery, page_of, page_response, page_schema
from controlplane.api.v1.serializers.teams import (
    InvitationSerializer,
    MemberBody,
    MemberSerializer,
    MemberTokenSerializer,
    MyInvitationSerializer,
    PlaceSerializer,
    TeamBody,
    TeamChangeBody,
    TeamSerializer,
)
from controlplane.common.errors import InvalidInput
from controlplane.teams import selectors, services
from controlplane.teams.permissions import Action, require
from controlplane.teams.roles import Role
from controlplane.teams.teams import create_team, delete_team, describe_team, rename_team

GONE = OpenApiResponse(description="Removed.")


class TeamsView(HeadgateView):
    @extend_schema(
        operation_id="list_teams", tags=["teams"], parameters=[PageQuery], responses=page_schema(TeamSerializer)
    )
    def get(self, request: Request) -> Response:
        """Your teams."""
        teams = selectors.list_teams(self.actor)
        return page_response(page_of(request, teams, [Key("name", str)], query_of(request, PageQuery)), TeamSerializer)

    @extend_schema(
        operation_id="create_team",
        tags=["teams"],
        parameters=[DRY_RUN],
        request=TeamBody,
        responses={201: TeamSerializer},
    )
    @with_dry_run
    def post(self, request: Request) -> Response:
        """Create a team without members. Only for site administrators."""
        new_team = create_team(user=self.actor, name=body_of(request, TeamBody)["name"])
        team = selectors.get_team(self.actor, new_team.name)
        return Response(TeamSerializer(team).data, status=status.HTTP_201_CREATED)


class TeamView(HeadgateView):
    @extend_schema(operation_id="get_team", tags=["teams"], responses=TeamSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One of your teams."""
        return Response(TeamSerializer(selectors.get_team(self.actor, name)).data)

    @extend_schema(
        operation_id="change_team",
        tags=["teams"],
        parameters=[DRY_RUN],
        request=TeamChangeBody,
        responses=TeamSerializer,
    )
    @transaction.atomic
    @with_dry_run
    def put(self, request: Request, name: str) -> Response:
        """Change a team's `description` (needs the role admin) or `name` (only for site administrators).

        Fields that are left out keep their values. A new name also changes its addresses and the names of its service
        accounts.
        """
        team, body = selectors.get_team(self.actor, name), body_of(request, TeamChangeBody)
        require(self.actor, Action.ADMINISTER, team)
        if not body:
            raise InvalidInput("Give a new name or description.")
        if "description" in body:
            describe_team(user=self.actor, team=team, description=body["description"])
        renamed = rename_team(user=self.actor, team=team, name=body["name"]) if "name" in body else team
        return Response(TeamSerializer(selectors.get_team(self.actor, renamed.name)).data)

    @extend_schema(operation_id="delete_team", tags=["teams"], responses={204: OpenApiResponse(description="Deleted.")})
    def delete(self, request: Request, name: str) -> Response:
        """Delete a team that owns nothing. Only for site administrators."""
        delete_team(user=self.actor, team=selectors.get_team(self.actor, name))
        return Response(status=status.HTTP_204_NO_CONTENT)


class MembersView(HeadgateView):
    @extend_schema(
        operation_id="list_members", tags=["teams"], parameters=[PageQuery], responses=page_schema(MemberSerializer)
    )
    def get(self, request: Request, name: str) -> Response:
        """A team's members."""
        members = selectors.list_members(selectors.get_team(self.actor, name))
        page = page_of(request, members, [Key("username", str)], query_of(request, PageQuery))
        return page_response(page, MemberSerializer)


class MemberView(HeadgateView):
    @extend_schema(
        operation_id="set_member",
        tags=["teams"],
        parameters=[DRY_RUN],
        request=MemberBody,
        responses={200: PlaceSerializer, 202: PlaceSerializer},
    )
    @with_dry_run
    def put(self, request: Request, name: str, username: str) -> Response:
        """Change a member's role (200), or invite the user with this name (202).

        Needs the role admin. The answer is 202 even if no such user exists. An invited user must accept first.
        """
        team = selectors.get_team(self.actor, name)
        role = Role(body_of(request, MemberBody)["role"])
        place = services.set_member(user=self.actor, team=team, username=username, role=role)
        code = status.HTTP_200_OK if place.state == "member" else status.HTTP_202_ACCEPTED
        return Response(PlaceSerializer(place).data, status=code)

    @extend_schema(operation_id="remove_member", tags=["teams"], responses={204: GONE})
    def delete(self, request: Request, name: str, username: str) -> Response:
        """Remove a member or withdraw an invitation. Needs the role admin. Use your own name to leave the team.

        You cannot remove the last admin.
        """
        team = selectors.get_team(self.actor, name)
        if username == self.actor.username:
            services.leave(user=self.actor, team=team)
        else:
            services.remove_member(user=self.actor, team=team, username=username)
        return Response(status=status.HTTP_204_NO_CONTENT)


class InvitationsView(HeadgateView):
    @extend_schema(
        operation_id="list_invitations",
        tags=["teams"],
        parameters=[PageQuery],
        responses=page_schema(InvitationSerializer),
    )
    def get(self, request: Request, name: str) -> Response:
        """A team's open invitations of users. Needs the role admin."""
        invitations = selectors.list_invitations(self.actor, selectors.get_team(self.actor, name))
        page = page_of(request, invitations, [Key("username", str)], query_of(request, PageQuery))
        return page_response(page, InvitationSerializer)


class MyInvitationsView(HeadgateView):
    @extend_schema(
        operation_id="list_my_invitations",
        tags=["teams"],
        parameters=[PageQuery],
        responses=page_schema(MyInvitationSerializer),
    )
    def get(self, request: Request) -> Response:
        """Your open invitations, each with the offered role. An invitation expires after 30 days."""
        invitations = selectors.my_invitations(self.actor)
        page = page_of(request, invitations, [Key("team_name", str)], query_of(request, PageQuery))
        return page_response(page, MyInvitationSerializer)


class MyInvitationView(HeadgateView):
    @extend_schema(operation_id="accept_invitation", tags=["teams"], request=None, responses=MemberSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Accept a team's invitation. You become a member."""
        return Response(MemberSerializer(services.accept_invitation(user=self.actor, team_name=name)).data)

    @extend_schema(operation_id="decline_invitation", tags=["teams"], responses={204: GONE})
    def delete(self, request: Request, name: str) -> Response:
        """Decline a team's invitation."""
        services.decline_invitation(user=self.actor, team_name=name)
        return Response(status=status.HTTP_204_NO_CONTENT)


class MemberTokensView(HeadgateView):
    @extend_schema(
        operation_id="list_member_tokens",
        tags=["teams"],
        parameters=[PageQuery],
        responses=page_schema(MemberTokenSerializer),
    )
    def get(self, request: Request, name: str) -> Response:
        """The tokens of a team's members, newest first. Needs the role admin."""
        order = (Key("created", datetime, descending=True), Key("digest", str))
        tokens = selectors.list_member_tokens(self.actor, selectors.get_team(self.actor, name))
        return page_response(page_of(request, tokens, order, query_of(request, PageQuery)), MemberTokenSerializer)


class MemberTokenView(HeadgateView):
    @extend_schema(operation_id="revoke_member_token", tags=["teams"], responses={204: GONE})
    def delete(self, request: Request, name: str, username: str, token_id: str) -> Response:
        """Revoke a member's token. Needs the role admin in all teams of the member: the token is valid in all."""
        team = selectors.get_team(self.actor, name)
        services.revoke_member_token(user=self.actor, team=team, username=username, token_id=token_id)
        return Response(status=status.HTTP_204_NO_CONTENT)
