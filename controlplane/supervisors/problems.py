"""What needs a person now: a pure function of how supervisors stand, what was quarantined, and which alarms rang."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from controlplane.common.health import WORST_FIRST, Code, Health, Kind
from controlplane.sources.models import SourceEvent
from controlplane.sources.spec_sources import offsets_owner
from controlplane.supervisors.health_messages import count, shortened
from controlplane.tasks.causes import DescribedCause

NAMED = 3


@dataclass(frozen=True)
class Problem:
    """Health that needs a person, and what it is about."""

    health: Health  # its code: a supervisor's, one of home, or an event's kind
    subject: str  # supervisor, datasource, or pool
    name: str  # of the subject; empty for the pool
    last_at: datetime | None = None  # of what happens again and again
    fingerprint: str = ""  # of the cause of quarantined records
    task: str = ""
    event: int | None = None  # an alarm that may be acknowledged


def problems_of(
    health_by_id: Mapping[str, Health],
    causes: Sequence[DescribedCause] = (),
    alarms: Sequence[SourceEvent] = (),
    *,
    active_tasks: Iterable[str] = (),
    drifts: Mapping[str, Sequence[str]] | None = None,
) -> list[Problem]:
    """The worst first; of equal ones supervisors before what their records came to; then the newest.

    ``active_tasks``: tasks that have not ended: what fails over and over in one that has is over. ``drifts``: by
    supervisor, in what its share group's configuration differs from its spec.
    """
    problems = [
        *(
            Problem(s, "supervisor", name)
            for name, s in health_by_id.items()
            if s.calls and not _parent_says_so(name, s, health_by_id)
        ),
        *_capacity_problem(health_by_id),
        *_unobserved_problem(health_by_id),
        *_quarantine_problems(causes),
        *_alarm_problems(alarms, set(active_tasks)),
        *(_drift_problem(name, differs) for name, differs in (drifts or {}).items()),
    ]
    return sorted(problems, key=_worst_first)


def _worst_first(problem: Problem) -> tuple[int, int, float, str]:
    health = problem.health
    latest = problem.last_at or health.since
    order = WORST_FIRST.index(health.kind)
    subject_rank = 2 if health.code == Code.QUARANTINED else 1 if problem.subject == "datasource" else 0
    return order, subject_rank, -latest.timestamp() if latest else 0.0, problem.name


def _parent_says_so(name: str, health: Health, health_by_id: Mapping[str, Health]) -> bool:
    """Whether the supervisor for which it reads its topic says so already: that Kafka is silent, a quota used up."""
    parent = offsets_owner(name)
    return (
        parent != name
        and parent in health_by_id
        and health_by_id[parent].calls
        and health_by_id[parent].code == health.code
    )


def _drift_problem(name: str, differs: Sequence[str]) -> Problem:
    cause = f"The configuration of its share group differs from its spec: {'; '.join(differs)}."
    action = "Change the spec, or the configuration of the group in Kafka."
    return Problem(Health.of(Code.GROUP_DRIFT, cause, action), "supervisor", name)


def _capacity_problem(health_by_id: Mapping[str, Health]) -> list[Problem]:
    """All that wait for room, as one."""
    waiting = {n: s for n, s in health_by_id.items() if s.code == Code.WAITING_FOR_SLOT and not s.calls}
    if not waiting:
        return []
    names = sorted(waiting)
    shown = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED:,} more" if len(names) > NAMED else "")
    longest = min(waiting.values(), key=lambda s: s.since.timestamp() if s.since else float("inf"))
    verb = "waits" if len(names) == 1 else "wait"
    cause = f"{count(len(names), 'supervisor')} {verb} for slots: {shown}. {longest.cause}"
    action = "End tasks that nobody needs, or add slots."
    return [Problem(Health.of(Code.CAPACITY_FULL, cause, action, since=longest.since), "pool", "")]


def _unobserved_problem(health_by_id: Mapping[str, Health]) -> list[Problem]:
    """All that nobody looks at, as one: what they wait for is one worker. How they stand is not known."""
    unseen = {n: s for n, s in health_by_id.items() if s.code == Code.NOT_OBSERVED}
    if not unseen:
        return []
    first, *others = sorted(unseen)
    more = f" The same holds for {count(len(others), 'more supervisor')}." if others else ""
    health = replace(unseen[first], kind=Kind.NEEDS_ATTENTION, cause=f"{unseen[first].cause}{more}")
    return [Problem(health, "supervisor", first)]


def _quarantine_problems(causes: Sequence[DescribedCause]) -> list[Problem]:
    """One for each datasource: many records with a fault each are one thing to look into."""
    by_datasource: dict[str, list[DescribedCause]] = {}
    for described in causes:
        by_datasource.setdefault(described.cause.datasource.name, []).append(described)
    return [_quarantine_problem(name, found) for name, found in by_datasource.items()]


def _quarantine_problem(datasource: str, causes: Sequence[DescribedCause]) -> Problem:
    largest = max(causes, key=lambda d: d.cause.kept)
    records = sum(d.cause.kept for d in causes)
    by = f", the newest by version {largest.spec_version} of {largest.supervisor_id}" if largest.supervisor_id else ""
    for_causes = f" for {len(causes):,} causes" if len(causes) > 1 else ""
    waits = f"{count(records, 'record')} {'waits' if records == 1 else 'wait'} in quarantine{for_causes}{by}"
    what = ". Most of them" if len(causes) > 1 else ""
    cause = f"{waits}{what}: {shortened(largest.title) or largest.cause.reason}."
    since = min(d.cause.first_at for d in causes)
    return Problem(
        Health.of(Code.QUARANTINED, cause, "Fix the spec, then replay the records.", since=since),
        "datasource",
        datasource,
        max(d.cause.last_at for d in causes),
        largest.cause.cause if len(causes) == 1 else "",
    )


def _alarm_problems(alarms: Sequence[SourceEvent], active_tasks: set[str]) -> list[Problem]:
    """One for each kind of a datasource; the newest says what it is about."""
    by_kind: dict[tuple[str, str], list[SourceEvent]] = {}
    for alarm in alarms:
        if alarm.kind == SourceEvent.Kind.FAILING and alarm.task_id not in active_tasks:
            continue
        by_kind.setdefault((alarm.datasource.name, alarm.kind), []).append(alarm)
    return [_alarm_problem(name, events) for (name, _), events in by_kind.items()]


def _alarm_problem(datasource: str, events: Sequence[SourceEvent]) -> Problem:
    newest, times = events[0], f" ({len(events):,} times recently)" if len(events) > 1 else ""
    label = newest.get_kind_display()
    cause = f"{label}{times}: {shortened(newest.detail)}."
    action = "View the event. Acknowledge it when its cause is resolved."
    return Problem(
        Health(Kind.NEEDS_ATTENTION, newest.kind, label, cause, action, events[-1].created_at),
        "datasource",
        datasource,
        newest.created_at,
        task=newest.task_id,
        event=newest.pk,
    )
