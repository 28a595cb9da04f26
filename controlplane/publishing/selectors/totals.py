"""What became of records: the counters of indexers, summed."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import reduce
from typing import Annotated, Any

from django.db.models import Max, Min, QuerySet, Sum
from django.db.models.functions import Coalesce

from controlplane.common.database import cursor
from controlplane.datasources.models import Datasource
from controlplane.publishing.models import IndexerFence, RewindPart
from ingestion.specs.counters import UNPUBLISHED, UNPUBLISHED_OUTCOMES, Count, Counts, Detail
from ingestion.specs.messages.protocol import ParseExceptionTotals


class Totals(Counts):
    """What became of all records of some indexers, summed."""

    segments: int = 0
    size_bytes: int = 0
    publishes: int = 0
    replayed: Annotated[
        Count,
        Detail(
            "Replayed",
            "Taken from the quarantine later, and ingested as the replay's report says.",
            outcomes=("unparseable",),
        ),
    ] = 0
    started_at: datetime | None = None
    first_publish_at: datetime | None = None
    last_publish_at: datetime | None = None

    @property
    def once(self) -> Totals:
        """For sums over more than one task: what was replayed counts as it ended last, and once."""
        unparseable = ("polled", "unparseable", "quarantined")
        return self.model_copy(update={name: getattr(self, name) - self.replayed for name in unparseable})

    @property
    def rows_per_s(self) -> float | None:
        """Published rows over the time from the first start to the last publish; None before that."""
        since = self.started_at or self.first_publish_at
        if since is None or self.last_publish_at is None:
            return None
        seconds = (self.last_publish_at - since).total_seconds()
        return self.published / seconds if seconds > 0 else None


_TIMES = {"started_at": Min, "first_publish_at": Min, "last_publish_at": Max}


def columns_of(total: str) -> list[str]:
    """The columns of an indexer's row that make up a total. What ended without a publish was polled too."""
    parts = [total] if total in UNPUBLISHED else list(UNPUBLISHED_OUTCOMES) if total == "polled" else []
    unpublished = [f"{name}_{when}" for name in parts for when in ("before", "now")]
    return unpublished if total in UNPUBLISHED_OUTCOMES else [total, *unpublished]


_COLUMNS = {name: columns_of(name) for name in Totals.model_fields if name not in _TIMES}


def totals_of(fences: QuerySet[IndexerFence]) -> Totals:
    """Sum their rows in one query."""
    return _totals(fences.aggregate(**_sums()))


def totals_by_task(task_ids: Sequence[str]) -> dict[str, Totals]:
    """By task, of those that have begun to read; one query for all."""
    fences = IndexerFence.objects.filter(task_id__in=task_ids).order_by().values("task_id")
    return {row["task_id"]: _totals(row) for row in fences.annotate(**_sums())}


def progress_by_task(task_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """(polled, published) by task, of those that have begun to read: what is asked of all tasks at once."""
    fences = IndexerFence.objects.filter(task_id__in=task_ids).order_by().values("task_id")
    sums = _sums("polled", "published")
    return {
        task: (polled, published) for task, polled, published in fences.annotate(**sums).values_list("task_id", *sums)
    }


def _sums(*names: str) -> dict[str, Any]:
    """Of these alone, if any are named."""
    sums = {name: Coalesce(reduce(operator.add, map(Sum, columns)), 0) for name, columns in _COLUMNS.items()}
    times = {name: aggregate(name) for name, aggregate in _TIMES.items()}
    return {f"total_{name}": value for name, value in (sums | times).items() if not names or name in names}


def _totals(row: Mapping[str, Any]) -> Totals:
    return Totals(**{n.removeprefix("total_"): value for n, value in row.items() if n.startswith("total_")})


def fence_totals(fence: IndexerFence | None) -> Totals:
    """Those of a row that is at hand already; of no row, nothing."""
    if fence is None:
        return Totals()
    sums = {name: sum(getattr(fence, column) for column in columns) for name, columns in _COLUMNS.items()}
    return Totals(**sums, **{name: getattr(fence, name) for name in _TIMES})


def datasource_totals(datasource: Datasource) -> Totals:
    """What became of all records of all the datasource's tasks, each as it was read last; what was merged is none."""
    totals = totals_of(IndexerFence.objects.filter(datasource=datasource, merges=False)).once
    retired: Counter[str] = Counter()
    for counts in RewindPart.objects.filter(rewind__datasource=datasource).values_list("retired", flat=True):
        retired.update(counts)
    return totals.model_copy(update={name: getattr(totals, name) - count for name, count in retired.items()})


_PARSE_EXCEPTIONS = """
    SELECT coalesce(sum(unparseable + processed_with_error), 0)::int8,
        (SELECT count(*) FROM quarantine_faultyrecord WHERE task_id = %s)
    FROM publishing_indexerfence WHERE task_id = %s
"""


def parse_exceptions_of(task_id: str) -> ParseExceptionTotals:
    """How many of a task's records could not be read, or only in part, whatever became of them.

    Over all its indexers: what is committed, and what this transaction adds.
    """
    with cursor() as c:
        seen, saved = c.execute(_PARSE_EXCEPTIONS, (task_id, task_id)).fetchone() or (0, 0)
    return ParseExceptionTotals(seen=seen, saved=saved)
