"""Sessions and second factors."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.base import BodySerializer
from controlplane.login.second_factors import LABELS

KINDS = sorted(LABELS)


class MyselfSerializer(serializers.Serializer[Any]):
    """The user who sent the request."""

    username = serializers.CharField()
    email = serializers.CharField()
    first_name = serializers.CharField()
    last_name = serializers.CharField()
    site_admin = serializers.BooleanField(source="is_superuser")


class EmailBody(BodySerializer):
    email = serializers.CharField(
        max_length=254, allow_blank=True, help_text="The new address. Empty removes the address."
    )
    secret = serializers.CharField(
        max_length=1000,
        trim_whitespace=False,
        write_only=True,
        style={"input_type": "password"},
        help_text="Your password. If you have none, a code of your second factor.",
    )


class EmailSerializer(serializers.Serializer[Any]):
    email = serializers.CharField(help_text="The current address. It changes after the new one is confirmed.")
    mailed_to = serializers.CharField(help_text="The address that got a confirmation link. Empty if no mail was sent.")


class SessionSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(help_text="Identifies the session. It cannot be used to log in.")
    address = serializers.CharField(allow_null=True)
    browser = serializers.CharField()
    created_at = serializers.DateTimeField()
    seen_at = serializers.DateTimeField(help_text="Time of the last request, accurate to a minute.")
    is_current = serializers.BooleanField()


class SessionsSerializer(serializers.Serializer[Any]):
    results = SessionSerializer(many=True)


class FactorSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    kind = serializers.ChoiceField(KINDS)
    name = serializers.CharField()
    created_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    left = serializers.IntegerField(
        allow_null=True, help_text="Number of unused recovery codes. Null for other factors."
    )


class FactorsSerializer(serializers.Serializer[Any]):
    results = FactorSerializer(many=True)


class RemovedSerializer(serializers.Serializer[Any]):
    removed = serializers.IntegerField()
