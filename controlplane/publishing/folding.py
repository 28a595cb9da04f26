"""Folding: settled neighbours become one row, so that a partition that is read to its end is one row.

Publishes go on meanwhile: an insert that touches a row being folded waits, then meets the joined row.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import cast

from django.db import OperationalError, transaction
from psycopg.types.range import Int8Range

from controlplane.common.database import cursor
from controlplane.publishing.models import OFFSET_BITS, SettledRange

logger = logging.getLogger(__name__)
_FOLD_LOCK = 0x464F4C44
_Stretch = tuple[int, int, int]  # key, and between which bounds of spans its rows are looked at

_CHANGED = f"""
    SELECT lower(span) >> {OFFSET_BITS}, min(lower(span)) - 1, max(upper(span)) + 1
    FROM publishing_settledrange WHERE settled_at >= now() - %s GROUP BY 1
"""
_ALL = f"""
    SELECT lower(span) >> {OFFSET_BITS}, min(lower(span)), max(upper(span))
    FROM publishing_settledrange GROUP BY 1 HAVING count(*) > 1
"""
_RUNS = """
    WITH ordered AS (
        SELECT id, span, settled_at, lower(span) IS DISTINCT FROM lag(upper(span)) OVER (ORDER BY lower(span)) AS starts
        FROM publishing_settledrange WHERE span && %s
    ), grouped AS (
        SELECT id, span, settled_at, count(*) FILTER (WHERE starts) OVER (ORDER BY lower(span)) AS run FROM ordered
    )
    SELECT array_agg(id), min(lower(span)), max(upper(span)), min(settled_at)
    FROM grouped GROUP BY run HAVING count(*) > 1
"""


def fold(since: timedelta | None = None) -> int:
    """Join settled neighbours into one row each; returns how many rows that saved.

    ``since``: look only where something was settled since then, which costs next to nothing however many holes there
    are; None: everywhere.
    """
    saved = 0
    for stretch in _stretches(since):
        try:
            with transaction.atomic():
                saved += _fold(stretch)
        except OperationalError as error:  # a deadlock with a publish, which is retried there: next time
            logger.info("key %s is not folded now: %s", stretch[0], error)
    return saved


def _stretches(since: timedelta | None) -> list[_Stretch]:
    with cursor() as c:
        stretches = c.execute(_ALL) if since is None else c.execute(_CHANGED, (since,))
        return cast("list[_Stretch]", stretches.fetchall())


def _fold(stretch: _Stretch) -> int:
    key, low, high = stretch
    with cursor() as c:
        # One folder a key at a time; the lock ends with the transaction.
        acquired = c.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", (_FOLD_LOCK, key)).fetchone()
        if acquired is None or not acquired[0]:
            return 0
        runs = c.execute(_RUNS, (Int8Range(low, high),)).fetchall()
    ids = [i for run in runs for i in run[0]]
    SettledRange.objects.filter(id__in=ids).delete()
    SettledRange.objects.bulk_create(
        [SettledRange(span=Int8Range(low, up), settled_at=at) for _, low, up, at in runs], batch_size=1000
    )
    return len(ids) - len(runs)
