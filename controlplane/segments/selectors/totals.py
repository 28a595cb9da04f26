"""What became of records: the counters of indexers, summed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Max, Min, QuerySet, Sum
from django.db.models.functions import Coalesce

from controlplane.datasources.models import Datasource
from controlplane.segments.models import Writer


@dataclass(frozen=True)
class Totals:
    """What became of all records of some writers, summed. ``polled`` counts deliveries: a released record comes again.

    ``replayed``: of the unparseable, how many a replay took from the quarantine since; the replay counts them too.
    ``rows_per_s``: published rows over the time from the first start to the last publish; None before that.
    """

    polled: int = 0
    published: int = 0
    rolled_up: int = 0
    thrown_away: int = 0
    unparseable: int = 0
    duplicates: int = 0
    released: int = 0
    redundant: int = 0
    redelivered: int = 0
    quarantined: int = 0
    filtered: int = 0
    outside_window: int = 0
    tombstones: int = 0
    processed_with_error: int = 0
    input_bytes: int = 0
    segments: int = 0
    size_bytes: int = 0
    publishes: int = 0
    replayed: int = 0
    started_at: datetime | None = None
    first_publish_at: datetime | None = None
    last_publish_at: datetime | None = None

    @property
    def ended(self) -> int:
        """Records by outcome, summed: each polled record has exactly one."""
        settled = self.published + self.rolled_up + self.thrown_away + self.unparseable + self.duplicates
        return settled + self.released + self.redundant

    @property
    def adds_up(self) -> bool:
        return self.polled == self.ended

    @property
    def once(self) -> Totals:
        """For sums over more than one task: what was replayed counts as it ended last, and once."""
        return replace(
            self,
            polled=self.polled - self.replayed,
            unparseable=self.unparseable - self.replayed,
            quarantined=self.quarantined - self.replayed,
        )

    @property
    def rows_per_s(self) -> float | None:
        since = self.started_at or self.first_publish_at
        if since is None or self.last_publish_at is None:
            return None
        seconds = (self.last_publish_at - since).total_seconds()
        return self.published / seconds if seconds > 0 else None


_PLAIN_SUMS = (
    "published",
    "rolled_up",
    "thrown_away",
    "unparseable",
    "duplicates",
    "quarantined",
    "filtered",
    "outside_window",
    "tombstones",
    "processed_with_error",
    "input_bytes",
    "segments",
    "size_bytes",
    "publishes",
    "replayed",
)


def totals_of(writers: QuerySet[Writer]) -> Totals:
    """Sum their rows in one query. What ended without a publish counts as polled too."""
    released = Sum("released_before") + Sum("released_now")
    redundant = Sum("redundant_before") + Sum("redundant_now")
    again = Sum("redelivered") + Sum("redelivered_before") + Sum("redelivered_now")
    sums = {f"sum_{name}": Coalesce(Sum(name), 0) for name in _PLAIN_SUMS}
    found = writers.aggregate(
        **sums,
        sum_polled=Coalesce(Sum("polled") + released + redundant, 0),
        sum_released=Coalesce(released, 0),
        sum_redundant=Coalesce(redundant, 0),
        sum_redelivered=Coalesce(again, 0),
        sum_started_at=Min("started_at"),
        sum_first_publish_at=Min("first_publish_at"),
        sum_last_publish_at=Max("last_publish_at"),
    )
    return Totals(**{name.removeprefix("sum_"): value for name, value in found.items()})


def datasource_totals(datasource: Datasource) -> Totals:
    """What became of all records of all the datasource's tasks."""
    return totals_of(Writer.objects.filter(datasource=datasource)).once
