"""What stands in some tables, asked in one statement: a test that looks after each of a thousand requests feels it."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.models import QuerySet


class Snapshot:
    """The rows of some queries, at each call. What they ask is written once."""

    def __init__(self, *queries: QuerySet[Any, Any]) -> None:
        asked = [query.query.sql_with_params() for query in queries]
        self._sql = "SELECT " + ", ".join(f"ARRAY(SELECT t::text FROM ({sql}) t)" for sql, _ in asked)
        self._values = [value for _, values in asked for value in values]

    def __call__(self) -> tuple[list[str], ...]:
        """Of each query its rows, as text."""
        with connection.cursor() as cursor:
            cursor.execute(self._sql, self._values)
            found: tuple[list[str], ...] = cursor.fetchone()
        return found
