"""SQL: what is asked, and what the answer says beside its rows."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.base import BodySerializer
from controlplane.query.models import PastQuery, SavedQuery
from controlplane.query.saved import MAX_DESCRIPTION, MAX_NAME
from ingestion.specs.messages.sql import MAX_STATEMENT

# Other addresses are there, or an HTTP client would change the address: such a query could not be cancelled.
_RESERVED_IDS = ("saved", "history", ".", "..")


class SqlBody(BodySerializer):
    """A statement."""

    query = serializers.CharField(max_length=MAX_STATEMENT, help_text="One SELECT of DuckDB's SQL. EXPLAIN before it.")
    format = serializers.ChoiceField(["json", "csv", "arrow", "parquet"], default="json")
    query_id = serializers.RegexField(
        r"^[A-Za-z0-9_.-]{1,100}$", required=False, help_text="Yours, to cancel it by. Headgate chooses one otherwise."
    )

    def validate_query_id(self, query_id: str) -> str:
        if query_id in _RESERVED_IDS:
            raise serializers.ValidationError(f"{query_id!r} is reserved. Choose another id.")
        return query_id


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


class SavedQueryBody(BodySerializer):
    """A saved query."""

    name = serializers.CharField(max_length=MAX_NAME)
    description = serializers.CharField(max_length=MAX_DESCRIPTION, default="", allow_blank=True)
    statement = serializers.CharField(max_length=MAX_STATEMENT, trim_whitespace=False)
    team = serializers.CharField(
        max_length=63, default="", allow_blank=True, help_text="Whose members see it. Empty: only you."
    )


class SavedQuerySerializer(serializers.ModelSerializer[SavedQuery]):
    """A saved query."""

    owner = serializers.CharField(source="owner.username")
    team = serializers.CharField(source="team.name", default="", help_text="Empty: only its owner sees it.")

    class Meta:
        model = SavedQuery
        fields = ["id", "name", "description", "statement", "owner", "team", "created_at", "updated_at"]


class PastQuerySerializer(serializers.ModelSerializer[PastQuery]):
    """A query that has ended."""

    class Meta:
        model = PastQuery
        fields = ["id", "query_id", "statement", "started_at", "duration_ms", "rows", "state", "error"]
        extra_kwargs = {
            "rows": {"help_text": "Null if the result was not sent to its end, and for EXPLAIN."},
            "state": {"help_text": "`closed`: the client did not read the answer to its end."},
        }
