"""Reads of compaction: jobs, how much waits to be merged, and what is next.

Those that take a datasource trust the caller to have got it from a selector that filters by user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import connection
from django.db.models import Count, Max, QuerySet, Sum

from controlplane.common.health import WORST_FIRST, Code, Health
from controlplane.compaction.configs import Policy, policy_of
from controlplane.compaction.models import ConfigChange, Job
from controlplane.compaction.partitioning import Partitioning
from controlplane.compaction.planning import IntervalPlan, plan_interval, unfinished
from controlplane.compaction.policy import LARGE
from controlplane.datasources.masked_querysets import ConcealingQuerySet
from controlplane.datasources.models import Datasource
from controlplane.segments.models import Interval

SHOWN_INTERVALS = 25
SHOWN_CHANGES = 1_000


@dataclass(frozen=True)
class Amount:
    """Bytes, segments and the intervals they are in."""

    size_bytes: int = 0
    segments: int = 0
    intervals: int = 0


@dataclass(frozen=True)
class CompactionStatus:
    """How far a datasource is merged."""

    on: bool  # it is done by itself
    awaiting: Amount
    compacted: Amount
    skipped: Amount
    becoming: int = 0  # segments, about, that those awaiting are merged into
    partitioned: bool = False  # its intervals are written anew by partitions; those that are so are compacted


def health_of(status: CompactionStatus, plans: Sequence[IntervalPlan]) -> Health:
    """The worst of these intervals, if a person has to look at one."""
    if not status.on:
        action = "An operator can turn it on below or over REST."
        return Health.of(Code.OFF, "Compaction is off for this datasource.", action)
    calling = [(p.interval, p.choice.health) for p in plans if p.choice.health and p.choice.health.calls]
    if calling:
        interval, health = min(calling, key=lambda pair: WORST_FIRST.index(pair[1].kind))
        return replace(health, cause=f"Interval {interval.start:%Y-%m-%d %H:%M} UTC: {health.cause}")
    if not status.awaiting.segments:
        return Health.of(Code.COMPACTED, "No segments wait for compaction.")
    cause = f"{status.awaiting.segments:,} segments wait, in {status.awaiting.intervals:,} of its intervals."
    return Health.of(Code.WAITING_FOR_SEGMENTS, cause)


_STATUS = """
    WITH by_interval AS (
        SELECT interval_end > %(skipped_after)s AS skipped, count(*) AS n, sum(size_bytes) AS size,
               count(*) FILTER (WHERE rows < %(rows)s AND size_bytes < %(bytes)s) AS small,
               sum(size_bytes) FILTER (WHERE rows < %(rows)s AND size_bytes < %(bytes)s) AS small_size,
               sum(rows) FILTER (WHERE rows < %(rows)s AND size_bytes < %(bytes)s) AS small_rows
        FROM segments_segment WHERE datasource_id = %(datasource)s AND used GROUP BY interval_start, interval_end
    )
    SELECT coalesce(sum(small_size) FILTER (WHERE NOT skipped AND small > 1), 0)::int8,
           coalesce(sum(small) FILTER (WHERE NOT skipped AND small > 1), 0)::int8,
           count(*) FILTER (WHERE NOT skipped AND small > 1),
           coalesce(sum(size - CASE WHEN small > 1 THEN small_size ELSE 0 END) FILTER (WHERE NOT skipped), 0)::int8,
           coalesce(sum(n - CASE WHEN small > 1 THEN small ELSE 0 END) FILTER (WHERE NOT skipped), 0)::int8,
           count(*) FILTER (WHERE NOT skipped AND small <= 1),
           coalesce(sum(size) FILTER (WHERE skipped), 0)::int8, coalesce(sum(n) FILTER (WHERE skipped), 0)::int8,
           count(*) FILTER (WHERE skipped),
           coalesce(sum(ceil(greatest(small_rows / %(target_rows)s::float8, small_size / %(target_bytes)s::float8)))
                    FILTER (WHERE NOT skipped AND small > 1), 0)::int8
    FROM by_interval
"""


def status_of(datasource: Datasource, simulated: Policy | None = None) -> CompactionStatus:
    """One pass over its segments in use. Where it is off, by the default policy; or by one that is tried out."""
    current = policy_of(datasource)
    policy = simulated or current or Policy()
    if policy.partitioning:
        return _partitioned_status(datasource, policy, policy.partitioning, current is not None)
    values = {
        "datasource": datasource.pk,
        "rows": int(policy.limits.target_rows * LARGE),
        "bytes": int(policy.limits.target_bytes * LARGE),
        "target_rows": policy.limits.target_rows,
        "target_bytes": policy.limits.target_bytes,
        "skipped_after": _skipped_after(datasource, policy),
    }
    with connection.cursor() as cursor:
        cursor.execute(_STATUS, values)
        numbers = cursor.fetchone()
    return CompactionStatus(
        current is not None, Amount(*numbers[:3]), Amount(*numbers[3:6]), Amount(*numbers[6:9]), numbers[9]
    )


def _partitioned_status(
    datasource: Datasource, policy: Policy, partitioning: Partitioning, on: bool
) -> CompactionStatus:
    """By whole intervals."""
    intervals = Interval.objects.filter(datasource=datasource, segments__gt=0)
    after = _skipped_after(datasource, policy)
    skipped = intervals.none() if isinstance(after, str) else intervals.filter(end__gt=after)
    rest = intervals if isinstance(after, str) else intervals.filter(end__lte=after)
    awaiting = rest.exclude(partitioning.is_done)
    amount, rows = _amount(awaiting), awaiting.aggregate(rows=Sum("rows"))["rows"] or 0
    each = partitioning.spec.partitions_of(rows / amount.intervals) if amount.intervals else 0
    done = _amount(rest.filter(partitioning.is_done))
    return CompactionStatus(on, amount, done, _amount(skipped), amount.intervals * each, partitioned=True)


def _amount(intervals: QuerySet[Interval]) -> Amount:
    sums = intervals.order_by().aggregate(size=Sum("size_bytes"), segments=Sum("segments"), n=Count("pk"))
    return Amount(int(sums["size"] or 0), int(sums["segments"] or 0), sums["n"])


def _skipped_after(datasource: Datasource, policy: Policy) -> datetime | str:
    latest: datetime | None = Interval.objects.filter(datasource=datasource, segments__gt=0).aggregate(end=Max("end"))[
        "end"
    ]
    return "infinity" if latest is None or not policy.skip_offset else latest - policy.skip_offset


def list_fragmented(
    datasource: Datasource, most: int = SHOWN_INTERVALS, simulated: Policy | None = None
) -> Sequence[IntervalPlan]:
    """Its intervals with the most segments, and what would be done with each now, or why nothing is.

    Where intervals are to be partitioned, those that are so are left out.
    """
    policy = simulated or policy_of(datasource) or Policy()
    candidates = Interval.objects.filter(datasource=datasource, segments__gt=0 if policy.partitioning else 1)
    intervals = unfinished(candidates, policy).select_related("datasource")
    return [plan_interval(interval, policy) for interval in intervals.order_by("-segments", "-start")[:most]]


def list_jobs(datasource: Datasource, *, state: str = "") -> ConcealingQuerySet[Job]:
    """The newest first; those of one state if it is named."""
    jobs = Job.objects.filter(datasource=datasource, **({"state": state} if state else {}))
    return jobs.order_by("-created_at", "-id")


def list_changes(datasource: Datasource) -> QuerySet[ConfigChange]:
    """What was set of it, the newest first."""
    return ConfigChange.objects.filter(datasource=datasource).order_by("-id")
