"""The receipts' table, which is partitioned by day."""

from __future__ import annotations

from datetime import date, timedelta

from django.db import connection, transaction
from django.utils import timezone

DAYS_AHEAD = 7


def make_receipt_partitions(today: date | None = None) -> list[str]:
    """Make the receipts' day partitions for the coming week; returns the new ones' names.

    A day whose rows are in the default partition already is left there.
    """
    first = (today or timezone.now().date()) + timedelta(days=1)
    created = []
    with transaction.atomic(), connection.cursor() as cursor:
        # Of two that run at once the second waits, and finds them: IF NOT EXISTS alone looks before it waits.
        cursor.execute("LOCK TABLE publishing_receipt IN SHARE UPDATE EXCLUSIVE MODE")
        for day in (first + timedelta(days=n) for n in range(DAYS_AHEAD)):
            name = f"publishing_receipt_{day:%Y%m%d}"
            cursor.execute("SELECT to_regclass(%s)", [name])
            if cursor.fetchone()[0] is None:
                cursor.execute(
                    f"CREATE TABLE {name} PARTITION OF publishing_receipt "
                    f"FOR VALUES FROM ('{day} 00:00+00') TO ('{day + timedelta(days=1)} 00:00+00')"
                )
                created.append(name)
    return created
