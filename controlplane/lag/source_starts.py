"""When readers began: none of their counters was above nothing then, as if somebody had looked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import connection

# Of a row ``source``. Indexers that go on with a topic that was made again bring their counters along.
IS_FIRST = """
    NOT EXISTS (
        SELECT FROM sources_source AS older WHERE older.datasource_id = source.datasource_id AND older.id < source.id
        AND (older.kind, older."group", older.topic) = (source.kind, source."group", source.topic)
    )
"""
_BIRTHS = f"SELECT id, created_at FROM sources_source AS source WHERE id = ANY(%s) AND {IS_FIRST}"


def source_starts(sources: Iterable[int]) -> dict[int, datetime]:
    """By source; those that followed on another one of the same topic's name are left out."""
    with connection.cursor() as cursor:
        cursor.execute(_BIRTHS, [list(sources)])
        return dict(cursor.fetchall())
