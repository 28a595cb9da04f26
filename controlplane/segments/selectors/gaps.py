"""Where a datasource has data before and after, and none between."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from controlplane.datasources.models import Datasource

MAX_GAPS = 10


@dataclass(frozen=True)
class Gap:
    """No segment lies in ``[start, end)``."""

    start: datetime
    end: datetime

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    @property
    def around(self) -> tuple[datetime, datetime]:
        """A window that shows it among what lies beside it, as far as the calendar reaches."""
        try:
            return self.start - self.length / 2, self.end + self.length / 2
        except OverflowError:
            return self.start, self.end


@dataclass(frozen=True)
class Gaps:
    """A datasource's gaps."""

    count: int  # of all
    latest: list[Gap]  # the latest first, ten at most


_GAPS = """
    SELECT low, high, count(*) OVER () FROM (
        SELECT lag(upper(span)) OVER (ORDER BY lower(span)) AS low, lower(span) AS high
        FROM (SELECT unnest(range_agg(covered)) AS span FROM segments_daysum WHERE datasource_id = %s) whole
    ) neighbours WHERE low IS NOT NULL ORDER BY high DESC LIMIT %s
"""


def gaps(datasource: Datasource) -> Gaps:
    """Between its intervals."""
    with connection.cursor() as cursor:
        cursor.execute(_GAPS, [datasource.pk, MAX_GAPS])
        rows = cursor.fetchall()
    return Gaps(rows[0][2] if rows else 0, [Gap(low, high) for low, high, _ in rows])
