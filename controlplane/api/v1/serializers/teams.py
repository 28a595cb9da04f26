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
    role = serializers.ChoiceField(
        Role.choices, allow_null=True, help_text="Your role in the team. Null if you are not a member."
    )
    member_count = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class TeamBody(BodySerializer):
    name = serializers.CharField(max_length=63, help_text="Lower-case letters, digits, '-' and '_'.")


class TeamChangeBody(BodySerializer):
    name = serializers.CharField(
        max_length=63, required=False, help_text="A new name. Only site administrators can rename a team."
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
    state = serializers.ChoiceField(
        ["member", "invited"], help_text="`invited` until the person accepts the invitation."
    )


class InvitationSerializer(serializers.Serializer[Any]):
    """An open invitation, as the team's admins see it."""

    username = serializers.CharField()
    role = serializers.ChoiceField(Role.choices)
    created_at = serializers.DateTimeField()


class MyInvitationSerializer(serializers.Serializer[Any]):
    """An open invitation, as the invited person sees it."""

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
        required=False, max_length=200, help_text="Text to find in the user, action, target or detail."
    )

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        window = {name: serializers.DateTimeField(required=False, default_timezone=UTC) for name in ("from", "to")}
        return {**super().get_fields(), **window}


class SiteAuditQuery(AuditQuery):
    team = serializers.CharField(
        required=False, max_length=63, help_text="A team's name, or `-` for entries without a team."
    )


class AuditExportQuery(AuditQuery):
    """The list's filters. All matching entries are exported."""

    as_ = serializers.ChoiceField(sorted(FORMS), default="csv")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = {name: f for name, f in super().get_fields().items() if name not in ("limit", "cursor")}
        return {("as" if name == "as_" else name): f for name, f in fields.items()}


class SiteAuditExportQuery(AuditExportQuery):
    team = serializers.CharField(
        required=False, max_length=63, help_text="A team's name, or `-` for entries without a team."
    )


class AuditSerializer(serializers.Serializer[Any]):
    """One action of a user. Entries cannot be changed or deleted."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    team = serializers.CharField(
        source="team.name",
        allow_null=True,
        default=None,
        help_text="The team. Null for actions on the site. The name of a deleted team has a ~.",
    )
    user = serializers.CharField(
        source="username", help_text="The user. Empty for a failed login and for actions of Headgate's own rules."
    )
    address = serializers.CharField(
        allow_null=True, help_text="The client's IP address. Null for actions without a request."
    )
    token = serializers.CharField(help_text="Id and name of the token that was used. Empty if no token was used.")
    action = serializers.CharField()
    target = serializers.CharField(help_text=f"The kind of object: {', '.join(sorted(ACTIONS))}.")
    target_id = serializers.CharField()
    detail = serializers.JSONField(help_text="Details of the action, without secrets and payloads.")


class LoginBody(BodySerializer):
    username = serializers.CharField(max_length=150)
    password = serializers.CharField(max_length=1000, trim_whitespace=False, style={"input_type": "password"})
    code = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=40,
        write_only=True,
        help_text="The code of the second factor, if the user has one.",
    )


class LoginSerializer(serializers.Serializer[Any]):
    token = serializers.CharField()
    expiry = serializers.DateTimeField()


class TokenSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="token_key", help_text="The first characters of the secret.")
    name = serializers.CharField()
    created = serializers.DateTimeField()
    expiry = serializers.DateTimeField(allow_null=True)
    scope = serializers.ChoiceField(
        [*Scope.choices, ("", "full access of its user")],
        help_text="What the token may do. Empty: all that its user may do.",
    )
    datasources = serializers.ListField(
        child=serializers.CharField(), help_text="The datasources that the token is limited to. Empty: all."
    )
    last_used_at = serializers.DateTimeField(
        allow_null=True, help_text="Time of the last use, accurate to a minute. Null if never used."
    )


class MemberTokenSerializer(serializers.Serializer[Any]):
    """A member's token."""

    id = serializers.CharField(source="token_key")
    username = serializers.CharField()
    name = serializers.SerializerMethodField()
    created = serializers.DateTimeField()
    expiry = serializers.DateTimeField(allow_null=True)
    revocable = serializers.SerializerMethodField(
        help_text="Whether you may revoke it. False if its user is also in a team that you do not administer; "
        "the name is then hidden."
    )

    def get_name(self, token: Any) -> str:
        return "" if token.elsewhere else str(token.name)

    def get_revocable(self, token: Any) -> bool:
        return not token.elsewhere


class NewTokenSerializer(TokenSerializer):
    token = serializers.CharField(source="secret", help_text="The secret. It is shown only once.")


def _datasources(help_text: str) -> serializers.ListField:
    names = serializers.CharField(max_length=200)
    return serializers.ListField(child=names, max_length=DATASOURCES_A_TOKEN, required=False, help_text=help_text)


class TokenBody(BodySerializer):
    name = serializers.CharField(max_length=100, allow_blank=True, default="")
    days = serializers.IntegerField(
        min_value=1, max_value=365, default=30, help_text="Number of days until the token expires."
    )
    scope = serializers.ChoiceField(
        Scope.choices, required=False, help_text="What the token may do. If left out, all that you may do."
    )
    datasources = _datasources("Datasources that the token is limited to. It also needs a scope.")


class AccountBody(BodySerializer):
    name = serializers.CharField(max_length=63, help_text="Lower-case letters, digits, '-' and '_'.")


class AccountSerializer(serializers.Serializer[Any]):
    """A service account."""

    name = serializers.SerializerMethodField()
    username = serializers.CharField(help_text="The name that the audit trail shows.")
    created_at = serializers.DateTimeField(source="date_joined")
    token_count = serializers.IntegerField()
    last_used_at = serializers.DateTimeField(allow_null=True)

    def get_name(self, account: Any) -> str:
        return short_name(account)


class AccountTokenBody(BodySerializer):
    name = serializers.CharField(max_length=100, allow_blank=True, default="")
    days = serializers.IntegerField(
        min_value=1, max_value=365, default=90, help_text="Number of days until the token expires."
    )
    scope = serializers.ChoiceField(Scope.choices)
    datasources = _datasources("Datasources that the token is limited to. If left out, all of the team's.")
