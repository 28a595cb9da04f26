"""The watch over tasks that have not ended, a round every two seconds.

1. One process at a time has a round; who comes meanwhile leaves it at that.
2. While heartbeats can be heard, tasks that are silent for too long have failed: their processes are killed. So have
   those whose process on this machine is gone without a last word; those that were stopped with it go on later. And
   those whose application a Spark cluster's master no longer lists.
3. The logs of applications are kept within their size.
4. Kafka is asked for the topic of each task that reads, all at once; each answer is taken up as it comes in:
   a. what the topic holds, and how much of it is not settled, is kept with the task and its source;
   b. what was quarantined since is reported;
   c. a manual task that has been idle for long enough, with nothing left to read, is told to finish;
   d. a task that was told to end, and has not in its time, is killed.
5. Teams whose quota is used up are found, and those whose is no longer.
6. What waits to be launched, and has room, is handed to the launcher once more.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max
from django.utils import timezone

from controlplane.common.database import only_one
from controlplane.common.side_by_side import answered
from controlplane.connections import kafka
from controlplane.connections.secrets import SecretsLost
from controlplane.lag.topic_lag import TopicLag, keep_lag
from controlplane.publishing.models import IndexerFence
from controlplane.publishing.offset_gaps import Unsettled
from controlplane.tasks import capacity, events, heartbeat_gaps, launcher, lifecycle, quota_use
from controlplane.tasks.change_notifications import notify_task_changed
from controlplane.tasks.models import Goal, Status, Task
from controlplane.tasks.sources import consumer_group, owner_of, properties_of
from controlplane.tasks.unlisted import REASON, unlisted
from ingestion.specs.messages.protocol import SHARE_GROUPS_OFF
from ingestion.specs.tasks.ingestion_spec import TaskSpec, parse_task_spec

logger = logging.getLogger(__name__)
LAST_WORD = timedelta(seconds=3)  # a process that ended has said so by then
_WATCH_LOCK = 0x57415443
# Of what is observed, what pages show.
_SHOWN = ("error", "topic_exists", "settled", "lag", "strangers", "members_unknown")


def watch(hand_over: Callable[[Task], None]) -> None:
    """One round over all tasks that have not ended; ``hand_over`` gives one to the launcher."""
    with only_one(_WATCH_LOCK) as won:
        if not won:
            return
        since = heartbeat_gaps.heartbeats_accepted_since()
        if since is not None:
            for task_id in lifecycle.fail_lost(since):
                _clear_away(task_id)
            _fail_dead()
        _fail_unlisted()
        for task_id in Task.objects.active().exclude(launched_at=None).values_list("pk", flat=True):
            launcher.bound_log(task_id)
        running = Task.objects.active().reading().filter(status=Status.RUNNING).select_related("datasource")
        for observed in _observed([(task, parse_task_spec(task.spec)) for task in running]):
            _watch_task(observed)
        quota_use.look()
        _relaunch_forgotten(hand_over)


def _clear_away(task_id: str) -> None:
    launcher.terminate(task_id, signal.SIGKILL)
    launcher.tidy(task_id)


def _fail_dead() -> None:
    """End what this machine's processes say is over, without waiting for the heartbeat's time."""
    quiet = timezone.now() - LAST_WORD
    for task in Task.objects.active().filter(launched_at__lt=quiet):
        if (task.last_heartbeat_at is None or task.last_heartbeat_at < quiet) and launcher.is_dead(task.pk):
            if launcher.was_stopped(task.pk):
                lifecycle.interrupt_task(task, message=_STOPPED)
            else:
                lifecycle.end_task(task, error=_dead_message(task))
            launcher.tidy(task.pk)


def _fail_unlisted() -> None:
    """Their supervisors start others. A batch task is its submitter's to start anew, as after any other loss."""
    running = {t.pk: t for t in Task.objects.active().in_pool().filter(status=Status.RUNNING)}
    for task_id in unlisted(running.keys(), "tasks"):
        _clear_away(task_id)
        task = running[task_id]
        lifecycle.end_task(task, error=f"{REASON} {lifecycle.what_is_left(task)}")


_STOPPED = "Stopped with the stack or its machine, and killed before it ended cleanly."


def _dead_message(task: Task) -> str:
    if task.last_heartbeat_at is None:
        return "The application's process ended before it reported. Its log says why."
    return f"The application's process ended without a report. {lifecycle.what_is_left(task)}"


@dataclass(frozen=True)
class ObservedTopic:
    """A task and what Kafka said of its topic: offsets, None when there is no such topic, or why it did not say."""

    task: Task
    spec: TaskSpec
    topic: kafka.TopicOffsets | None
    problem: str = ""
    refused: bool = False  # by Kafka: this login lacks a right


def _observed(tasks: list[tuple[Task, TaskSpec]]) -> Iterator[ObservedTopic]:
    """Each as it comes in."""
    for (task, spec), said in answered(_topic_of, tasks):
        topic, problem = (None, str(said)) if isinstance(said, Exception) else (said, "")
        yield ObservedTopic(task, spec, topic, problem, isinstance(said, kafka.KafkaRefuses))


def _topic_of(asked: tuple[Task, TaskSpec]) -> kafka.TopicOffsets | None:
    task, spec = asked
    topic = kafka.topic_offsets(properties_of(task), spec.spec.ioConfig.topic, consumer_group(task))
    return None if topic is None else topic.read_by(spec.spec.ioConfig.isolation)


def _watch_task(observed: ObservedTopic) -> None:
    task, spec = observed.task, observed.spec
    keep_observation(observed)
    events.report_quarantined(task)
    if task.goal == Goal.RUN and not task.supervisor_id:
        _finish_if_idle(task, spec)
    elif task.goal != Goal.RUN:
        _make_it_obey(task)


def keep_observation(observed: ObservedTopic) -> None:
    """Keep what was seen of the task's topic in the task and its progress keys."""
    task = observed.task
    before, lag = task.observation, None
    now = timezone.now().isoformat()
    seen: dict[str, Any] = {"observed_at": now, "error": observed.problem, "refused": observed.refused}
    if observed.problem:
        task.observation = {**task.observation, **seen}
    else:
        told = {k: v for k, v in task.observation.items() if k == "told_at"}
        refused = any(i.message.startswith(SHARE_GROUPS_OFF) for i in task.indexers.all())
        seen["share_groups_supported"] = not refused
        seen["strangers"] = _strangers(observed.topic.members) if observed.topic else []
        seen["members_unknown"] = observed.topic.members_unknown if observed.topic else ""
        lag = None if observed.topic is None else _keep_lag(task, observed.topic)
        task.observation = {**told, **seen, **_seen_topic(observed.topic, lag, before)}
    Task.objects.filter(pk=task.pk).update(observation=task.observation)
    if (lag is not None and lag.moves) or any(task.observation.get(name) != before.get(name) for name in _SHOWN):
        notify_task_changed(task)


def _strangers(members: Iterable[tuple[str, str]]) -> list[str]:
    """Members of its consumer group that are no indexers: their partitions are not read here."""
    tasks = {client: client.rpartition("-")[0] for client, _ in members}
    ours = set(Task.objects.filter(pk__in=set(tasks.values())).values_list("pk", flat=True)) if tasks else set()
    return sorted({f"{client} at {host}" for client, host in members if tasks[client] not in ours})


def _keep_lag(task: Task, topic: kafka.TopicOffsets) -> TopicLag:
    in_flight = sum(i.in_flight for i in task.indexers.all())
    return keep_lag(task.datasource_id, task.io_config, owner_of(task), topic, in_flight)


def _seen_topic(topic: kafka.TopicOffsets | None, lag: TopicLag | None, before: Mapping[str, Any]) -> dict[str, Any]:
    if topic is None or lag is None:
        return {
            "topic_exists": False,
            "partitions": 0,
            "end_offsets": {},
            "log_start_offsets": {},
            "settled": 0,
            "lag": 0,
        }
    taken = before.get("taken", {}) if before.get("topic_id") == topic.topic_id else {}  # one made again is another
    return {
        "topic_exists": True,
        "topic_id": topic.topic_id,
        "partitions": len(topic.ends),
        "end_offsets": {str(p): o for p, o in topic.ends.items()},
        "log_start_offsets": {str(p): o for p, o in topic.starts.items()},
        "settled": lag.settled,
        "lag": lag.total,
        "undecided": lag.undecided,
        "unsettled": {str(p): [list(r) for r in of.ranges] for p, of in lag.partitions.items() if of.ranges},
        "taken": {
            str(p): at for p, of in lag.partitions.items() if (at := _taken(of, topic.starts[p], taken.get(str(p))))
        },
    }


def _taken(of: Unsettled, log_start: int, before: list[Any] | None) -> list[Any] | None:
    """Where the log began, and when that was seen, if retention took unsettled offsets below: these never come.

    ``before``: what an earlier look found. It stays until all below it is settled.
    """
    if not of.ranges or of.ranges[0][0] >= log_start:
        return None
    return before if before and of.ranges[0][0] < before[0] else [log_start, timezone.now().isoformat()]


def _finish_if_idle(task: Task, spec: TaskSpec) -> None:
    idle = spec.spec.ioConfig.idleConfig
    since, has_read = _last_active(task)
    if idle.enabled is False or timezone.now() - since < idle.patience(has_read):
        return
    seen = task.observation
    if seen.get("topic_exists") is False:
        lifecycle.end_task(task, error=f"Topic {spec.spec.ioConfig.topic!r} does not exist.")
    elif seen.get("undecided"):
        return  # a transaction is open: its records are yet to come
    elif not seen.get("error") and _all_reading(task) and not _records_left(task, spec):
        lifecycle.set_goal(task, Goal.FINISH)


def _last_active(task: Task) -> tuple[datetime, bool]:
    """When it last began to read, held a record or published one, and whether it has read any.

    What came and was published between two heartbeats is no activity to these, but its indexers' counters have it.
    """
    fences = IndexerFence.objects.filter(task_id=task.pk)
    seen = fences.aggregate(Max("started_at"), Max("last_publish_at"), Max("polled"))
    moments = (task.started_at, task.last_activity_at, seen["started_at__max"], seen["last_publish_at__max"])
    return max(at for at in moments if at is not None), bool(task.last_activity_at or seen["polled__max"])


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


def _make_it_obey(task: Task) -> None:
    """A task that was told to end long ago is ended: what it holds is delivered again."""
    if task.observation.get("told_at") is None:
        task.observation["told_at"] = timezone.now().isoformat()
        Task.objects.filter(pk=task.pk).update(observation=task.observation)
    elif timezone.now() - datetime.fromisoformat(task.observation["told_at"]) > patience(task):
        _clear_away(task.pk)
        lifecycle.end_task(task, error="The application did not end after the stop, so Headgate killed it.")


def patience(task: Task) -> timedelta:
    """How long it may take to end once it was told to."""
    return parse_task_spec(task.spec).spec.ioConfig.completionTimeout


def _relaunch_forgotten(hand_over: Callable[[Task], None]) -> None:
    """What waits and need not is handed to the launcher again (it launches once)."""
    for task in capacity.launchable(forgotten_since=timezone.now() - timedelta(seconds=30)):
        hand_over(task)
