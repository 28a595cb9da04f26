"""Invitation links."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.base import BodySerializer
from controlplane.teams.roles import Role


class LinkBody(BodySerializer):
    email = serializers.CharField(max_length=254)
    role = serializers.ChoiceField(Role.choices)


class LinkInvitationSerializer(serializers.Serializer[Any]):
    """An open invitation by link. The link itself is not stored."""

    id = serializers.IntegerField()
    email = serializers.CharField()
    role = serializers.ChoiceField(Role.choices)
    mailed = serializers.BooleanField()
    by = serializers.CharField(source="invited_by.username")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()


class NewLinkSerializer(LinkInvitationSerializer):
    link = serializers.SerializerMethodField(help_text="The link to pass on. Empty if it was mailed.")
    problem = serializers.SerializerMethodField(help_text="Why the link could not be mailed. Else empty.")

    def get_link(self, invitation: Any) -> str:
        return str(self.context.get("link", ""))

    def get_problem(self, invitation: Any) -> str:
        return str(self.context.get("problem", ""))
