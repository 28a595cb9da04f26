"""What is observed of many supervisors at once, for their health: as many statements for one as for five hundred."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet, Sum
from django.utils import timezone

from controlplane.datasources.concealing import mark
from controlplane.lag.bad_since import BadSince, bad_since
from controlplane.lag.trend import LagTrend, lag_trends, last_within
from controlplane.publishing.models import IndexerFence
from controlplane.publishing.selectors.totals import Totals, how_far_by_task, totals_by_task
from controlplane.quotas.services import Stopped, stopped_datasources
from controlplane.sources.lookup import key_of
from controlplane.sources.models import Source
from controlplane.supervisors.autoscale import wanted_task_count
from controlplane.supervisors.behind import is_behind, keeps_up_with
from controlplane.supervisors.health import Health
from controlplane.supervisors.health_messages import Rest
from controlplane.supervisors.health_rules import Done, Observed, Trouble, health_of
from controlplane.supervisors.models import SpecVersion, State, Supervisor
from controlplane.supervisors.pattern_health import SeenPattern, health_of_pattern, pattern_of
from controlplane.supervisors.quarantining import MANY, MUCH, is_quarantining
from controlplane.tasks import diagnosis
from controlplane.tasks.models import ENDED, Indexer, Status, Task
from controlplane.tasks.slot_waits import SlotWait, slot_waits_of
from controlplane.teams.audit import last_actions
from controlplane.teams.models import User
from ingestion.specs.tasks.stored import but_for_scaling

# All of a task that is asked here.
_OF_TASKS = (
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
_TROUBLED = ("paused", "restarting")
_UNHEALTHY = (State.UNHEALTHY_SUPERVISOR, State.UNHEALTHY_TASKS)


def health_by_supervisor(
    user: User, supervisors: Iterable[Supervisor], lags: Mapping[int, LagTrend] | None = None
) -> dict[str, Health]:
    """By supervisor. ``user`` is who reads it: the names of others' supervisors are not in it.

    ``lags``: by source, of all that they may read, where they are known already.
    """
    return {pk: health_of(seen) for pk, seen in observed(user, supervisors, lags).items()}


def observed(
    user: User, supervisors: Iterable[Supervisor], lags: Mapping[int, LagTrend] | None = None
) -> dict[str, Observed]:
    """By supervisor, what its health is made of."""
    some = list(supervisors)
    if not some:
        return {}
    around = _Around.of(user, some, lags)
    return {s.pk: _observed(s, around) for s in some}


def health_of_supervisor(user: User, supervisor: Supervisor) -> Health:
    """That of one."""
    return health_by_supervisor(user, [supervisor])[supervisor.pk]


def with_health(user: User, supervisors: QuerySet[Supervisor], code: str) -> QuerySet[Supervisor]:
    """Those of them that stand so now. All are judged, from many things: no column has it."""
    judged = health_by_supervisor(user, supervisors)
    return supervisors.filter(pk__in=[pk for pk, said in judged.items() if said.code == code])


@dataclass(frozen=True)
class _Around:
    """What there is of all of them, read once."""

    now: datetime
    tasks: Mapping[str, list[Task]]  # by supervisor: those that have not ended, newest first
    indexers: Mapping[str, list[tuple[str, str]]]  # by task, states and messages
    published: Mapping[str, int]  # by task
    totals: Mapping[str, Totals]  # by task: of supervisors none of whose tasks has published
    specs: Mapping[str, dict[str, Any]]  # by task: of supervisors' newest, where none of theirs has published
    earlier: Mapping[str, Task]  # by supervisor: its last ended task, where those that run have read nothing yet
    rooms: Mapping[str, SlotWait]  # by task
    older: Mapping[tuple[str, int], SpecVersion]  # versions that tasks still read by
    sources: Mapping[str, Source]  # by supervisor
    # By source.
    lags: Mapping[int, LagTrend]
    behind_since: Mapping[int, datetime | None]
    quarantining_since: Mapping[int, BadSince]
    stored: Mapping[int, int]
    suspended: Mapping[str, Done]
    quotas: Mapping[int, Stopped]  # by datasource
    patterns: Mapping[str, SeenPattern]  # by supervisor, of those that have one

    @classmethod
    def of(cls, user: User, supervisors: Sequence[Supervisor], known: Mapping[int, LagTrend] | None = None) -> _Around:
        tasks = _tasks(supervisors)
        all_tasks = [t for of_one in tasks.values() for t in of_one]
        far = how_far_by_task([t.pk for t in all_tasks]) if all_tasks else {}
        polled, published = ({task: of_one[n] for task, of_one in far.items()} for n in (0, 1))
        earlier = _earlier([pk for pk, own in tasks.items() if not any(polled.get(t.pk) for t in own)])
        silent = [own[0].pk for own in tasks.values() if not any(published.get(t.pk) for t in own)]
        told = [*silent, *(t.pk for t in earlier.values())]
        sources = sources_read_by(supervisors)
        read = [s.pk for s in sources.values()]
        lags = lag_trends(read) if known is None else {pk: known[pk] for pk in read if pk in known}
        behind = {source: keeps_up_with(lag) for source, lag in lags.items() if is_behind(lag)}
        return cls(
            now=timezone.now(),
            tasks=tasks,
            indexers=_indexers([t.pk for t in all_tasks]) if all_tasks else {},
            published=published,
            totals=totals_by_task(told) if told else {},
            specs=_specs(silent),
            earlier=earlier,
            rooms=_rooms(user, all_tasks),
            older=_older(supervisors, tasks),
            sources=sources,
            lags=lags,
            behind_since=last_within(behind) if behind else {},
            quarantining_since=bad_since([s for s, lag in lags.items() if is_quarantining(lag)], much=MUCH, many=MANY),
            stored=_stored([s.pk for s in supervisors if _lacks_topic(s, tasks)], sources),
            suspended=_suspended([s for s in supervisors if s.suspended]),
            quotas=stopped_datasources({s.datasource_id for s in supervisors}),
            patterns=_patterns([s for s in supervisors if s.io_config.topicPattern is not None]),
        )


def _patterns(supervisors: Sequence[Supervisor]) -> dict[str, SeenPattern]:
    if not supervisors:
        return {}
    children = Supervisor.objects.filter(parent__in=supervisors, terminated_at=None).with_current()
    sources = sources_read_by(children)
    lags = lag_trends([s.pk for s in sources.values()])
    found = {}
    for s in supervisors:
        own = [c for c in children if c.parent_id == s.pk]
        seen = [lags[sources[c.pk].pk].lag for c in own if c.pk in sources and sources[c.pk].pk in lags]
        unwell = sum(c.state in _UNHEALTHY for c in own)
        found[s.pk] = pattern_of(s, read=len(own), unwell=unwell, behind=sum(seen) if seen else None)
    return found


def _tasks(supervisors: Sequence[Supervisor]) -> dict[str, list[Task]]:
    """What is asked of them here, and no more: five hundred whole tasks were a tenth of home's time."""
    mine = Task.objects.active().reading().filter(supervisor_id__in=[s.pk for s in supervisors])
    found: dict[str, list[Task]] = {}
    for task in mine.only(*_OF_TASKS):
        found.setdefault(task.supervisor_id, []).append(task)
    return found


def _indexers(task_ids: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Values, not objects: those of a thousand indexers took longer than all else of home."""
    found: dict[str, list[tuple[str, str]]] = {}
    mine = Indexer.objects.filter(task__in=task_ids).order_by("task_id", "number")
    for task, state, message in mine.values_list("task_id", "state", "message"):
        found.setdefault(task, []).append((state, message))
    return found


def _specs(task_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    return dict(Task.objects.filter(pk__in=task_ids).values_list("pk", "spec")) if task_ids else {}


def _earlier(supervisor_ids: Sequence[str]) -> dict[str, Task]:
    if not supervisor_ids:
        return {}
    ended = Task.objects.reading().filter(supervisor_id__in=supervisor_ids, status__in=ENDED)
    ended = ended.only("id", "supervisor_id", "spec_version")
    return {t.supervisor_id: t for t in ended.order_by("supervisor_id", "-created_at", "-id").distinct("supervisor_id")}


def _rooms(user: User, tasks: Sequence[Task]) -> dict[str, SlotWait]:
    if not any(t.status == Status.PENDING or t.without_slot_since for t in tasks):
        return {}
    return slot_waits_of(tasks, set(Supervisor.objects.visible_to(user).values_list("pk", flat=True)))


def _older(supervisors: Sequence[Supervisor], tasks: Mapping[str, list[Task]]) -> dict[tuple[str, int], SpecVersion]:
    other = {(s.pk, t.spec_version) for s in supervisors for t in tasks.get(s.pk, []) if t.spec_version != s.version}
    if not other:
        return {}
    both = SpecVersion.objects.filter(
        supervisor_id__in={pk for pk, _ in other}, version__in={version for _, version in other}
    )
    return {(v.supervisor_id, v.version): v for v in both if (v.supervisor_id, v.version) in other}


def sources_read_by(supervisors: Sequence[Supervisor]) -> dict[str, Source]:
    """What each reads now, the one that was looked at last."""
    current = Source.objects.filter(datasource__in={s.datasource_id for s in supervisors}, current=True)
    by_key: dict[tuple[int, str, str, str], Source] = {}
    for source in current.order_by("looked_at", "id").only("datasource_id", "kind", "group", "topic", "looked_at"):
        by_key[source.datasource_id, source.kind, source.group, source.topic] = source
    found = {}
    for s in supervisors:
        key = key_of(s.io_config, s.owner)
        read = by_key.get((s.datasource_id, key["kind"], key["group"], s.io_config.topic))
        if read is not None:
            found[s.pk] = read
    return found


def _lacks_topic(supervisor: Supervisor, tasks: Mapping[str, list[Task]]) -> bool:
    task = _newest(tasks.get(supervisor.pk, []))
    gone = task is not None and task.observation.get("topic_exists") is False
    return gone or supervisor.lacks_topic


def _stored(supervisor_ids: Sequence[str], sources: Mapping[str, Source]) -> dict[int, int]:
    asked = [sources[pk].pk for pk in supervisor_ids if pk in sources]
    if not asked:
        return {}
    fences = IndexerFence.objects.filter(source__in=asked).order_by().values_list("source_id")
    return dict(fences.annotate(stored=Sum("published")))


def _suspended(supervisors: Sequence[Supervisor]) -> dict[str, Done]:
    """By whom: the last to suspend it; of one that was submitted so, nobody who is known here."""
    if not supervisors:
        return {}
    last = last_actions("supervisor", [s.pk for s in supervisors], ("suspend", "resume"))
    return {pk: Done(e.username, e.at) for pk, e in last.items() if e.action == "suspend"}


def _observed(supervisor: Supervisor, around: _Around) -> Observed:
    tasks = around.tasks.get(supervisor.pk, [])
    task, source = _newest(tasks), around.sources.get(supervisor.pk)
    lag = around.lags.get(source.pk) if source else None
    indexers = around.indexers.get(task.pk, []) if task else []
    states = tuple(state for state, _ in indexers)
    said = task.observation if task else {}
    io_config, pattern = supervisor.io_config, around.patterns.get(supervisor.pk)
    return Observed(
        now=around.now,
        topic=io_config.reads,
        topics=health_of_pattern(pattern) if pattern else None,
        detailed_state=supervisor.detailed_state,
        # What is the matter with the topics of its pattern is not told as its own.
        unhealthy=supervisor.state in _UNHEALTHY and (pattern is None or supervisor.failed_runs > 0),
        terminated=_terminated(supervisor),
        suspended=around.suspended.get(supervisor.pk, Done()) if supervisor.suspended else None,
        rests=Rest(supervisor.inactive_since, io_config.period) if supervisor.detailed_state == State.IDLE else None,
        tasks=pattern.read if pattern else len(tasks),
        ran_at=supervisor.last_run_at,
        iterations=_iterations(supervisor),
        contacted_at=supervisor.contacted_at,
        failures=_failures(supervisor),
        next_start_at=supervisor.next_start_at,
        indexer_states=states,
        indexer_message=_said(supervisor, indexers, *_TROUBLED),
        refusal=_said(supervisor, indexers, "refused"),
        kafka_error=str(said.get("error") or "") if task and task.status == Status.RUNNING else "",
        kafka_refuses=bool(said.get("refused")),
        strangers=tuple(said.get("strangers") or ()) if task and task.status == Status.RUNNING else (),
        topic_exists=said.get("topic_exists"),
        reason=_reason(supervisor, tasks, states, around),
        room=next((around.rooms[t.pk] for t in tasks if t.pk in around.rooms), None),
        quota=around.quotas.get(supervisor.datasource_id),
        versions=_versions(supervisor, tasks, around.older),
        topic_seen_at=source.looked_at if source else None,
        stored=around.stored.get(source.pk, 0) if source else 0,
        lag=lag,
        behind_since=around.behind_since.get(source.pk) if source else None,
        quarantining_since=around.quarantining_since.get(source.pk) if source else None,
        indexers=wanted_task_count(io_config, supervisor.decided_task_count),
        scales_itself=io_config.auto_scaler is not None,
    )


def _said(supervisor: Supervisor, indexers: Sequence[tuple[str, str]], *states: str) -> str:
    """By the first indexer in one of these states that says something."""
    said = next((message for state, message in indexers if message and state in states), "")
    return said and mark(supervisor.concealed_for) if supervisor.concealed_for else said


def _newest(tasks: Sequence[Task]) -> Task | None:
    return tasks[0] if tasks else None


def _terminated(supervisor: Supervisor) -> Done | None:
    if supervisor.terminated_at is None:
        return None
    by = supervisor.terminations[-1]["by"] if supervisor.terminations else ""
    return Done(by, supervisor.terminated_at)


def _iterations(supervisor: Supervisor) -> Trouble | None:
    error, times = supervisor.current_error, supervisor.failed_runs
    if not times:
        return None
    of_stream = bool(error.get("stream"))
    # Errors that are kept no longer had come before: then it is not known when it began, but when Kafka last answered.
    since = _time(supervisor.run_errors[times - 1]) if times <= len(supervisor.run_errors) else None
    if since is None and of_stream and error.get("class") != "TopicMissing":
        since = supervisor.contacted_at
    return Trouble(times, str(error.get("message", "")), since, str(error.get("class", "")), of_stream)


def _failures(supervisor: Supervisor) -> Trouble | None:
    times = supervisor.failures
    of_tasks = [e for e in supervisor.recent_errors if e.get("class") == "TaskFailed"]
    message = str(of_tasks[0].get("message", "")) if of_tasks else ""
    since = _time(of_tasks[times - 1]) if 0 < times <= len(of_tasks) else None
    return Trouble(times, message, since) if times else None


def _time(error: Mapping[str, Any]) -> datetime | None:
    try:
        return datetime.fromisoformat(str(error.get("at", "")))
    except ValueError:
        return None


def _versions(
    supervisor: Supervisor, tasks: Sequence[Task], older: Mapping[tuple[str, int], SpecVersion]
) -> tuple[int, int] | None:
    """The version that is read by and the next, unless they ask for the same work with more or fewer indexers."""
    for task in tasks:
        before = older.get((supervisor.pk, task.spec_version or 0))
        if before is not None and not _same_work(before, supervisor):
            return before.version, supervisor.version
    return None


def _same_work(before: SpecVersion, supervisor: Supervisor) -> bool:
    added = supervisor.__dict__.get("spec")  # by the selector
    spec = supervisor.current.spec if added is None else added
    return not before.io_config.traits.deals_by_number and but_for_scaling(before.spec) == but_for_scaling(spec)


def _reason(
    supervisor: Supervisor, tasks: Sequence[Task], states: tuple[str, ...], around: _Around
) -> diagnosis.Reason | None:
    """Why the newest has published nothing, unless a replica of it has.

    One that has read nothing yet knows nothing better than the one before it, of the same spec.
    """
    if not tasks:
        return None
    if any(around.published.get(t.pk) for t in tasks):
        return None
    newest, before = tasks[0], around.earlier.get(supervisor.pk)
    seen = around.totals.get(newest.pk, Totals())
    read = around.totals.get(before.pk, Totals()) if before and before.spec_version == newest.spec_version else Totals()
    if read.polled and not read.published:
        seen = read
    facts = diagnosis.Facts(
        status=newest.status,
        spec=around.specs[newest.pk],
        totals=seen,
        observation=newest.observation,
        indexer_states=states,
        refusal=_said(supervisor, around.indexers.get(newest.pk, []), "refused"),
        pause=_said(supervisor, around.indexers.get(newest.pk, []), "paused"),
        slots=newest.slots,
        error=mark(supervisor.concealed_for) if supervisor.concealed_for and newest.error else newest.error,
    )
    return next(iter(diagnosis.why_nothing(facts)), None)
