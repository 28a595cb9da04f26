"""Sessions and second factors."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.base import BodySerializer
from controlplane.login.second_factors import LABELS

KINDS = sorted(LABELS)


class MyselfSerializer(serializers.Serializer[Any]):
    """Who asks."""

    username = serializers.CharField()
    email = serializers.CharField()
    first_name = serializers.CharField()
    last_name = serializers.CharField()
    site_admin = serializers.BooleanField(source="is_superuser")


class EmailBody(BodySerializer):
    email = serializers.CharField(max_length=254, allow_blank=True, help_text="Empty: none.")
    secret = serializers.CharField(
        max_length=1000,
        trim_whitespace=False,
        write_only=True,
        style={"input_type": "password"},
        help_text="Your password; without one a code of your second factor.",
    )


class EmailSerializer(serializers.Serializer[Any]):
    email = serializers.CharField(help_text="As it is now.")
    mailed_to = serializers.CharField(help_text="Where a link went that confirms the new one; empty: nowhere.")


class SessionSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(help_text="Names the session, and does not open it.")
    address = serializers.CharField(allow_null=True)
    browser = serializers.CharField()
    created_at = serializers.DateTimeField()
    seen_at = serializers.DateTimeField(help_text="To within a minute.")
    is_current = serializers.BooleanField()


class SessionsSerializer(serializers.Serializer[Any]):
    results = SessionSerializer(many=True)


class FactorSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    kind = serializers.ChoiceField(KINDS)
    name = serializers.CharField()
    created_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    left = serializers.IntegerField(allow_null=True, help_text="Recovery codes that are not used.")


class FactorsSerializer(serializers.Serializer[Any]):
    results = FactorSerializer(many=True)


class RemovedSerializer(serializers.Serializer[Any]):
    removed = serializers.IntegerField()
