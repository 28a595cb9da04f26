"""SQL: what is asked, and what the answer says beside its rows."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.base import BodySerializer
from ingestion.specs.messages.sql import MAX_STATEMENT


class SqlBody(BodySerializer):
    """A statement."""

    query = serializers.CharField(max_length=MAX_STATEMENT, help_text="One SELECT of DuckDB's SQL. EXPLAIN before it.")
    format = serializers.ChoiceField(["json", "csv", "arrow", "parquet"], default="json")
    query_id = serializers.RegexField(
        r"^[A-Za-z0-9_.-]{1,100}$", required=False, help_text="Yours, to cancel it by. Headgate chooses one otherwise."
    )


class SqlColumnSerializer(serializers.Serializer[Any]):
    """A column of the result."""

    name = serializers.CharField()
    type = serializers.CharField(help_text="DuckDB's type.")


class SqlTableSerializer(serializers.Serializer[Any]):
    """A table of the statement, and what is read for it."""

    datasource = serializers.CharField(source="table.name", help_text="The datasource, or the table of `sys`.")
    team = serializers.CharField(source="table.team", help_text="The datasource's team, or `sys`.")
    files = serializers.SerializerMethodField(help_text="Segments that may have rows in this time range.")
    rows = serializers.IntegerField(source="files.rows", help_text="The rows of these segments.")
    size_bytes = serializers.IntegerField(source="files.size_bytes")
    # None: the WHERE has no such bound of __time.
    start = serializers.DateTimeField(allow_null=True)
    end = serializers.DateTimeField(allow_null=True, help_text="Exclusive.")

    def get_files(self, planned: Any) -> int:
        return len(planned.files.files)


class SqlSerializer(serializers.Serializer[Any]):
    """A result in JSON. EXPLAIN has `tables` and `plan` instead of columns and rows."""

    # Only OpenAPI uses this: the rows are sent as they come.

    query_id = serializers.CharField()
    columns = SqlColumnSerializer(many=True, required=False)
    masked = serializers.DictField(
        child=serializers.CharField(),
        help_text="Masked columns, which are NULL, each with the least role that sees it.",
    )
    rows = serializers.ListField(child=serializers.ListField(), required=False)
    row_count = serializers.IntegerField(required=False)
    truncated = serializers.BooleanField(required=False, help_text="Whether there are more rows.")
    tables = SqlTableSerializer(many=True, required=False)
    plan = serializers.DictField(required=False)
