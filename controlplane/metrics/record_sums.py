"""What became of a datasource's records since it exists. These sums never become less: no indexer's row is deleted.

A replay that reads records again counts them once more, as they end then: to take them from where they were would make
a counter go down.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from controlplane.common.database import cursor
from controlplane.metrics.models import RecordSum
from controlplane.publishing.selectors.totals import columns_of
from ingestion.specs.counters import Counts

# One fold takes at most this many indexers. A large backlog takes several folds.
_MAX_INDEXERS = 20_000
_ENDED_FOR = timedelta(minutes=10)  # then no publish of it is under way
_NAMES = (*Counts.model_fields, "publishes", "segments", "size_bytes")
_SUMS = ", ".join(f"'{name}', sum({' + '.join(columns_of(name))})" for name in _NAMES)
_SELECT = f"SELECT datasource_id, jsonb_build_object({_SUMS}), max(last_publish_at)"
_SUM_UP = f"""
    WITH ended AS (
        SELECT f.id FROM publishing_indexerfence f JOIN tasks_task t ON t.id = f.task_id
        WHERE NOT f.summed AND NOT f.merges AND t.ended_at < %s
            AND NOT EXISTS (SELECT FROM publishing_rewindpiece p WHERE p.fence_id = f.id) LIMIT {_MAX_INDEXERS}
    ), summed AS (
        UPDATE publishing_indexerfence f SET summed = true FROM ended WHERE f.id = ended.id AND NOT f.summed
        RETURNING f.*
    )
    {_SELECT} FROM summed GROUP BY datasource_id ORDER BY datasource_id
"""
# One statement: else what is summed up between two would be missed, or counted twice.
_TOTALS = f"""
    SELECT datasource_id, counters, last_publish_at FROM metrics_recordsum
    UNION ALL {_SELECT} FROM publishing_indexerfence WHERE NOT summed AND NOT merges GROUP BY datasource_id
"""


@dataclass(frozen=True)
class RecordTotals:
    """Of one datasource; ``counters`` by their names."""

    counters: Mapping[str, int]
    last_publish_at: datetime | None

    def __add__(self, other: RecordTotals) -> RecordTotals:
        names = {**self.counters, **other.counters}
        times = [time for time in (self.last_publish_at, other.last_publish_at) if time is not None]
        counters = {name: self.counters.get(name, 0) + other.counters.get(name, 0) for name in names}
        return RecordTotals(counters, max(times, default=None))


def record_totals() -> dict[int, RecordTotals]:
    """By datasource, of those into which something was read."""
    with cursor() as c:
        rows = c.execute(_TOTALS).fetchall()
    totals: dict[int, RecordTotals] = {}
    for datasource, part in _parts(rows):
        totals[datasource] = totals[datasource] + part if datasource in totals else part
    return totals


def _parts(rows: Iterable[tuple[Any, ...]]) -> Iterable[tuple[int, RecordTotals]]:
    return ((datasource, RecordTotals(json.loads(counters), last)) for datasource, counters, last in rows)


@transaction.atomic
def sum_up(now: datetime | None = None) -> int:
    """Keep the sums of what tasks have read that ended some minutes ago; returns for how many datasources."""
    with cursor() as c:
        rows = c.execute(_SUM_UP, ((now or timezone.now()) - _ENDED_FOR,)).fetchall()
    for datasource, part in _parts(rows):
        RecordSum.objects.get_or_create(datasource_id=datasource)
        kept = RecordSum.objects.select_for_update().get(datasource=datasource)  # another one may add to it
        total = RecordTotals(kept.counters, kept.last_publish_at) + part
        kept.counters, kept.last_publish_at = dict(total.counters), total.last_publish_at
        kept.save()
    return len(rows)
