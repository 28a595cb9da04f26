"""Teams, members, tokens, login."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from rest_framework import serializers

from controlplane.api.base import BodySerializer
from controlplane.api.pagination import PageQuery
from controlplane.teams.audit import ACTIONS
from controlplane.teams.audit_export import FORMS
from controlplane.teams.roles import Role, Scope
from controlplane.teams.service_accounts import short_name
from controlplane.teams.services import DATASOURCES_A_TOKEN


class TeamSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    description = serializers.CharField()
    role = serializers.ChoiceField(Role.choices, allow_null=True, help_text="Your own.")
    member_count = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class TeamBody(BodySerializer):
    name = serializers.CharField(max_length=63, help_text="Lower-case letters, digits, '-' and '_'.")


class TeamChangeBody(BodySerializer):
    name = serializers.CharField(
        max_length=63, required=False, help_text="Another one; for administrators of the site."
    )
    description = serializers.CharField(max_length=500, required=False, allow_blank=True)


class MemberSerializer(serializers.Serializer[Any]):
    username = serializers.CharField(source="user.username")
    role = serializers.ChoiceField(Role.choices)
    since = serializers.DateTimeField(allow_null=True)
    last_login = serializers.DateTimeField(source="user.last_login", allow_null=True)


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
    text = serializers.CharField(
        required=False, max_length=200, help_text="Anywhere in who, what, to what, and the detail."
    )

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        window = {name: serializers.DateTimeField(required=False, default_timezone=UTC) for name in ("from", "to")}
        return {**super().get_fields(), **window}


class SiteAuditQuery(AuditQuery):
    team = serializers.CharField(required=False, max_length=63, help_text="A name, or `-`: what is the site's alone.")


class AuditExportQuery(AuditQuery):
    """The list's parameters without those of pages: all entries that match are exported."""

    as_ = serializers.ChoiceField(sorted(FORMS), default="csv")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = {name: f for name, f in super().get_fields().items() if name not in ("limit", "cursor")}
        return {("as" if name == "as_" else name): f for name, f in fields.items()}


class SiteAuditExportQuery(AuditExportQuery):
    team = serializers.CharField(required=False, max_length=63, help_text="A name, or `-`: what is the site's alone.")


class AuditSerializer(serializers.Serializer[Any]):
    """Who did what. Entries can't be changed or deleted."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    team = serializers.CharField(
        source="team.name",
        allow_null=True,
        default=None,
        help_text="Null for what is the site's; a deleted one's has a ~.",
    )
    user = serializers.CharField(
        source="username", help_text="Empty for what Headgate did by a rule, and for a failed login."
    )
    address = serializers.CharField(allow_null=True, help_text="The client's; null where no request asked for it.")
    token = serializers.CharField(help_text="Id and name of the token that was shown; empty for a login or password.")
    action = serializers.CharField()
    target = serializers.CharField(help_text=", ".join(sorted(ACTIONS)))
    target_id = serializers.CharField()
    detail = serializers.JSONField(help_text="No secrets, no payloads.")


class LoginBody(BodySerializer):
    username = serializers.CharField(max_length=150)
    password = serializers.CharField(max_length=1000, trim_whitespace=False, style={"input_type": "password"})
    code = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=40,
        write_only=True,
        help_text="Of the second factor, where there is one.",
    )


class LoginSerializer(serializers.Serializer[Any]):
    token = serializers.CharField()
    expiry = serializers.DateTimeField()


class TokenSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="token_key", help_text="The first characters of the secret.")
    name = serializers.CharField()
    created = serializers.DateTimeField()
    expiry = serializers.DateTimeField(allow_null=True)
    scope = serializers.ChoiceField([*Scope.choices, ("", "all that its user may")], help_text="Empty for no limit.")
    datasources = serializers.ListField(child=serializers.CharField(), help_text="For these alone; empty for all.")
    last_used_at = serializers.DateTimeField(allow_null=True, help_text="To the minute.")


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


def _datasources(help_text: str) -> serializers.ListField:
    names = serializers.CharField(max_length=200)
    return serializers.ListField(child=names, max_length=DATASOURCES_A_TOKEN, required=False, help_text=help_text)


class TokenBody(BodySerializer):
    name = serializers.CharField(max_length=100, allow_blank=True, default="")
    days = serializers.IntegerField(min_value=1, max_value=365, default=30, help_text="How long it lives.")
    scope = serializers.ChoiceField(Scope.choices, required=False, help_text="None: whatever you may.")
    datasources = _datasources("For these alone; needs a scope.")


class AccountBody(BodySerializer):
    name = serializers.CharField(max_length=63, help_text="Lower-case letters, digits, '-' and '_'.")


class AccountSerializer(serializers.Serializer[Any]):
    """A service account."""

    name = serializers.SerializerMethodField()
    username = serializers.CharField(help_text="As the audit trail shows it.")
    created_at = serializers.DateTimeField(source="date_joined")
    token_count = serializers.IntegerField()
    last_used_at = serializers.DateTimeField(allow_null=True)

    def get_name(self, account: Any) -> str:
        return short_name(account)


class AccountTokenBody(BodySerializer):
    name = serializers.CharField(max_length=100, allow_blank=True, default="")
    days = serializers.IntegerField(min_value=1, max_value=365, default=90, help_text="How long it lives.")
    scope = serializers.ChoiceField(Scope.choices)
    datasources = _datasources("For these alone; none for all of the team.")
