"""What there is to merge: the most fragmented intervals first, as many jobs as the application can take up soon."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Max, QuerySet, Value
from django.db.models.functions import Greatest
from django.utils import timezone

from controlplane.common.errors import InvalidInput
from controlplane.common.health import Code, Health
from controlplane.common.ids import task_id
from controlplane.compaction import rewrites
from controlplane.compaction.backoff import MAX_FAILURES, Attempt, health_of_attempts
from controlplane.compaction.configs import Policy, policies
from controlplane.compaction.models import OPEN, Job, State
from controlplane.compaction.partitioning import Partitioning
from controlplane.compaction.policy import LARGE, REST_TIER, Candidate, Choice, Group, choose
from controlplane.compaction.schemas import WriteSpec, write_specs_of
from controlplane.datasources.models import Datasource
from controlplane.publishing.rewind_selection import WaitingSpans, undoable
from controlplane.segments.models import Interval, Segment
from controlplane.tasks.models import Task
from ingestion.specs.errors import SpecError

MAX_EXAMINED, MAX_SKIPPED = (
    50,
    5_000,
)  # intervals a round: looked at, and passed over as nothing was due there a moment ago
REST_TIME = timedelta(seconds=30)
Span = tuple[datetime, datetime]
MAX_WAITING = 16  # jobs at most that no application has taken up
MAX_WAITING_REWRITES = 12  # of which write intervals anew: merges find room beside them
_REWOUND = "Segments of a rewind are not merged as long as it can be undone."
LONGEST_PAUSE = timedelta(hours=1)  # after a job that failed, unless the next one would fail as well


class _Resting:
    """Intervals in which nothing was due a moment ago. Of this process: another looks for itself."""

    def __init__(self) -> None:
        self._until: dict[int, tuple[int, Policy, datetime]] = {}  # interval → revision, policy, and until when

    def add(self, interval: Interval, policy: Policy, now: datetime) -> None:
        if len(self._until) > 2 * MAX_SKIPPED:
            self._until.clear()
        self._until[interval.pk] = (interval.revision, policy, now + REST_TIME)

    def is_resting(self, interval: Interval, policy: Policy, now: datetime) -> bool:
        revision, under, until = self._until.get(interval.pk, (None, policy, now))
        return revision == interval.revision and under == policy and now < until

    def clear(self) -> None:
        self._until.clear()


_resting, _resting_rewrites = _Resting(), _Resting()


def forget_resting() -> None:
    """The next round looks at all intervals, as that of another process would."""
    _resting.clear()
    _resting_rewrites.clear()


@dataclass(frozen=True)
class IntervalPlan:
    """An interval, what is to be done with it, and if that is nothing, why."""

    interval: Interval
    choice: Choice
    write_specs: dict[str, WriteSpec]
    is_resting: bool = False  # until something is added, or time has passed
    segments: Sequence[Candidate] = ()  # where all of it is to be written anew


def plan() -> int:
    """Make jobs of what is due; returns how many."""
    room = MAX_WAITING - Job.objects.filter(state=State.WAITING).count()
    created = examined = 0
    enabled, now, rewound = policies(), timezone.now(), WaitingSpans.now()
    for interval in _fragmented(enabled):
        policy = enabled[interval.datasource_id]
        if _resting.is_resting(interval, policy, now) or rewound.holds(interval):
            continue
        if created >= room or examined >= MAX_EXAMINED:
            break
        interval_plan, examined = plan_interval(interval, policy, now), examined + 1
        for group in interval_plan.choice.groups[: room - created]:
            created += make_job(interval_plan, group, policy)
        if interval_plan.is_resting:
            _resting.add(interval, policy, now)
    return created


def plan_rewrites() -> int:
    """Make jobs and tasks of intervals that are to be partitioned, as many as have room; returns how many."""
    enabled, now = {pk: p for pk, p in policies().items() if p.partitioning}, timezone.now()
    room, rewound = _Room.current() if enabled else _Room(0, 0), WaitingSpans.now()
    created = examined = 0
    for interval in _not_partitioned(enabled) if room else ():
        policy = enabled[interval.datasource_id]
        partitioning = policy.partitioning
        if (
            partitioning is None
            or not room.has_room_for(interval, partitioning)
            or _resting_rewrites.is_resting(interval, policy, now)
            or rewound.holds(interval)
        ):
            continue
        if examined >= MAX_EXAMINED:
            break
        interval_plan, examined = plan_interval(interval, policy, now), examined + 1
        if not interval_plan.choice.rewrites_whole:
            _resting_rewrites.add(interval, policy, now)
            continue
        created += room.create(interval_plan, policy, partitioning)
        if not room:
            break
    return created


@dataclass
class _Room:
    """For what writes intervals anew: how many jobs may wait, and places of the pool for tasks."""

    jobs: int
    places: int

    @classmethod
    def current(cls) -> _Room:
        return cls(MAX_WAITING_REWRITES - Job.objects.filter(state=State.WAITING).count(), rewrites.slots_left())

    def __bool__(self) -> bool:
        return self.jobs > 0 or self.places > 0

    def has_room_for(self, interval: Interval, partitioning: Partitioning) -> bool:
        return self.jobs > 0 if rewrites.is_small(interval) else rewrites.slots_of(partitioning) <= self.places

    def create(self, interval_plan: IntervalPlan, policy: Policy, partitioning: Partitioning) -> int:
        """1 when something was made."""
        if not rewrites.is_small(interval_plan.interval):
            self.places -= rewrites.create_task(interval_plan.interval, partitioning).slots
            return 1
        created = make_rewrite_job(interval_plan, policy, partitioning)
        self.jobs -= created
        return created


def _not_partitioned(enabled: dict[int, Policy]) -> Iterable[Interval]:
    """Of datasources that are, those with the most segments first."""
    for policy in sorted(set(enabled.values()), key=lambda p: p.priority, reverse=True):
        intervals = Interval.objects.filter(
            datasource__in=[pk for pk, p in enabled.items() if p == policy], segments__gt=0
        )
        yield from (
            unfinished(intervals, policy).select_related("datasource").order_by("-segments", "-start")[:MAX_SKIPPED]
        )


def unfinished(intervals: QuerySet[Interval], policy: Policy) -> QuerySet[Interval]:
    """Those that are not partitioned yet, where they are to be."""
    return intervals.exclude(policy.partitioning.is_done) if policy.partitioning else intervals


def _fragmented(enabled: dict[int, Policy]) -> Iterable[Interval]:
    """Of datasources whose compaction is on, those with the most segments beyond what they need first."""
    for policy in sorted(set(enabled.values()), key=lambda p: p.priority, reverse=True):
        datasources = [pk for pk, p in enabled.items() if p == policy]
        needed = Greatest(
            F("rows") / Value(policy.limits.target_rows * LARGE),
            F("size_bytes") / Value(policy.limits.target_bytes * LARGE),
        )
        intervals = unfinished(Interval.objects.filter(datasource__in=datasources, segments__gt=1), policy)
        intervals = intervals.select_related("datasource")
        yield from (
            intervals.annotate(excess=F("segments") - needed).filter(excess__gt=1).order_by("-excess")[:MAX_SKIPPED]
        )


def plan_interval(interval: Interval, policy: Policy, now: datetime | None = None) -> IntervalPlan:
    """What would be merged of it now."""
    now = now or timezone.now()
    skipped = _health_if_skipped(interval, policy)
    if skipped:
        return IntervalPlan(interval, Choice(health=skipped), {})
    segments, written = segments_of(interval, policy.partitioning)
    jobs = list(_recent_jobs(interval))
    open_jobs = [j for j in jobs if j.state in OPEN]
    rewound = undoable(interval.datasource_id, [s.id for s in segments])
    choice = choose(
        segments,
        now,
        policy.limits,
        busy={j.tier for j in open_jobs},
        taken={i for j in open_jobs for i in j.inputs} | rewound,
    )
    if rewound and choice.health and choice.health.code == Code.WAITING_FOR_SEGMENTS:
        choice = Choice(health=Health.of(Code.WAITING_FOR_SEGMENTS, f"{choice.health.cause} {_REWOUND}"))
    if choice.rewrites_whole and policy.partitioning:
        failing = _health_of_jobs(jobs, REST_TIER, now)
        waiting = failing or rewrites.health_if_blocked(interval, policy.partitioning, now)
        return IntervalPlan(
            interval, Choice(health=waiting) if waiting else choice, written, is_resting=True, segments=segments
        )
    waits = {tier: why for tier in range(REST_TIER + 1) if (why := _health_of_jobs(jobs, tier, now))}
    groups = tuple(g for g in choice.groups if g.tier not in waits)
    if choice.groups and not groups:
        return IntervalPlan(interval, Choice(health=next(iter(waits.values()))), written)
    return IntervalPlan(interval, Choice(groups, choice.health), written, is_resting=not groups and not open_jobs)


def _health_if_skipped(interval: Interval, policy: Policy) -> Health | None:
    """None when its segments have to be looked at."""
    if _is_skipped(interval, policy):
        return Health.of(Code.SKIPPED, "It is within skipOffsetFromLatest of the latest interval.")
    if policy.partitioning is None:
        return None
    if policy.partitioning.holds_for(interval):
        return Health.of(Code.COMPACTED, "It is partitioned as partitionsSpec says.")
    task = rewrites.open_task(interval)
    return Health.of(Code.COMPACTING, f"Task {task} is rewriting its rows.") if task else None


def _is_skipped(interval: Interval, policy: Policy) -> bool:
    if not policy.skip_offset:
        return False
    latest = Interval.objects.filter(datasource=interval.datasource_id, segments__gt=0).aggregate(end=Max("end"))
    return latest["end"] is not None and interval.end > latest["end"] - policy.skip_offset


def segments_of(
    interval: Interval, partitioning: Partitioning | None = None
) -> tuple[Sequence[Candidate], dict[str, WriteSpec]]:
    """Those in use, and how their tasks have written them. ``partitioning``: that is wanted."""
    by_span, written = segments_of_each([interval], partitioning)
    return by_span[interval.start, interval.end], written


def segments_of_each(
    intervals: Sequence[Interval], partitioning: Partitioning | None = None
) -> tuple[dict[Span, list[Candidate]], dict[str, WriteSpec]]:
    """Those in use in each of a datasource's intervals, read at once, and how their tasks have written them."""
    rows = list(
        Segment.objects.filter(
            datasource=intervals[0].datasource_id, interval_start__in={i.start for i in intervals}, used=True
        )
        .select_related("schema")
        .only("id", "rows", "size_bytes", "created_at", "task_id", "interval_start", "interval_end", "schema__extents")
    )
    written = write_specs_of(s.task_id for s in rows)
    ways = {(s.task_id, s.schema.extents) for s in rows if s.task_id in written}
    kinds = {(task, extents): written[task].kind(extents) for task, extents in ways}
    effect = partitioning.effect if partitioning else None
    done = {task for task, how in written.items() if how.partitioned_by == effect}
    by_span: dict[Span, list[Candidate]] = {(i.start, i.end): [] for i in intervals}
    for s in rows:
        if (s.interval_start, s.interval_end) in by_span:
            by_span[s.interval_start, s.interval_end].append(_candidate(s, kinds, s.task_id in done))
    return by_span, written


def _candidate(segment: Segment, kinds: dict[tuple[str, bool], str], partitioned: bool) -> Candidate:
    kind = kinds.get((segment.task_id, segment.schema.extents))
    return Candidate(segment.pk, segment.rows, segment.size_bytes, segment.created_at, kind, partitioned)


def _recent_jobs(interval: Interval) -> Iterable[Job]:
    jobs = Job.objects.filter(
        datasource=interval.datasource_id, interval_start=interval.start, interval_end=interval.end
    )
    return jobs.order_by("-created_at")[: MAX_FAILURES * (REST_TIER + 1)]


def _health_of_jobs(jobs: Iterable[Job], tier: int, now: datetime) -> Health | None:
    """``jobs``: of one interval, the newest first."""
    attempts = (
        Attempt(j.state == State.FAILED, j.ended_at or j.created_at, j.error, j.permanent)
        for j in jobs
        if j.tier == tier
    )
    return health_of_attempts(attempts, now, LONGEST_PAUSE)


def make_job(
    interval_plan: IntervalPlan,
    group: Group,
    policy: Policy,
    task: Task | None = None,
    index_spec: dict[str, Any] | None = None,
) -> int:
    """1 for a job made; 0 when there is one already. ``task``: that has asked for it, with its own ``index_spec``."""
    written, extents = _newest_write_spec(interval_plan, group)
    how = {
        "data_schema": written.data_schema,
        "index_spec": written.index_spec if index_spec is None else index_spec,
        "rollup": written.rolls_up(extents),
    }
    return _create_job(interval_plan.interval, group, policy, task=task, **how)


def make_rewrite_job(interval_plan: IntervalPlan, policy: Policy, partitioning: Partitioning) -> int:
    """1 for a job made that writes all of it anew; 0 when there is one already, or its segments have just changed."""
    group = Group(REST_TIER, "", tuple(sorted(interval_plan.segments, key=lambda s: s.created_at)))
    try:
        rewrite_spec = rewrites.rewrite_spec(interval_plan.interval, partitioning, [s.id for s in group.segments])
    except (InvalidInput, SpecError, ValueError):
        return 0  # the next round says why
    schema, rollup = (
        _newest_write_spec(interval_plan, group)[0].data_schema,
        rewrite_spec.spec.dataSchema.granularitySpec.rollup,
    )
    how = {
        "data_schema": {**schema, "granularitySpec": {**schema.get("granularitySpec", {}), "rollup": rollup}},
        "index_spec": rewrite_spec.spec.tuningConfig.indexSpec.model_dump(mode="json", exclude_defaults=True),
        "rollup": rollup,
        "anew": rewrite_spec.canonical(),
        "partitioned_by": partitioning.effect,
    }
    return _create_job(interval_plan.interval, group, policy, **how)


def _newest_write_spec(interval_plan: IntervalPlan, group: Group) -> tuple[WriteSpec, bool]:
    """How its newest segment was written, and whether it has extents."""
    newest = max(group.segments, key=lambda s: s.created_at)
    by, extents = Segment.objects.values_list("task_id", "schema__extents").get(pk=newest.id)
    return interval_plan.write_specs[by], extents


def _create_job(interval: Interval, group: Group, policy: Policy, **how: Any) -> int:
    datasource: Datasource = interval.datasource
    now = timezone.now()
    try:
        with transaction.atomic():
            Job.objects.create(
                pk=task_id("compact", datasource.name, now),
                datasource=datasource,
                interval_start=interval.start,
                interval_end=interval.end,
                tier=group.tier,
                priority=policy.priority,
                inputs=[s.id for s in group.segments],
                max_rows_per_segment=policy.limits.target_rows,
                rows_before=sum(s.rows for s in group.segments),
                bytes_before=sum(s.size_bytes for s in group.segments),
                created_at=now,
                **how,
            )
    except IntegrityError:
        return 0
    return 1
