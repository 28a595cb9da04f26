"""Links to the query page."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import template

from controlplane.datasources.models import Datasource
from frontend.query_links import query_address, rows_between, values_of

register = template.Library()
AROUND = timedelta(minutes=1)


@register.simple_tag
def query_rows(datasource: Datasource, start: datetime | None = None, end: datetime | None = None) -> str:
    """The address for rows of a time; without a time for any rows."""
    return query_address(rows_between(datasource, start, end))


@register.simple_tag
def query_around(datasource: Datasource, at: datetime) -> str:
    """The address for rows of the minutes before and after a time."""
    try:
        return query_address(rows_between(datasource, at - AROUND, at + AROUND))
    except OverflowError:  # the first or the last minute of all times
        return query_rows(datasource, at)


@register.simple_tag
def query_column(datasource: Datasource, column: str) -> str:
    """The address for the values of a column."""
    return query_address(values_of(datasource, column))
