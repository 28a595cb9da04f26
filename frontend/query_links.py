"""Statements that links of other pages begin with, and the address of the query page that shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

from django.urls import reverse

from controlplane.datasources.models import Datasource

TIME = "__time"


def query_address(statement: str) -> str:
    """The page with this statement. It is not run."""
    return f"{reverse('frontend:query')}?{urlencode({'statement': statement})}"


def rows_between(datasource: Datasource, start: datetime | None = None, end: datetime | None = None) -> str:
    """A statement for 100 rows of the time; a bound that is None is left out."""
    bounds = [f"{TIME} {sign} '{_iso(at)}'" for sign, at in ((">=", start), ("<", end)) if at is not None]
    where = f"WHERE {' AND '.join(bounds)}\n" if bounds else ""
    return f"SELECT *\nFROM {_table(datasource)}\n{where}ORDER BY {TIME}\nLIMIT 100"


def values_of(datasource: Datasource, column: str) -> str:
    """A statement for the most frequent values of a column; of the time, the rows of each day."""
    value, order = (f"date_trunc('day', {TIME}) AS day", "day") if column == TIME else (quoted(column), "found DESC")
    return f"SELECT {value}, count(*) AS found\nFROM {_table(datasource)}\nGROUP BY ALL\nORDER BY {order}\nLIMIT 100"


def quoted(name: str) -> str:
    """An identifier. Always in quotes: it may be a word of DuckDB's."""
    return '"' + name.replace('"', '""') + '"'


def _table(datasource: Datasource) -> str:
    return f"{quoted(datasource.team.name)}.{quoted(datasource.name)}"


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
