"""One look at the metadata store: the values of all metrics, by selectors that pages use or by sums that are kept.

No statement reads a table of segments, records, receipts or ended tasks as a whole. What is not known is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from time import monotonic
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models import Count, Min, Sum
from django.utils import timezone

from controlplane.alerts.models import Alert
from controlplane.compaction.models import OPEN, Job, State
from controlplane.datasources.models import Datasource
from controlplane.metrics.families import Labels, Sample, Samples
from controlplane.metrics.record_sums import record_totals
from controlplane.metrics.supervisors import supervisor_samples
from controlplane.metrics.usage import totals_by_team
from controlplane.quarantine.models import CauseSum
from controlplane.segments.models import DaySum
from controlplane.sources.models import SourceEvent
from controlplane.tasks import capacity
from controlplane.tasks.models import Status, Task
from ingestion.specs.counters import COUNTERS, OUTCOMES, Detail, Surplus

READ_S, STATEMENT_MS = 4.0, 4000  # together less than the ten seconds that Prometheus waits
Names = Mapping[int, Labels]  # by datasource: its team and its name
_TOTALS = {
    "headgate_records_polled_total": "polled",
    "headgate_records_bytes_total": "input_bytes",
    "headgate_publishes_total": "publishes",
    "headgate_segments_published_total": "segments",
    "headgate_segments_published_bytes_total": "size_bytes",
}
_DETAILS = tuple(counter for counter in COUNTERS if isinstance(counter, (Detail, Surplus)))


def take_snapshot() -> Samples:
    """Every metric's values now, within ``READ_S`` and a statement's time. Raises ``DatabaseError``."""
    began, samples = timezone.now(), defaultdict(list)
    with transaction.atomic():
        _limit_statements(str(STATEMENT_MS))
        with connection.execute_wrapper(_before(monotonic() + READ_S)):
            for name, labels, value in _all_samples(began):
                samples[name].append((labels, value))
        _limit_statements("DEFAULT")  # a transaction around this one goes on as it was
    samples["headgate_store_read_timestamp_seconds"].append(((), began.timestamp()))
    samples["headgate_store_read_duration_seconds"].append(((), (timezone.now() - began).total_seconds()))
    return samples


def _limit_statements(milliseconds: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = {milliseconds}")


def _before(deadline: float) -> Callable[..., Any]:
    """Begins no statement of the ORM after that: a slow store is asked no more than a scraper waits for."""

    def execute(execute: Callable[..., Any], *arguments: Any) -> Any:
        if monotonic() > deadline:
            raise OperationalError(f"the metadata store has taken more than {READ_S:g} s")
        return execute(*arguments)

    return execute


def _all_samples(now: datetime) -> Iterator[Sample]:
    present = Datasource.objects.present().order_by("name")
    names: Names = {pk: (team, name) for pk, team, name in present.values_list("pk", "team__name", "name")}
    yield from supervisor_samples()
    yield from _records(names)
    yield from _storage(names)
    yield from _quarantine(names)
    yield from _alarms(names)
    yield from _merges(names, now)
    yield from _tasks(names)
    yield from _alerts()
    yield from _pool()
    yield from _usage()


def _records(names: Names) -> Iterator[Sample]:
    for datasource, totals in record_totals().items():
        labels = names.get(datasource)
        if labels is None:
            continue
        yield from _counters(totals.counters, labels)
        for name, counter in _TOTALS.items():
            yield name, labels, totals.counters.get(counter, 0)
        if totals.last_publish_at is not None:
            yield "headgate_datasource_last_publish_timestamp_seconds", labels, totals.last_publish_at.timestamp()


def _counters(counts: Mapping[str, int], labels: Labels) -> Iterator[Sample]:
    """A counter of what is rare has no series as long as it is 0: most datasources never have one."""
    for outcome in OUTCOMES:
        if counts.get(outcome.name) or not outcome.unpublished:
            yield "headgate_records_total", (*labels, outcome.name), counts.get(outcome.name, 0)
    for detail in _DETAILS:
        if counts.get(detail.name) or detail.is_problem:
            yield "headgate_record_details_total", (*labels, detail.name), counts.get(detail.name, 0)


def _storage(names: Names) -> Iterator[Sample]:
    days = DaySum.objects.order_by().values_list("datasource_id")
    sums = days.annotate(Sum("segments"), Sum("size_bytes"), Sum("rows"))
    held = {datasource: values for datasource, *values in sums}
    parts = ("segments", "segments_bytes", "rows")
    for datasource, labels in names.items():  # one that holds nothing is known to
        for part, value in zip(parts, held.get(datasource, (0, 0, 0)), strict=True):
            yield f"headgate_datasource_{part}", labels, value


def _quarantine(names: Names) -> Iterator[Sample]:
    sums = CauseSum.objects.order_by().values_list("datasource_id").annotate(Sum("records"), Sum("kept"))
    for datasource, records, kept in sums:
        if datasource in names and records > 0:
            yield "headgate_datasource_quarantined_records", (*names[datasource], "kept"), kept
            yield "headgate_datasource_quarantined_records", (*names[datasource], "ended"), records - kept


def _alarms(names: Names) -> Iterator[Sample]:
    alarms = SourceEvent.objects.filter(alarm=True, acknowledged_at=None).order_by()
    for datasource, kind, count in alarms.values_list("datasource_id", "kind").annotate(Count("pk")):
        if datasource in names:
            yield "headgate_datasource_unacknowledged_alarms", (*names[datasource], kind), count


def _merges(names: Names, now: datetime) -> Iterator[Sample]:
    jobs = Job.objects.filter(state__in=OPEN).order_by().values_list("datasource_id", "state")
    for datasource, state, count, oldest in jobs.annotate(Count("pk"), Min("created_at")):
        if datasource not in names:
            continue
        labels = names[datasource]
        yield "headgate_datasource_merges", (*labels, state), count
        if state == State.WAITING:
            waited_s = (now - oldest).total_seconds()
            yield "headgate_datasource_oldest_waiting_merge_seconds", labels, max(0.0, waited_s)


def _tasks(names: Names) -> Iterator[Sample]:
    active = Task.objects.filter(status__in=[Status.PENDING, Status.RUNNING]).order_by()
    for datasource, status, count in active.values_list("datasource_id", "status").annotate(Count("pk")):
        if datasource in names:
            yield "headgate_tasks", (*names[datasource], status), count


def _alerts() -> Iterator[Sample]:
    firing = Alert.objects.filter(state=Alert.State.FIRING).order_by()
    for *labels, count in firing.values_list("team__name", "datasource", "rule__kind").annotate(Count("pk")):
        yield "headgate_alerts_firing", tuple(labels), count


def _usage() -> Iterator[Sample]:
    for team, core_seconds, read, stored in totals_by_team():
        yield "headgate_team_core_seconds_total", (team,), core_seconds
        yield "headgate_team_read_bytes_total", (team,), read
        yield "headgate_team_stored_bytes_total", (team,), stored


def _pool() -> Iterator[Sample]:
    pool = capacity.pool()  # not Spark's cluster, which would have to be asked
    if pool.size is not None:
        yield "headgate_pool_slots", (), pool.size
    yield "headgate_pool_used_slots", (), pool.used
    yield "headgate_pool_waiting_tasks", (), len(pool.waiting)
    yield "headgate_pool_waiting_slots", (), pool.demand
    for team in pool.teams.values():
        if team.size is not None:
            yield "headgate_team_slots", (team.name,), team.size
            yield "headgate_team_used_slots", (team.name,), team.used
    waiting = [waiter.team for waiter in pool.waiting]
    for name in sorted({*waiting, *pool.teams}):
        yield "headgate_team_waiting_tasks", (name,), waiting.count(name)
