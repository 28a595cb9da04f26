"""What is asked of a column, and its profile."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.v1.serializers.datasources import WindowQuery


class ProfileQuery(WindowQuery):
    column = serializers.CharField(trim_whitespace=False, help_text="The column's name, as in `columns/`.")


class TopValueSerializer(serializers.Serializer[Any]):
    value = serializers.JSONField()
    count = serializers.IntegerField(help_text="Rows with this value. Of a list: how often it occurs.")


class ColumnProfileSerializer(serializers.Serializer[Any]):
    """One type of the column. A long value is an object: {"start", "size_bytes"}."""

    name = serializers.CharField(help_text="The column's name in SQL.")
    type = serializers.CharField()
    masked = serializers.CharField(
        help_text="The least role that sees a column that is masked for you. It is not read. Empty if not masked."
    )
    rows = serializers.IntegerField()
    nulls = serializers.IntegerField()
    values = serializers.IntegerField(
        allow_null=True, help_text="Values without nulls. Of lists: their values. Null for sketches."
    )
    distinct = serializers.IntegerField(allow_null=True, help_text="Distinct values: exact below 10, else approximate.")
    min = serializers.JSONField(allow_null=True)
    max = serializers.JSONField(allow_null=True)
    top = TopValueSerializer(many=True, help_text="The 10 most frequent values.")


class DatasourceColumnSerializer(serializers.Serializer[Any]):
    """A column in one time range, with an entry for each type that it has had."""

    column = serializers.CharField()
    start = serializers.DateTimeField(allow_null=True)
    end = serializers.DateTimeField(allow_null=True, help_text="Exclusive.")
    files = serializers.IntegerField(help_text="The files that were read.")
    profiles = ColumnProfileSerializer(many=True)
