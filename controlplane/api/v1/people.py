"""The site's people. Only for site administrators."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import BodySerializer, HeadgateView, body_of, query_of
from controlplane.api.pagination import Key, SearchQuery, page_of, page_response, page_schema
from controlplane.common import mail
from controlplane.teams import people

DONE = OpenApiResponse(description="Done.")


class PeopleQuery(SearchQuery):
    active = serializers.BooleanField(required=False, allow_null=True, default=None)
    team = serializers.CharField(required=False, max_length=63)


class PersonSerializer(serializers.Serializer[Any]):
    """A person with a login."""

    username = serializers.CharField()
    email = serializers.CharField()
    is_active = serializers.BooleanField()
    site_admin = serializers.BooleanField(source="is_superuser")
    created_at = serializers.DateTimeField(source="date_joined")
    last_login = serializers.DateTimeField(allow_null=True)


class PersonBody(BodySerializer):
    username = serializers.CharField(max_length=150)
    email = serializers.CharField(max_length=254, required=False, allow_blank=True, default="")


class PasswordLinkSerializer(serializers.Serializer[Any]):
    link = serializers.CharField(help_text="The link to pass on. Empty if it was mailed.")
    problem = serializers.CharField(help_text="Why the link could not be mailed. Else empty.")


class PeopleView(HeadgateView):
    @extend_schema(
        operation_id="list_people", tags=["people"], parameters=[PeopleQuery], responses=page_schema(PersonSerializer)
    )
    def get(self, request: Request) -> Response:
        """All people by name, without service accounts. Only for site administrators."""
        query = query_of(request, PeopleQuery)
        filters = {"search": query.get("search", ""), "active": query["active"], "team": query.get("team", "")}
        users = people.list_people(self.actor, **filters)
        return page_response(page_of(request, users, [Key("username", str)], query), PersonSerializer)

    @extend_schema(operation_id="create_person", tags=["people"], request=PersonBody, responses={201: PersonSerializer})
    def post(self, request: Request) -> Response:
        """Create a person without a password and without a team. Only for site administrators."""
        body = body_of(request, PersonBody)
        person = people.create_person(user=self.actor, username=body["username"], email=body["email"])
        return Response(PersonSerializer(person).data, status=status.HTTP_201_CREATED)


class PersonView(HeadgateView):
    @extend_schema(operation_id="get_person", tags=["people"], responses=PersonSerializer)
    def get(self, request: Request, username: str) -> Response:
        """One person. Only for site administrators."""
        return Response(PersonSerializer(people.get_person(self.actor, username)).data)


class DeactivateView(HeadgateView):
    @extend_schema(operation_id="deactivate_person", tags=["people"], request=None, responses={204: DONE})
    def post(self, request: Request, username: str) -> Response:
        """Deactivate a person. Their sessions and tokens end permanently. Their supervisors and tasks continue."""
        people.set_active(user=self.actor, username=username, active=False)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ActivateView(HeadgateView):
    @extend_schema(operation_id="activate_person", tags=["people"], request=None, responses={204: DONE})
    def post(self, request: Request, username: str) -> Response:
        """Activate a person again."""
        people.set_active(user=self.actor, username=username, active=True)
        return Response(status=status.HTTP_204_NO_CONTENT)


class PasswordLinkView(HeadgateView):
    @extend_schema(
        operation_id="make_password_link", tags=["people"], request=None, responses={200: PasswordLinkSerializer}
    )
    def post(self, request: Request, username: str) -> Response:
        """Create a link with which the person sets a password once, within a day. Earlier links stop working."""
        link, problem = people.send_password_link(
            user=self.actor,
            username=username,
            address=lambda secret: mail.link(reverse("frontend:choose-password", args=[secret]), request._request),
        )
        return Response(PasswordLinkSerializer({"link": link, "problem": problem}).data)
