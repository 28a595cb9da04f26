"""How far a supervisor is behind its topic: now, by partition, and over time."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone

from controlplane.common.changes import Change, notify_pages
from controlplane.common.database import try_advisory_lock
from controlplane.common.parallel import ask_all
from controlplane.connections import kafka
from controlplane.lag.series import LagSeries, lag_series
from controlplane.lag.topic_lag import record_lag
from controlplane.publishing.selectors.progress import PartitionProgress, progress
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import source_key, sources_of
from controlplane.supervisors.models import Supervisor, SupervisorQuerySet
from controlplane.supervisors.selectors import current_tasks
from controlplane.supervisors.topic_checks import Question, question_for
from controlplane.tasks.models import Status, Task

logger = logging.getLogger(__name__)
ROUND_LIMIT_S = 8.0  # a round; what was not looked at then is so in another
STALE_AFTER = timedelta(seconds=60)
_MAX_PROBLEMS = 3
_WAITING_LOCK = 0x4C414753


@dataclass(frozen=True)
class LagNow:
    """How far a supervisor is behind, as far as that was seen."""

    # Offsets that are not settled, as far as they were seen at ``observed_at``; None if they never were. They include
    # what lies behind an open transaction, which no partition's lag does: so it is what the series has.
    lag: int | None
    observed_at: datetime | None
    problem: str  # why they are not known, or not as of now; empty when they are
    in_flight: int  # records that indexers hold
    partitions: list[PartitionProgress]  # by number


def lag_now(supervisor: Supervisor) -> LagNow:
    """Of the topic that is read now; one that was deleted does not count."""
    if supervisor.io_config.topicPattern is not None:
        return _lag_of_topics(supervisor)
    tasks = current_tasks(supervisor)
    source = source_read(supervisor)
    partitions = progress(source) if source else []
    observed_at = source.looked_at if source else None
    return LagNow(
        lag=sum(p.lag or 0 for p in partitions) + source.undecided if source and observed_at else None,
        observed_at=observed_at,
        problem=_problem(supervisor, tasks[0] if tasks else None, observed_at),
        in_flight=sum(i.in_flight for t in tasks for i in t.indexers.all()),
        partitions=partitions,
    )


def active_children(supervisor: Supervisor) -> list[Supervisor]:
    """Who reads the topics of its pattern for it, by topic."""
    return (
        supervisor.children.filter(terminated_at=None).select_related("datasource__team").order_by("pk").with_current()
    )


def _lag_of_topics(supervisor: Supervisor) -> LagNow:
    """Of all topics together, with partitions of none: these are at the supervisors of their topics."""
    lags = {child.io_config.topic: lag_now(child) for child in active_children(supervisor)}
    known_lags = [lag.lag for lag in lags.values() if lag.lag is not None]
    times = [lag.observed_at for lag in lags.values() if lag.observed_at is not None]
    problems = [f"{topic}: {lag.problem}" for topic, lag in lags.items() if lag.problem]
    return LagNow(
        lag=sum(known_lags) if known_lags else None,
        observed_at=min(times, default=None),
        problem=" ".join(problems[:_MAX_PROBLEMS]) if lags else "No topic that matches its pattern is read yet.",
        in_flight=sum(lag.in_flight for lag in lags.values()),
        partitions=[],
    )


def source_read(supervisor: Supervisor) -> Source | None:
    """What it reads now; None before its first task has seen the topic."""
    current_sources = sources_read(supervisor).filter(current=True)
    return current_sources.order_by(F("looked_at").desc(nulls_last=True), "-id").first()


def lag_over_time(supervisor: Supervisor, **window: Any) -> LagSeries:
    """See ``lag_series``. Raises ``InvalidInput``."""
    return lag_series(sources_read(supervisor), **window)


def sources_read(supervisor: Supervisor) -> QuerySet[Source]:
    """What its current spec reads, topics that are gone too."""
    if supervisor.io_config.topicPattern is not None:
        topics = [child.io_config.topic for child in active_children(supervisor)]
        key = source_key(supervisor.io_config, supervisor.owner)
        return Source.objects.filter(datasource=supervisor.datasource_id, **key, topic__in=topics)
    return sources_of(supervisor.datasource_id, supervisor.io_config, supervisor.owner)


def _problem(supervisor: Supervisor, task: Task | None, observed_at: datetime | None) -> str:
    if supervisor.terminated_at is not None:
        return "It is terminated. Headgate no longer checks the topic."
    if task is not None and task.status == Status.RUNNING:
        error = task.observation.get("error")
        if error:
            return f"Kafka can't be reached: {error}"
        if task.observation.get("topic_exists") is False:
            return "There is no such topic, or this user has no permission to see it."
    elif observed_at is None:
        return "No task has run yet, so there is no progress to compare the topic with."
    if observed_at is None:
        return "Headgate has not checked the topic yet. This takes a few seconds."
    if timezone.now() - observed_at > STALE_AFTER:
        return (
            "Headgate has not checked the topic for more than a minute. Check that Kafka is reachable, and that the "
            "processes `worker` and `beat` are running."
        )
    return ""


def observe_waiting() -> None:
    """Look at the topics of supervisors none of whose tasks runs (suspended, without room, failing): they grow on.

    Those of running tasks are looked at by the watch over tasks. One caller at a time.
    """
    with try_advisory_lock(_WAITING_LOCK) as acquired:
        if not acquired:
            return
        waiting = {s.pk: s for s in _with_progress(_without_running_task())}
        questions = [question_for(s) for s in waiting.values()]
        random.shuffle(questions)  # when there is no time for all, it is not always the same ones that wait
        for topic_question, topic in _topic_answers(questions):
            supervisor = waiting[topic_question.supervisor_id]
            io_config = supervisor.io_config
            datasource = supervisor.datasource
            if record_lag(
                datasource, io_config, supervisor.owner, topic.for_isolation(io_config.isolation)
            ).has_changed:
                notify_pages(Change(team=datasource.team_id, datasource=datasource.name, supervisor=supervisor.pk))


def _without_running_task() -> SupervisorQuerySet:
    running = Task.objects.reading().filter(status=Status.RUNNING).values("supervisor_id")
    return Supervisor.objects.filter(terminated_at=None).exclude(pk__in=running).select_related("datasource")


def _with_progress(supervisors: SupervisorQuerySet) -> list[Supervisor]:
    """Those that have read their topics before: of the others there is no progress."""
    known_specs = supervisors.with_current()
    known_sources = Source.objects.filter(datasource__in={s.datasource_id for s in known_specs})
    read_keys = set(known_sources.values_list("datasource_id", "kind", "group", "topic"))
    return [
        s
        for s in known_specs
        if s.io_config.boundedStreamConfig is None
        and (s.datasource_id, *source_key(s.io_config, s.owner).values(), s.io_config.topic) in read_keys
    ]


def _topic_answers(questions: list[Question]) -> Iterator[tuple[Question, kafka.TopicOffsets]]:
    """What Kafka says of them, each as it comes in; left out is what it does not know or say, or not in time.

    Why it does not say stands on the supervisor, whose iterations ask too.
    """
    missing = {q.supervisor_id for q in questions}
    for topic_question, answer in ask_all(_topic_offsets, questions, within_s=ROUND_LIMIT_S):
        missing.discard(topic_question.supervisor_id)
        if isinstance(answer, Exception):
            logger.warning("supervisor %s: its topic's lag is not known: %s", topic_question.supervisor_id, answer)
        elif answer is not None:
            yield topic_question, answer
    if missing:
        logger.warning("topics of %s supervisors were not looked at within %s s", len(missing), ROUND_LIMIT_S)


def _topic_offsets(question: Question) -> kafka.TopicOffsets | None:
    if question.problem is not None:
        raise question.problem
    return kafka.topic_offsets(question.properties, question.topic)
