"""Invitation links for people without a login."""

from __future__ import annotations

from django.urls import reverse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of, query_of
from controlplane.api.pagination import Key, PageQuery, page_of, page_response, page_schema
from controlplane.api.v1.serializers.links import LinkBody, LinkInvitationSerializer, NewLinkSerializer
from controlplane.common import mail
from controlplane.teams.invitation_links import invite_by_link, list_links, withdraw_link
from controlplane.teams.roles import Role
from controlplane.teams.selectors import get_team


class LinksView(HeadgateView):
    @extend_schema(
        operation_id="list_invitation_links",
        tags=["teams"],
        parameters=[PageQuery],
        responses=page_schema(LinkInvitationSerializer),
    )
    def get(self, request: Request, name: str) -> Response:
        """A team's open invitations by link. Needs the role admin."""
        links = list_links(self.actor, get_team(self.actor, name))
        page = page_of(request, links, [Key("email", str)], query_of(request, PageQuery))
        return page_response(page, LinkInvitationSerializer)

    @extend_schema(operation_id="invite_by_link", tags=["teams"], request=LinkBody, responses={201: NewLinkSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Invite an e-mail address. Needs the role admin. Earlier links to this address stop working.

        The link works once, for seven days. It is mailed if the site has a mail server. Else this answer has it, once.
        """
        team, body = get_team(self.actor, name), body_of(request, LinkBody)
        sent = invite_by_link(
            user=self.actor,
            team=team,
            email=body["email"],
            role=Role(body["role"]),
            address=lambda secret: mail.link(reverse("frontend:join", args=[secret]), request._request),
        )
        shown = NewLinkSerializer(sent.invitation, context={"link": sent.link, "problem": sent.problem})
        return Response(shown.data, status=status.HTTP_201_CREATED)


class LinkView(HeadgateView):
    @extend_schema(
        operation_id="withdraw_invitation_link",
        tags=["teams"],
        responses={204: OpenApiResponse(description="The link no longer works.")},
    )
    def delete(self, request: Request, name: str, number: int) -> Response:
        """Withdraw an invitation by link. Needs the role admin."""
        withdraw_link(user=self.actor, team=get_team(self.actor, name), link_id=number)
        return Response(status=status.HTTP_204_NO_CONTENT)
