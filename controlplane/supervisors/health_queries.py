"""What is observed of many supervisors at once, for their health: as many statements for one as for five hundred."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import QuerySet, Sum
from django.utils import timezone

from controlplane.common.health import Health
from controlplane.datasources.masked_querysets import hidden_note
from controlplane.lag.quarantined_since import BadSince, bad_since
from controlplane.lag.trend import LagTrend, lag_trends, last_time_within
from controlplane.publishing.models import IndexerFence
from controlplane.publishing.selectors.totals import Totals, progress_by_task, totals_by_task
from controlplane.quotas.services import OverQuota, datasources_over_quota
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import source_key
from controlplane.supervisors.autoscale import wanted_task_count
from controlplane.supervisors.bounded import bounded_facts, with_filling
from controlplane.supervisors.health_facts import ErrorStreak, HealthFacts, PastAction
from controlplane.supervisors.health_messages import Idleness
from controlplane.supervisors.health_rules import health_of
from controlplane.supervisors.lag_state import is_behind, lag_allowance
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.pattern_health import PatternFacts, health_of_pattern, pattern_facts
from controlplane.supervisors.quarantine_health import MIN_RECORDS, MIN_SHARE, is_quarantining
from controlplane.supervisors.states import Detail
from controlplane.tasks import diagnosis
from controlplane.tasks.models import ENDED, Indexer, Status, Task
from controlplane.tasks.slot_waits import SlotWait, slot_waits_of
from controlplane.teams.audit import last_actions
from controlplane.teams.models import User
from ingestion.specs.tasks.stored_specs import without_scaling

_TASK_COLUMNS = (
    "id",
    "kind",
    "supervisor_id",
    "spec_version",
    "status",
    "indexers_wanted",
    "slots",
    "created_at",
    "launched_at",
    "without_slot_since",
    "observation",
    "error",
)
_SOURCE_COLUMNS = ("datasource_id", "kind", "group", "topic", "looked_at", "complete_until")
_TROUBLED = ("paused", "restarting")


def health_by_supervisor(
    user: User, supervisors: Iterable[Supervisor], lags: Mapping[int, LagTrend] | None = None
) -> dict[str, Health]:
    """By supervisor. ``user`` is who reads it: the names of others' supervisors are not in it.

    ``lags``: by source, of all that they may read, where they are known already.
    """
    return {pk: health_of(facts) for pk, facts in health_facts(user, supervisors, lags).items()}


def health_facts(
    user: User, supervisors: Iterable[Supervisor], lags: Mapping[int, LagTrend] | None = None
) -> dict[str, HealthFacts]:
    """By supervisor, what its health is made of."""
    listed = list(supervisors)
    if not listed:
        return {}
    prefetched = _Prefetched.of(user, listed, lags)
    return with_filling({s.pk: _facts_of(s, prefetched) for s in listed})


def health_of_supervisor(user: User, supervisor: Supervisor) -> Health:
    """That of one."""
    return health_by_supervisor(user, [supervisor])[supervisor.pk]


def with_health(user: User, supervisors: QuerySet[Supervisor], code: str) -> QuerySet[Supervisor]:
    """Those of them that stand so now. All are judged, from many things: no column has it."""
    health_by_id = health_by_supervisor(user, supervisors)
    return supervisors.filter(pk__in=[pk for pk, health in health_by_id.items() if health.code == code])


@dataclass(frozen=True)
class _Prefetched:
    """What there is of all of them, read once."""

    now: datetime
    tasks: Mapping[str, list[Task]]  # by supervisor: those that have not ended, newest first
    indexers: Mapping[str, list[tuple[str, str]]]  # by task, states and messages
    published: Mapping[str, int]  # by task
    totals: Mapping[str, Totals]  # by task: of supervisors none of whose tasks has published
    specs: Mapping[str, dict[str, Any]]  # by task: of supervisors' newest, where none of theirs has published
    ended_tasks: Mapping[str, Task]  # by supervisor: its last ended task, where those that run have read nothing yet
    slot_waits: Mapping[str, SlotWait]  # by task
    older: Mapping[tuple[str, int], SpecVersion]  # versions that tasks still read by
    sources: Mapping[str, Source]  # by supervisor
    # By source.
    lags: Mapping[int, LagTrend]
    behind_since: Mapping[int, datetime | None]
    quarantining_since: Mapping[int, BadSince]
    stored: Mapping[int, int]
    suspended: Mapping[str, PastAction]
    quotas: Mapping[int, OverQuota]  # by datasource
    patterns: Mapping[str, PatternFacts]  # by supervisor, of those that have one

    @classmethod
    def of(
        cls, user: User, supervisors: Sequence[Supervisor], known_lags: Mapping[int, LagTrend] | None = None
    ) -> _Prefetched:
        tasks = _tasks(supervisors)
        all_tasks = [t for each in tasks.values() for t in each]
        progress = progress_by_task([t.pk for t in all_tasks]) if all_tasks else {}
        polled, published = ({task: each[n] for task, each in progress.items()} for n in (0, 1))
        earlier = _last_ended_tasks(
            [pk for pk, supervisor_tasks in tasks.items() if not any(polled.get(t.pk) for t in supervisor_tasks)]
        )
        unpublished = [
            supervisor_tasks[0].pk
            for supervisor_tasks in tasks.values()
            if not any(published.get(t.pk) for t in supervisor_tasks)
        ]
        total_ids = [*unpublished, *(t.pk for t in earlier.values())]
        sources = sources_read_by(supervisors)
        source_ids = [s.pk for s in sources.values()]
        lags = (
            lag_trends(source_ids)
            if known_lags is None
            else {pk: known_lags[pk] for pk in source_ids if pk in known_lags}
        )
        behind = {source: lag_allowance(lag) for source, lag in lags.items() if is_behind(lag)}
        return cls(
            now=timezone.now(),
            tasks=tasks,
            indexers=_indexers([t.pk for t in all_tasks]) if all_tasks else {},
            published=published,
            totals=totals_by_task(total_ids) if total_ids else {},
            specs=_specs(unpublished),
            ended_tasks=earlier,
            slot_waits=_slot_waits(user, all_tasks),
            older=_older_versions(supervisors, tasks),
            sources=sources,
            lags=lags,
            behind_since=last_time_within(behind) if behind else {},
            quarantining_since=bad_since(
                [s for s, lag in lags.items() if is_quarantining(lag)], share=MIN_SHARE, least=MIN_RECORDS
            ),
            stored=_rows_stored([s.pk for s in supervisors if _lacks_topic(s, tasks)], sources),
            suspended=_suspensions([s for s in supervisors if s.suspended]),
            quotas=datasources_over_quota({s.datasource_id for s in supervisors}),
            patterns=_patterns([s for s in supervisors if s.io_config.topicPattern is not None]),
        )


def _patterns(supervisors: Sequence[Supervisor]) -> dict[str, PatternFacts]:
    if not supervisors:
        return {}
    children = Supervisor.objects.filter(parent__in=supervisors, terminated_at=None).with_current()
    sources = sources_read_by(children)
    lags = lag_trends([s.pk for s in sources.values()])
    patterns = {}
    for s in supervisors:
        own_children = [c for c in children if c.parent_id == s.pk]
        child_lags = [lags[sources[c.pk].pk].lag for c in own_children if c.pk in sources and sources[c.pk].pk in lags]
        unwell, behind = sum(not c.state.is_healthy for c in own_children), sum(child_lags) if child_lags else None
        patterns[s.pk] = pattern_facts(s, len(own_children), unwell, behind)
    return patterns


def _tasks(supervisors: Sequence[Supervisor]) -> dict[str, list[Task]]:
    """What is asked of them here, and no more: five hundred whole tasks were a tenth of home's time."""
    tasks = Task.objects.active().ingesting().filter(supervisor_id__in=[s.pk for s in supervisors])
    by_supervisor: dict[str, list[Task]] = {}
    for task in tasks.only(*_TASK_COLUMNS):
        by_supervisor.setdefault(task.supervisor_id, []).append(task)
    return by_supervisor


def _indexers(task_ids: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Values, not objects: those of a thousand indexers took longer than all else of home."""
    by_task: dict[str, list[tuple[str, str]]] = {}
    rows = Indexer.objects.filter(task__in=task_ids).order_by("task_id", "number")
    for task, state, message in rows.values_list("task_id", "state", "message"):
        by_task.setdefault(task, []).append((state, message))
    return by_task


def _specs(task_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    return dict(Task.objects.filter(pk__in=task_ids).values_list("pk", "spec")) if task_ids else {}


def _last_ended_tasks(supervisor_ids: Sequence[str]) -> dict[str, Task]:
    if not supervisor_ids:
        return {}
    ended = Task.objects.ingesting().filter(supervisor_id__in=supervisor_ids, status__in=ENDED)
    ended = ended.only("id", "supervisor_id", "spec_version")
    return {t.supervisor_id: t for t in ended.order_by("supervisor_id", "-created_at", "-id").distinct("supervisor_id")}


def _slot_waits(user: User, tasks: Sequence[Task]) -> dict[str, SlotWait]:
    if not any(t.status == Status.PENDING or t.without_slot_since for t in tasks):
        return {}
    return slot_waits_of(tasks, set(Supervisor.objects.visible_to(user).values_list("pk", flat=True)))


def _older_versions(
    supervisors: Sequence[Supervisor], tasks: Mapping[str, list[Task]]
) -> dict[tuple[str, int], SpecVersion]:
    keys = {(s.pk, t.spec_version) for s in supervisors for t in tasks.get(s.pk, []) if t.spec_version != s.version}
    if not keys:
        return {}
    versions = SpecVersion.objects.filter(
        supervisor_id__in={pk for pk, _ in keys}, version__in={version for _, version in keys}
    )
    return {(v.supervisor_id, v.version): v for v in versions if (v.supervisor_id, v.version) in keys}


def sources_read_by(supervisors: Sequence[Supervisor]) -> dict[str, Source]:
    """What each reads now, the one that was looked at last."""
    current = Source.objects.filter(datasource__in={s.datasource_id for s in supervisors}, current=True)
    by_key: dict[tuple[int, str, str, str], Source] = {}
    for source in current.order_by("looked_at", "id").only(*_SOURCE_COLUMNS):
        by_key[source.datasource_id, source.kind, source.group, source.topic] = source
    sources = {}
    for s in supervisors:
        key = source_key(s.io_config, s.owner)
        if (source_now := by_key.get((s.datasource_id, key["kind"], key["group"], s.io_config.topic))) is not None:
            sources[s.pk] = source_now
    return sources


def _lacks_topic(supervisor: Supervisor, tasks: Mapping[str, list[Task]]) -> bool:
    task = _newest(tasks.get(supervisor.pk, []))
    is_missing = task is not None and task.observation.get("topic_exists") is False
    return is_missing or supervisor.lacks_topic


def _rows_stored(supervisor_ids: Sequence[str], sources: Mapping[str, Source]) -> dict[int, int]:
    source_ids = [sources[pk].pk for pk in supervisor_ids if pk in sources]
    if not source_ids:
        return {}
    fences = IndexerFence.objects.filter(source__in=source_ids).order_by().values_list("source_id")
    return dict(fences.annotate(stored=Sum("published")))


def _suspensions(supervisors: Sequence[Supervisor]) -> dict[str, PastAction]:
    """By whom: the last to suspend it; of one that was submitted so, nobody who is known here."""
    if not supervisors:
        return {}
    last = last_actions("supervisor", [s.pk for s in supervisors], ("suspend", "resume"))
    return {pk: PastAction(e.username, e.at) for pk, e in last.items() if e.action == "suspend"}


def _facts_of(supervisor: Supervisor, prefetched: _Prefetched) -> HealthFacts:
    tasks = prefetched.tasks.get(supervisor.pk, [])
    task, source = _newest(tasks), prefetched.sources.get(supervisor.pk)
    indexers = prefetched.indexers.get(task.pk, []) if task else []
    states = tuple(state for state, _ in indexers)
    observation = task.observation if task else {}
    io_config, pattern = supervisor.io_config, prefetched.patterns.get(supervisor.pk)
    followed = source if io_config.boundedStreamConfig is None else None  # it does not read to the topic's end
    return HealthFacts(
        now=prefetched.now,
        topic=io_config.reads,
        topics=health_of_pattern(pattern) if pattern else None,
        detailed_state=supervisor.detail,
        terminated=_termination(supervisor),
        suspended=prefetched.suspended.get(supervisor.pk, PastAction()) if supervisor.suspended else None,
        idleness=Idleness(supervisor.inactive_since, io_config.period)
        if supervisor.detailed_state == Detail.IDLE
        else None,
        **bounded_facts(supervisor, observation),
        tasks=pattern.read if pattern else len(tasks),
        ran_at=supervisor.last_run_at,
        iterations=_run_errors(supervisor),
        runs_to_recover=max(1, settings.SUPERVISOR_HEALTHINESS_THRESHOLD - supervisor.good_runs),
        contacted_at=supervisor.contacted_at,
        failures=_task_errors(supervisor),
        next_start_at=supervisor.next_start_at,
        indexer_states=states,
        indexer_message=_indexer_message(supervisor, indexers, *_TROUBLED),
        refusal=_indexer_message(supervisor, indexers, "refused"),
        kafka_error=str(observation.get("error") or "") if task and task.status == Status.RUNNING else "",
        kafka_refuses=bool(observation.get("refused")),
        foreign_members=tuple(observation.get("strangers") or ()) if task and task.status == Status.RUNNING else (),
        topic_exists=observation.get("topic_exists"),
        reason=_reason_for_nothing(supervisor, tasks, states, prefetched),
        slot_wait=next((prefetched.slot_waits[t.pk] for t in tasks if t.pk in prefetched.slot_waits), None),
        quota=prefetched.quotas.get(supervisor.datasource_id),
        versions=_changing_versions(supervisor, tasks, prefetched.older),
        topic_seen_at=source.looked_at if source else None,
        complete_until=followed.complete_until if followed else None,
        stored=prefetched.stored.get(source.pk, 0) if source else 0,
        lag=prefetched.lags.get(followed.pk) if followed else None,
        behind_since=prefetched.behind_since.get(followed.pk) if followed else None,
        quarantining_since=prefetched.quarantining_since.get(followed.pk) if followed else None,
        indexers=wanted_task_count(io_config, supervisor.decided_task_count),
        scales_itself=io_config.auto_scaler is not None,
    )


def _indexer_message(supervisor: Supervisor, indexers: Sequence[tuple[str, str]], *states: str) -> str:
    """By the first indexer in one of these states that says something."""
    text = next((message for state, message in indexers if message and state in states), "")
    return text and hidden_note(supervisor.concealed_for) if supervisor.concealed_for else text


def _newest(tasks: Sequence[Task]) -> Task | None:
    return tasks[0] if tasks else None


def _termination(supervisor: Supervisor) -> PastAction | None:
    if supervisor.terminated_at is None:
        return None
    actor = supervisor.terminations[-1]["by"] if supervisor.terminations else ""
    return PastAction(actor, supervisor.terminated_at)


def _run_errors(supervisor: Supervisor) -> ErrorStreak | None:
    error, times = supervisor.current_error, supervisor.failed_runs
    if not times:
        return None
    is_stream = bool(error.get("stream"))
    # Errors that are kept no longer had come before: then it is not known when it began, but when Kafka last answered.
    since = _error_time(supervisor.run_errors[times - 1]) if times <= len(supervisor.run_errors) else None
    if since is None and is_stream and error.get("class") != "TopicMissing":
        since = supervisor.contacted_at
    return ErrorStreak(times, str(error.get("message", "")), since, str(error.get("class", "")), is_stream)


def _task_errors(supervisor: Supervisor) -> ErrorStreak | None:
    times = supervisor.failures
    task_errors = [e for e in supervisor.recent_errors if e.get("class") == "TaskFailed"]
    message = str(task_errors[0].get("message", "")) if task_errors else ""
    since = _error_time(task_errors[times - 1]) if 0 < times <= len(task_errors) else None
    return ErrorStreak(times, message, since) if times else None


def _error_time(error: Mapping[str, Any]) -> datetime | None:
    try:
        return datetime.fromisoformat(str(error.get("at", "")))
    except ValueError:
        return None


def _changing_versions(
    supervisor: Supervisor, tasks: Sequence[Task], older: Mapping[tuple[str, int], SpecVersion]
) -> tuple[int, int] | None:
    """The version that is read by and the next, unless they ask for the same work with more or fewer indexers."""
    for task in tasks:
        previous = older.get((supervisor.pk, task.spec_version or 0))
        if previous is not None and not _same_work(previous, supervisor):
            return previous.version, supervisor.version
    return None


def _same_work(previous: SpecVersion, supervisor: Supervisor) -> bool:
    annotated_spec = supervisor.__dict__.get("spec")  # by the selector
    spec = supervisor.current.spec if annotated_spec is None else annotated_spec
    return not previous.io_config.traits.assigns_by_number and without_scaling(previous.spec) == without_scaling(spec)


def _reason_for_nothing(
    supervisor: Supervisor, tasks: Sequence[Task], states: tuple[str, ...], prefetched: _Prefetched
) -> Health | None:
    """Why the newest has published nothing, unless a replica of it has.

    One that has read nothing yet knows nothing better than the one before it, of the same spec.
    """
    if not tasks:
        return None
    if any(prefetched.published.get(t.pk) for t in tasks):
        return None
    newest, earlier = tasks[0], prefetched.ended_tasks.get(supervisor.pk)
    totals = prefetched.totals.get(newest.pk, Totals())
    earlier_totals = (
        prefetched.totals.get(earlier.pk, Totals())
        if earlier and earlier.spec_version == newest.spec_version
        else Totals()
    )
    if earlier_totals.polled and not earlier_totals.published:
        totals = earlier_totals
    facts = diagnosis.Facts(
        status=newest.status,
        spec=prefetched.specs[newest.pk],
        totals=totals,
        observation=newest.observation,
        indexer_states=states,
        refusal=_indexer_message(supervisor, prefetched.indexers.get(newest.pk, []), "refused"),
        pause=_indexer_message(supervisor, prefetched.indexers.get(newest.pk, []), "paused"),
        slots=newest.slots,
        error=hidden_note(supervisor.concealed_for) if supervisor.concealed_for and newest.error else newest.error,
    )
    return next(iter(diagnosis.why_nothing(facts)), None)
