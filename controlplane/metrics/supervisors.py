"""How supervisors do, as samples of metrics. Those that are terminated have none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.db import connection
from django.utils import timezone

from controlplane.alerts.facts import NOBODY
from controlplane.metrics.families import Labels, Sample
from controlplane.supervisors.drain import drain_of
from controlplane.supervisors.health_facts import HealthFacts
from controlplane.supervisors.health_queries import health_facts
from controlplane.supervisors.health_rules import STALE, health_of
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.unread_times import countdowns

# Through the tasks that have not ended: most indexers' rows are of others.
_INDEXERS = """
    SELECT t.supervisor_id, i.state, count(*), max((i.leases->>'longest_hold_ms')::int8)
    FROM tasks_task t, LATERAL (SELECT state, leases FROM tasks_indexer WHERE task_id = t.id OFFSET 0) i
    WHERE t.status IN ('PENDING', 'RUNNING') AND t.supervisor_id <> '' GROUP BY 1, 2
"""


def supervisor_samples() -> Iterator[Sample]:
    """Of all that are not terminated."""
    listed = Supervisor.objects.filter(terminated_at=None).select_related("datasource__team").order_by("id")
    supervisors = listed.with_current()
    facts_by_id, named = health_facts(NOBODY, supervisors), {s.pk: labels_of(s) for s in supervisors}
    for pk, countdown in countdowns(supervisors).items():
        left = countdown.left(facts_by_id[pk].now)
        if left is not None:
            yield "headgate_supervisor_retention_left_seconds", named[pk], left.total_seconds()
    for supervisor in supervisors:
        labels, facts = named[supervisor.pk], facts_by_id[supervisor.pk]
        health = health_of(facts)
        yield "headgate_supervisor_state", (*labels, supervisor.state), 1
        yield "headgate_supervisor_health", (*labels, health.kind.value, health.code), 1
        yield from _runs(supervisor, labels)
        yield from _lags(facts, labels)
        drain_s = drain_of(facts, supervisor).left_s(facts.now)
        if drain_s is not None:
            yield "headgate_supervisor_drain_seconds", labels, drain_s
    yield from _indexers(named)


def labels_of(supervisor: Supervisor) -> Labels:
    """Its team, its datasource, and itself."""
    return supervisor.datasource.team.name, supervisor.datasource.name, supervisor.pk


def _runs(supervisor: Supervisor, labels: Labels) -> Iterator[Sample]:
    yield "headgate_supervisor_failed_runs", labels, supervisor.failed_runs
    yield "headgate_supervisor_failed_tasks", labels, supervisor.failures
    if supervisor.last_run_at is not None:
        yield "headgate_supervisor_last_run_timestamp_seconds", labels, supervisor.last_run_at.timestamp()
    if supervisor.scaling_reason and supervisor.ran_at is not None and timezone.now() - supervisor.ran_at <= STALE:
        yield "headgate_supervisor_autoscaler_decision", (*labels, supervisor.scaling_reason), 1


def _lags(facts: HealthFacts, labels: Labels) -> Iterator[Sample]:
    """Of a topic that was not looked at lately the lag is not known; what it was complete until is proven."""
    lag, until, looked_at = facts.lag, facts.complete_until, facts.topic_seen_at
    if lag is not None and facts.now - lag.at <= STALE:
        yield "headgate_supervisor_lag_records", labels, lag.lag
    if until is None:
        return
    yield "headgate_supervisor_complete_until_timestamp_seconds", labels, until.timestamp()
    if looked_at is not None and facts.now - looked_at <= STALE:
        yield "headgate_supervisor_lag_seconds", labels, max(0.0, (facts.now - until).total_seconds())


def _indexers(named: Mapping[str, Labels]) -> Iterator[Sample]:
    longest_ms: dict[Labels, int] = {}
    with connection.cursor() as cursor:
        cursor.execute(_INDEXERS)
        for supervisor, state, count, held_ms in cursor.fetchall():
            if supervisor not in named:
                continue
            labels = named[supervisor]
            yield "headgate_supervisor_indexers", (*labels, state), count
            longest_ms[labels] = max(longest_ms.get(labels, 0), held_ms or 0)
    for labels, ms in longest_ms.items():
        if ms:
            yield "headgate_supervisor_longest_hold_seconds", labels, ms / 1000
