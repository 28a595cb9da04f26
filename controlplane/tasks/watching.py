"""The watch over tasks that have not ended, a round every two seconds.

1. One process at a time has a round; who comes meanwhile leaves it at that.
2. While heartbeats can be heard, tasks that are silent for too long have failed: their processes are killed, by their
   own hosts (``host_rounds``). So have those whose application a Spark cluster's master no longer lists, and those
   whose driver there has ended (``driver_rounds``).
3. What a host has claimed that is gone, and not started, waits for another.
4. Kafka is asked for the topic of each task that reads, all at once. Answers are taken up as they come in, those that
   have come in meanwhile together: what the store knows of their tasks is read, and written, for all of them at once.
   a. what the topic holds, and how much of it is not settled, is kept with the task and its source;
   b. what was quarantined since is reported;
   c. a manual task that has been idle for long enough, with nothing left to read, is told to finish;
   d. a task that was told to end, and has not in its time, is killed.
5. Teams whose quota is used up are found, and those whose is no longer.
6. What waits to be launched, and has room, is handed to the launcher once more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max, Prefetch, Q, prefetch_related_objects
from django.utils import timezone
from psycopg.types.json import Jsonb

from controlplane.common.database import cursor, try_advisory_lock
from controlplane.common.parallel import ask_in_groups
from controlplane.connections import kafka
from controlplane.connections.secrets import SecretsLost
from controlplane.lag.topic_lag import KnownReader, Reader, TopicLag, known_readers, record_lag_of
from controlplane.publishing.models import IndexerFence
from controlplane.publishing.offset_gaps import Unsettled
from controlplane.tasks import (
    bounded_reads,
    capacity,
    driver_rounds,
    drivers,
    events,
    heartbeat_gaps,
    hosts,
    launcher,
    lifecycle,
    quota_use,
)
from controlplane.tasks.change_notifications import notify_task_changed
from controlplane.tasks.models import Goal, Indexer, Status, Task
from controlplane.tasks.sources import consumer_group, owner_of, properties_of
from controlplane.tasks.unlisted_applications import REASON, unlisted
from ingestion.specs.kafka.client_messages import SHARE_GROUPS_OFF
from ingestion.specs.tasks.ingestion_spec import TaskSpec, parse_task_spec

logger = logging.getLogger(__name__)
_WATCH_LOCK = 0x57415443
GROUP = 100  # tasks that are taken up together at most: what is known of them is in memory
SAME_AGAIN_AFTER = timedelta(seconds=10)
_SHOWN = ("task_id", "number", "state", "in_flight", "message")  # of indexers, what is asked for here
# A row that somebody else changes just now waits for the next round: who holds several rows must never wait.
_STORE = """
    UPDATE tasks_task t SET observation = mine.observation FROM (
        SELECT t.id, seen.observation FROM unnest(%s::text[], %s::jsonb[]) AS seen(id, observation)
        JOIN tasks_task t ON t.id = seen.id FOR NO KEY UPDATE OF t SKIP LOCKED
    ) mine WHERE t.id = mine.id
"""
# Of what is observed, what pages show.
_SHOWN_FIELDS = ("error", "topic_exists", "settled", "lag", "strangers", "members_unknown")


def watch(hand_over: Callable[[Task], None]) -> None:
    """One round over all tasks that have not ended; ``hand_over`` gives one to the launcher."""
    with try_advisory_lock(_WATCH_LOCK) as acquired:
        if not acquired:
            return
        since = heartbeat_gaps.heartbeats_accepted_since()
        if since is not None:
            for task_id in lifecycle.fail_lost(since):
                launcher.kill(task_id)
            lifecycle.requeue_unstarted(since, of_gone_hosts())
        _fail_unlisted()
        driver_rounds.watch()
        running = Task.objects.active().ingesting().filter(status=Status.RUNNING).select_related("datasource")
        for group in _observe_topics([(task, parse_task_spec(task.spec)) for task in running]):
            watch_group(group)
        quota_use.mark_used_up()
        _relaunch_forgotten(hand_over)


def of_gone_hosts() -> Q:
    """Tasks of hosts that have no worker any more, but for those whose drivers a Spark cluster has."""
    return Q(host__in=hosts.gone()) & ~drivers.with_driver()


def _fail_unlisted() -> None:
    """Their supervisors start others. A batch task is its submitter's to start anew, as after any other loss."""
    running = {t.pk: t for t in Task.objects.active().in_pool().filter(status=Status.RUNNING)}
    for task_id in unlisted(running.keys(), "tasks"):
        launcher.kill(task_id)
        task = running[task_id]
        lifecycle.end_task(task, error=f"{REASON} {lifecycle.loss_note(task)}")


@dataclass(frozen=True)
class ObservedTopic:
    """A task and what Kafka said of its topic: offsets, None when there is no such topic, or why it did not say."""

    task: Task
    spec: TaskSpec
    topic: kafka.TopicOffsets | None
    problem: str = ""
    refused: bool = False  # by Kafka: this login lacks a right


def _observe_topics(tasks: list[tuple[Task, TaskSpec]]) -> Iterator[list[ObservedTopic]]:
    """In groups, in the order in which Kafka answers."""
    for answers in ask_in_groups(_topic_offsets, tasks, GROUP):
        yield [_observed(task, spec, answer) for (task, spec), answer in answers]


def _observed(task: Task, spec: TaskSpec, answer: kafka.TopicOffsets | Exception | None) -> ObservedTopic:
    topic, problem = (None, str(answer)) if isinstance(answer, Exception) else (answer, "")
    return ObservedTopic(task, spec, topic, problem, isinstance(answer, kafka.KafkaRefuses))


def _topic_offsets(task_and_spec: tuple[Task, TaskSpec]) -> kafka.TopicOffsets | None:
    task, spec = task_and_spec
    topic = kafka.topic_offsets(properties_of(task), spec.spec.ioConfig.topic, consumer_group(task))
    return None if topic is None else topic.for_isolation(spec.spec.ioConfig.isolation)


def watch_group(group: Sequence[ObservedTopic]) -> None:
    """Take up what was seen of the topics of some tasks."""
    store_observations([observed for observed in group if not observed.task.is_bounded])
    quarantined = events.quarantined_by([observed.task.pk for observed in group])
    for observed in group:
        task = observed.task
        if task.is_bounded:
            bounded_reads.observe(task, observed.topic, observed.problem, observed.refused)
            notify_task_changed(task)
        events.report_quarantined(task, quarantined=quarantined.get(task.pk, 0))
        _end_in_time(task, observed.spec)


def _end_in_time(task: Task, spec: TaskSpec) -> None:
    if task.goal == Goal.RUN and not task.supervisor_id and not task.is_bounded:
        _finish_if_idle(task, spec)
    elif task.goal != Goal.RUN:
        _enforce_stop(task)


def store_observations(group: Sequence[ObservedTopic]) -> None:
    """Keep what was seen of the tasks' topics in the tasks and their progress keys."""
    prefetch_related_objects([observed.task for observed in group], Prefetch("indexers", Indexer.objects.only(*_SHOWN)))
    seen = [(o, Reader(o.task.datasource_id, o.task.io_config, owner_of(o.task), o.topic)) for o in group if o.topic]
    known = dict(zip((o.task.pk for o, _ in seen), known_readers([reader for _, reader in seen]), strict=True))
    own_ids = _own_ids([observed.topic for observed, _ in seen if observed.topic])
    changed = [task for o in group if (task := _compare(o, known.get(o.task.pk), own_ids))]
    if changed:
        with cursor() as c:
            c.execute(_STORE, ([t.pk for t in changed], [Jsonb(t.observation) for t in changed]))


def _compare(observed: ObservedTopic, known: KnownReader | None, own_ids: Set[str]) -> Task | None:
    """The task with its new observation; None where there is nothing to write."""
    task = observed.task
    before, lag = task.observation, None
    observation: dict[str, Any] = {"error": observed.problem, "refused": observed.refused}
    if observed.problem:
        observation = {**before, **observation}
    else:
        kept_fields = {k: v for k, v in before.items() if k == "told_at"}
        refused = any(i.message.startswith(SHARE_GROUPS_OFF) for i in task.indexers.all())
        observation["share_groups_supported"] = not refused
        observation["strangers"] = _strangers(observed.topic.members, own_ids) if observed.topic else []
        observation["members_unknown"] = observed.topic.members_problem if observed.topic else ""
        lag = None if known is None else record_lag_of(known, sum(i.in_flight for i in task.indexers.all()))
        observation = {**kept_fields, **observation, **_topic_observation(observed.topic, lag, before)}
    task.observation = {**observation, "observed_at": timezone.now().isoformat()}
    if (lag is not None and lag.has_changed) or any(observation.get(n) != before.get(n) for n in _SHOWN_FIELDS):
        notify_task_changed(task)
    return task if _is_news(task.observation, before) else None


def _is_news(observation: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Also what has not changed for a while: pages show when it was seen."""
    seen_at = before.get("observed_at")
    if seen_at is None or {**observation, "observed_at": seen_at} != before:
        return True
    return datetime.fromisoformat(observation["observed_at"]) - datetime.fromisoformat(seen_at) >= SAME_AGAIN_AFTER


def _own_ids(topics: Sequence[kafka.TopicOffsets]) -> set[str]:
    """Ids of tasks, among the names of the members of their consumer groups."""
    names = {_task_of(client) for topic in topics for client, _ in topic.members}
    return set(Task.objects.filter(pk__in=names).values_list("pk", flat=True)) if names else set()


def _task_of(client: str) -> str:
    return client.rpartition("-")[0]


def _strangers(members: Iterable[tuple[str, str]], own_ids: Set[str]) -> list[str]:
    """Members of its consumer group that are no indexers: their partitions are not read here."""
    return sorted({f"{client} at {host}" for client, host in members if _task_of(client) not in own_ids})


def _topic_observation(
    topic: kafka.TopicOffsets | None, lag: TopicLag | None, before: Mapping[str, Any]
) -> dict[str, Any]:
    if topic is None or lag is None:
        return {
            "topic_exists": False,
            "partitions": 0,
            "end_offsets": {},
            "log_start_offsets": {},
            "settled": 0,
            "lag": 0,
        }
    is_same = before.get("topic_id") == topic.topic_id  # one made again is another
    lost, seen = (before.get(name, {}) if is_same else {} for name in ("taken", "unsettled_seen"))
    return {
        "topic_exists": True,
        "topic_id": topic.topic_id,
        "partitions": len(topic.end_offsets),
        "end_offsets": {str(p): o for p, o in topic.end_offsets.items()},
        "log_start_offsets": {str(p): o for p, o in topic.start_offsets.items()},
        "settled": lag.settled,
        "lag": lag.total,
        "passed": lag.passed,
        "undecided": lag.uncommitted,
        "unsettled": {
            str(p): [list(r) for r in unsettled.ranges] for p, unsettled in lag.partitions.items() if unsettled.ranges
        },
        "taken": {
            str(p): at
            for p, unsettled in lag.partitions.items()
            if (at := _lost_to_retention(unsettled, topic.start_offsets[p], lost.get(str(p))))
        },
        "unsettled_seen": {
            str(p): _unsettled_seen(unsettled, seen.get(str(p)))
            for p, unsettled in lag.partitions.items()
            if unsettled.ranges
        },
    }


def _unsettled_seen(unsettled: Unsettled, before: list[Any] | None) -> list[Any]:
    """Up to where offsets are unsettled, and when that was seen: what lies above it has come since.

    ``before``: what an earlier look found. It stays until all below it is settled.
    """
    is_open = before is not None and unsettled.ranges[0][0] < before[0]
    return before if before and is_open else [unsettled.ranges[-1][1], timezone.now().isoformat()]


def _lost_to_retention(unsettled: Unsettled, log_start: int, before: list[Any] | None) -> list[Any] | None:
    """Where the log began, and when that was seen, if retention took unsettled offsets below: these never come.

    ``before``: what an earlier look found. It stays until all below it is settled.
    """
    if not unsettled.ranges or unsettled.ranges[0][0] >= log_start:
        return None
    return before if before and unsettled.ranges[0][0] < before[0] else [log_start, timezone.now().isoformat()]


def _finish_if_idle(task: Task, spec: TaskSpec) -> None:
    idle_config = spec.spec.ioConfig.idleConfig
    since, has_read = _last_active(task)
    if idle_config.enabled is False or timezone.now() - since < idle_config.idle_timeout(has_read):
        return
    observation = task.observation
    if observation.get("topic_exists") is False:
        lifecycle.end_task(task, error=f"Topic {spec.spec.ioConfig.topic!r} does not exist.")
    elif observation.get("undecided"):
        return  # a transaction is open: its records are yet to come
    elif not observation.get("error") and _all_reading(task) and not _records_left(task, spec):
        lifecycle.set_goal(task, Goal.FINISH)


def _last_active(task: Task) -> tuple[datetime, bool]:
    """When it last began to read, held a record or published one, and whether it has read any.

    What came and was published between two heartbeats is no activity to these, but its indexers' counters have it.
    """
    fences = IndexerFence.objects.filter(task_id=task.pk)
    latest = fences.aggregate(Max("started_at"), Max("last_publish_at"), Max("polled"))
    moments = (task.started_at, task.last_activity_at, latest["started_at__max"], latest["last_publish_at__max"])
    return max(at for at in moments if at is not None), bool(task.last_activity_at or latest["polled__max"])


def _all_reading(task: Task) -> bool:
    states = [i.state for i in task.indexers.all()]
    return bool(states) and all(s == "reading" for s in states)


def _records_left(task: Task, spec: TaskSpec) -> bool:
    """Whether an unsettled offset holds a record: transaction markers and the like are no records."""
    try:
        properties, io_config = properties_of(task), spec.spec.ioConfig
        return any(
            kafka.holds_records(properties, io_config.topic, int(partition), start, end, io_config.isolation)
            for partition, ranges in task.observation.get("unsettled", {}).items()
            for start, end in ranges
        )
    except (kafka.KafkaProblem, SecretsLost) as problem:
        logger.warning("task %s: can't observed for records left: %s", task.pk, problem)
        return True


def _enforce_stop(task: Task) -> None:
    """A task that was told to end long ago is ended: what it holds is delivered again."""
    if task.observation.get("told_at") is None:
        task.observation["told_at"] = timezone.now().isoformat()
        Task.objects.filter(pk=task.pk).update(observation=task.observation)
    elif timezone.now() - datetime.fromisoformat(task.observation["told_at"]) > stop_timeout(task):
        launcher.kill(task.pk)
        lifecycle.end_task(task, error="The application did not end after the stop, so Headgate killed it.")


def stop_timeout(task: Task) -> timedelta:
    """How long it may take to end once it was told to."""
    return parse_task_spec(task.spec).spec.ioConfig.completionTimeout


def _relaunch_forgotten(hand_over: Callable[[Task], None]) -> None:
    """What waits and need not is handed to the launcher again (it launches once)."""
    for task in capacity.launchable(forgotten_since=timezone.now() - timedelta(seconds=30)):
        hand_over(task)
