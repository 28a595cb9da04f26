"""Teams, members, tokens, login."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.base import BodySerializer
from controlplane.api.pagination import PageQuery
from controlplane.teams.audit import ACTIONS
from controlplane.teams.models import Role


class TeamSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    role = serializers.ChoiceField(Role.choices, allow_null=True, help_text="Your own.")
    member_count = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class MemberSerializer(serializers.Serializer[Any]):
    username = serializers.CharField(source="user.username")
    role = serializers.ChoiceField(Role.choices)


class PlaceSerializer(serializers.Serializer[Any]):
    username = serializers.CharField()
    role = serializers.ChoiceField(Role.choices)
    state = serializers.ChoiceField(["member", "invited"], help_text="Who is invited has to accept first.")


class InvitationSerializer(serializers.Serializer[Any]):
    """An open invitation, as the team's admins see it."""

    username = serializers.CharField()
    role = serializers.ChoiceField(Role.choices)
    created_at = serializers.DateTimeField()


class MyInvitationSerializer(serializers.Serializer[Any]):
    """An open invitation, as whoever is invited sees it."""

    team = serializers.CharField(source="team_name")
    role = serializers.ChoiceField(Role.choices)
    by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class MemberBody(BodySerializer):
    role = serializers.ChoiceField(Role.choices)


class AuditQuery(PageQuery):
    user = serializers.CharField(required=False, max_length=150)
    target = serializers.ChoiceField(sorted(ACTIONS), required=False)
    target_id = serializers.CharField(required=False, max_length=300)
    action = serializers.ChoiceField(sorted({a for actions in ACTIONS.values() for a in actions}), required=False)


class AuditSerializer(serializers.Serializer[Any]):
    """Who did what. Entries can't be changed or deleted."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    user = serializers.CharField(source="username", help_text="Empty for what Headgate did by a rule.")
    address = serializers.CharField(allow_null=True, help_text="The client's; null where no request asked for it.")
    action = serializers.CharField()
    target = serializers.CharField(help_text=", ".join(sorted(ACTIONS)))
    target_id = serializers.CharField()
    detail = serializers.JSONField(help_text="No secrets, no payloads.")


class LoginBody(BodySerializer):
    username = serializers.CharField(max_length=150)
    password = serializers.CharField(max_length=1000, trim_whitespace=False, style={"input_type": "password"})


class LoginSerializer(serializers.Serializer[Any]):
    token = serializers.CharField()
    expiry = serializers.DateTimeField()


class TokenSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="token_key", help_text="The first characters of the secret.")
    name = serializers.CharField()
    created = serializers.DateTimeField()
    expiry = serializers.DateTimeField(allow_null=True)


class MemberTokenSerializer(serializers.Serializer[Any]):
    """A member's token."""

    id = serializers.CharField(source="token_key")
    username = serializers.CharField()
    name = serializers.SerializerMethodField()
    created = serializers.DateTimeField()
    expiry = serializers.DateTimeField(allow_null=True)
    revocable = serializers.SerializerMethodField(
        help_text="False when its user works where you are no admin; its name is not shown then."
    )

    def get_name(self, token: Any) -> str:
        return "" if token.elsewhere else str(token.name)

    def get_revocable(self, token: Any) -> bool:
        return not token.elsewhere


class NewTokenSerializer(TokenSerializer):
    token = serializers.CharField(source="secret", help_text="The secret. It is shown this once.")


class TokenBody(BodySerializer):
    name = serializers.CharField(max_length=100, allow_blank=True, default="")
    days = serializers.IntegerField(min_value=1, max_value=365, default=30, help_text="How long it lives.")
