"""Your own sessions and second factors, and another person's second factors for site administrators."""

from __future__ import annotations

from django.urls import reverse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of
from controlplane.api.passwords import LoginThrottle
from controlplane.api.v1.serializers.account import (
    EmailBody,
    EmailSerializer,
    FactorsSerializer,
    MyselfSerializer,
    RemovedSerializer,
    SessionsSerializer,
)
from controlplane.common import mail
from controlplane.common.errors import NotAllowed
from controlplane.common.unverified_requests import mark_unproven
from controlplane.login import email_address, second_factors, sessions
from controlplane.login.reauthentication import failed_reauthentication
from controlplane.teams.permissions import require_person

GONE = OpenApiResponse(description="Done.")


class MyselfView(HeadgateView):
    @extend_schema(operation_id="get_account", tags=["auth"], responses=MyselfSerializer)
    def get(self, request: Request) -> Response:
        """Your own user."""
        return Response(MyselfSerializer(self.actor).data)


class EmailView(HeadgateView):
    throttle_classes = [LoginThrottle]

    @extend_schema(operation_id="change_email", tags=["auth"], request=EmailBody, responses=EmailSerializer)
    def put(self, request: Request) -> Response:
        """Change your e-mail address. Needs your password. At most 20 attempts a minute.

        If the site has a mail server, the new address gets a link. The address is yours when you have opened the link.
        """
        require_person(self.actor, "change an e-mail address")
        body = body_of(request, EmailBody)
        fault = failed_reauthentication(self.actor, body["secret"])
        if fault:
            mark_unproven(request._request)
            raise NotAllowed(fault)
        mailed = email_address.change_address(
            user=self.actor,
            email=body["email"],
            address=lambda secret: mail.link(
                reverse("frontend:account-email-confirm", args=[secret]), request._request
            ),
        )
        answer = {"email": self.actor.email, "mailed_to": body["email"] if mailed else ""}
        return Response(EmailSerializer(answer).data)


class SessionsView(HeadgateView):
    @extend_schema(operation_id="list_sessions", tags=["auth"], responses=SessionsSerializer)
    def get(self, request: Request) -> Response:
        """Your own sessions, most recently used first."""
        own_sessions = sessions.list_sessions(self.actor, request.session.session_key)
        return Response(SessionsSerializer({"results": own_sessions}).data)

    @extend_schema(operation_id="end_sessions", tags=["auth"], responses={204: GONE})
    def delete(self, request: Request) -> Response:
        """End all your sessions except the current one."""
        sessions.end_other_sessions(user=self.actor, current_key=request.session.session_key)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SessionView(HeadgateView):
    @extend_schema(operation_id="end_session", tags=["auth"], responses={204: GONE})
    def delete(self, request: Request, session_id: str) -> Response:
        """End one of your own sessions."""
        sessions.end_session(user=self.actor, session_id=session_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class FactorsView(HeadgateView):
    @extend_schema(operation_id="list_second_factors", tags=["auth"], responses=FactorsSerializer)
    def get(self, request: Request) -> Response:
        """Your own second factors. You set them up and remove them on your account's page, after a new login."""
        return Response(FactorsSerializer({"results": second_factors.list_factors(self.actor)}).data)


class PersonsFactorsView(HeadgateView):
    @extend_schema(operation_id="remove_second_factors", tags=["auth"], responses=RemovedSerializer)
    def delete(self, request: Request, username: str) -> Response:
        """Remove a person's second factors, and end their sessions and tokens. Only for site administrators."""
        removed = second_factors.remove_all_factors(user=self.actor, username=username)
        return Response(RemovedSerializer({"removed": removed}).data)
