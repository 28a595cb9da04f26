"""The iterations of the run loop: each supervisor asks Kafka for its topic, or topics, once a ``period``.

Kafka is asked outside of every transaction and lock, for many supervisors side by side: one that does not answer holds
up no other. What came of it is noted when the supervisor's row is locked again, together with what is decided then.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import cast

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from controlplane.common.parallel import ask_all
from controlplane.connections import kafka
from controlplane.connections.named_connections import NoSuchConnection, kafka_properties
from controlplane.connections.positions import resolve_in
from controlplane.connections.share_group_config import share_group_config
from controlplane.sources.models import SourceEvent
from controlplane.sources.spec_sources import sources_of
from controlplane.supervisors import idleness
from controlplane.supervisors.decide import Runs
from controlplane.supervisors.decide_topics import matching
from controlplane.supervisors.group_config import compare_settings
from controlplane.supervisors.models import Supervisor, SupervisorQuerySet, start_accepted_at
from controlplane.supervisors.states import Detail
from controlplane.tasks.models import Indexer, Status
from controlplane.tasks.start_offsets import TopicStart, keeps_start, store_start_offsets
from ingestion.specs.inputs.group_config import Isolation
from ingestion.specs.inputs.io_config import IOConfig, ShareGroupIOConfig
from ingestion.specs.kafka.positions import Position
from ingestion.specs.kafka.providers import Value

GROUP_EVERY = timedelta(minutes=5)
RETRY_AFTER = timedelta(seconds=10)  # a first question that nobody came back from is asked again
MESSAGE_LENGTH = 1000
STACK_LENGTH = 8000


class TopicMissing(Exception):
    """Kafka answers, and has no such topic."""


@dataclass(frozen=True)
class Question:
    """What to ask for a supervisor. Properties hold secrets: never shown."""

    supervisor_id: str
    version: int
    topic: str
    properties: Mapping[str, Value]
    pattern: str | None = None  # which topics there are that match is asked, instead of one topic
    # Why it can't be asked.
    problem: Exception | None = None
    start: Position | None = None  # where its topic is to be begun, if that is to be kept
    may_idle: bool = False  # where the topic ends says whether it is idle
    isolation: Isolation = "read_committed"
    rights_in: str | None = None  # the group (empty: none) in which it is to be allowed to read; None: not asked
    group: str = ""  # the share group whose configuration is to be looked at, if it is
    group_settings: Mapping[str, str] = field(default_factory=dict)  # as its spec has them


@dataclass(frozen=True)
class TopicAnswer:
    """What came of it: how many partitions the topic has (None: there is no such topic), or why that is not known."""

    supervisor_id: str
    version: int
    partitions: int | None = None
    problem: Exception | None = None
    topics: list[str] | None = None  # that match the pattern, by name, if there is one
    topic: kafka.TopicOffsets | None = None  # where it ends, if that was asked
    start_offsets: dict[int, int] | None = None  # where reading is to begin, by partition, if that is to be kept
    # In what the group's configuration differs from the spec; None if that was not asked, or not answered.
    drift: list[str] | None = None


def first_start(supervisor: Supervisor) -> datetime:
    """When its first task may start."""
    return supervisor.created_at + supervisor.io_config.startDelay


def due_supervisors() -> SupervisorQuerySet:
    """Supervisors whose period is over, or which began anew."""
    active = Supervisor.objects.filter(suspended=False, terminated_at=None).exclude(detailed_state=Detail.COMPLETED)
    # Those that answered last come first: of the others one asks for long.
    active = active.select_related("datasource")  # its team's connections are asked
    return active.filter(Q(look_due_at=None) | Q(look_due_at__lte=timezone.now())).order_by("failed_runs", "id")


def claim_questions(supervisors: SupervisorQuerySet) -> list[Question]:
    """What to ask for these, each for one caller only; left out is what has another.

    Kafka is asked at once, also while the first task waits for its start delay: what comes meanwhile is to be read.
    """
    now = timezone.now()
    questions = []
    for supervisor in supervisors.with_current():
        start = first_start(supervisor)
        waits = now < start
        period = supervisor.io_config.period
        # The row count decides who asks.
        row = Supervisor.objects.filter(pk=supervisor.pk, look_due_at=supervisor.look_due_at)
        if row.update(look_due_at=now + (period if _has_asked(supervisor) else min(period, RETRY_AFTER))):
            pending = Supervisor.objects.filter(pk=supervisor.pk, detailed_state=Detail.PENDING)
            if waits:
                pending.update(next_start_at=start)
            else:
                pending.update(detailed_state=Detail.CONNECTING_TO_STREAM)
            questions.append(question_for(supervisor))
    return questions


def _has_asked(supervisor: Supervisor) -> bool:
    return supervisor.contacted_at is not None or supervisor.failed_runs > 0


def question_for(supervisor: Supervisor) -> Question:
    """What to ask of the topic that its spec names, or of those that it has a pattern of."""
    version = supervisor.current
    io_config = version.io_config
    problem: Exception | None = io_config.problem
    properties: dict[str, Value] = {}
    try:
        properties = kafka_properties(supervisor.datasource.team_id, io_config, version.secrets)
    except Exception as error:  # whatever it is, it is this supervisor's problem and not the others'
        problem = error
    begins = supervisor.partitions is None and keeps_start(io_config)
    topic_question = Question(
        supervisor.pk, version.version, io_config.topic, properties, io_config.topicPattern, problem
    )
    if topic_question.pattern is not None:
        return topic_question
    topic_question = replace(
        topic_question,
        start=io_config.start.at(start_accepted_at(version)) if begins else None,
        isolation=io_config.isolation,
        may_idle=io_config.idle_after is not None,
        rights_in=_group_to_join(supervisor, io_config) if _replaces_another(supervisor) else None,
    )
    if not _looks_at_group(supervisor, io_config):
        return topic_question
    Supervisor.objects.filter(pk=supervisor.pk).update(group_looked_at=timezone.now())
    group_io_config = cast("ShareGroupIOConfig", io_config)
    group_settings = group_io_config.counted_from(start_accepted_at(version)).group_settings(timezone.now())
    return replace(topic_question, group=group_io_config.groupId, group_settings=group_settings)


def _replaces_another(supervisor: Supervisor) -> bool:
    """Whether an older version of its spec is in force: what reads by that must not end for one that may not read."""
    return supervisor.in_force not in (None, supervisor.version)


def _group_to_join(supervisor: Supervisor, io_config: IOConfig) -> str:
    return "" if io_config.group is None else io_config.group or supervisor.pk


def _looks_at_group(supervisor: Supervisor, io_config: IOConfig) -> bool:
    """Now and then, once a task of this version reads: it has set the configuration when it started."""
    looked_at = supervisor.group_looked_at
    if not io_config.traits.in_share_group or (looked_at and timezone.now() - looked_at < GROUP_EVERY):
        return False
    reading = Indexer.objects.filter(task__supervisor_id=supervisor.pk, task__spec_version=supervisor.version)
    return reading.filter(task__status=Status.RUNNING, state="reading").exists()


def answers(questions: list[Question]) -> Iterator[TopicAnswer]:
    """Each as it comes in."""
    for topic_question, answer in ask_all(_ask, questions):
        yield (
            TopicAnswer(topic_question.supervisor_id, topic_question.version, problem=answer)
            if isinstance(answer, Exception)
            else answer
        )


def _ask(question: Question) -> TopicAnswer:
    if question.problem is not None:
        raise question.problem
    if question.pattern is not None:
        topics = matching(question.pattern, kafka.topic_names(question.properties))
        return TopicAnswer(question.supervisor_id, question.version, topics=topics)
    answer = TopicAnswer(question.supervisor_id, question.version, drift=_drift(question))
    if question.start is not None or question.may_idle:
        answer = _with_offsets(answer, question)
    else:
        answer = replace(answer, partitions=kafka.partition_count(question.properties, question.topic))
    if question.rights_in is not None and answer.partitions is not None:
        kafka.check_rights(question.properties, question.topic, question.rights_in)
    return answer


def _with_offsets(answer: TopicAnswer, question: Question) -> TopicAnswer:
    topic = kafka.topic_offsets(question.properties, question.topic)
    if topic is None:
        return answer
    start_offsets = None
    if question.start is not None:
        resolved = resolve_in(topic, question.properties, question.topic, question.start, question.isolation)
        start_offsets = resolved.offsets
    by_isolation = topic.for_isolation(question.isolation)
    return replace(answer, partitions=len(topic.end_offsets), topic=by_isolation, start_offsets=start_offsets)


def _drift(question: Question) -> list[str] | None:
    """Who may not describe the group reads it all the same."""
    if not question.group:
        return None
    try:
        broker_config = share_group_config(question.properties, question.topic, question.group)
    except kafka.KafkaProblem:
        return None
    return [
        setting.difference for setting in compare_settings(question.group_settings, broker_config) if setting.drifted
    ]


def apply_answer(supervisor: Supervisor, answer: TopicAnswer) -> None:
    """Count an iteration on the supervisor, whose row is locked; one of an older spec says nothing of this one."""
    if answer.version != supervisor.version:
        return
    if answer.problem is not None:
        count_failure(supervisor, answer.problem)
        return
    supervisor.contacted_at = timezone.now()
    if answer.drift is not None:
        supervisor.group_drift = answer.drift
    if answer.topics is not None:
        supervisor.failed_runs = 0
        supervisor.good_runs += 1
        return
    if answer.partitions is None:
        topic = supervisor.io_config.topic
        supervisor.topic_missed = topic
        count_failure(
            supervisor, TopicMissing(f"There is no topic {topic!r}, or this login has no permission to see it.")
        )
        return
    supervisor.failed_runs = 0
    supervisor.good_runs += 1
    if answer.topic is not None and answer.start_offsets is not None:
        was_missing = supervisor.topic_missed == supervisor.io_config.topic
        start = TopicStart(answer.topic, answer.start_offsets)
        store_start_offsets(supervisor.datasource, supervisor.io_config, supervisor.owner, start, was_missing)
        supervisor.topic_missed = ""
    update_partitions(supervisor, answer.partitions, fewer=True)
    if answer.topic is not None:
        idleness.update_idleness(supervisor, answer.topic)


def count_failure(supervisor: Supervisor, problem: Exception) -> None:
    """Count a failed iteration and keep its error, as many of them as are to be kept."""
    supervisor.failed_runs += 1
    supervisor.good_runs = 0
    stack = (
        "".join(traceback.format_exception(problem))[-STACK_LENGTH:] if settings.SUPERVISOR_STORE_STACK_TRACE else ""
    )
    event = {
        "at": timezone.now().isoformat(),
        "class": type(problem).__name__,
        "message": str(problem)[:MESSAGE_LENGTH],
        "stream": isinstance(problem, kafka.KafkaProblem | TopicMissing | NoSuchConnection),
        "stack": stack,
    }
    supervisor.run_errors = [event, *supervisor.run_errors][: settings.SUPERVISOR_MAX_STORED_EXCEPTION_EVENTS]


def runs_of(supervisor: Supervisor) -> Runs:
    """Its iterations so far."""
    last = supervisor.run_errors[0] if supervisor.run_errors else {}
    return Runs(
        failed=supervisor.failed_runs,
        good=supervisor.good_runs,
        stream_failed=bool(last.get("stream")),
        connected=supervisor.contacted_at is not None,
    )


def update_partitions(supervisor: Supervisor, count: int, fewer: bool = False) -> None:
    """Keep how many partitions the topic has; more than before are an event. ``fewer``: whether less is believed."""
    before = supervisor.partitions
    if before == count or (before is not None and count < before and not fewer):
        return
    supervisor.partitions = count
    if before is None or count < before:
        return
    io_config = supervisor.io_config
    source = sources_of(supervisor.datasource_id, io_config, supervisor.owner).filter(current=True).first()
    SourceEvent.objects.create(
        datasource_id=supervisor.datasource_id,
        source=source,
        kind=SourceEvent.Kind.PARTITIONS_ADDED,
        detail=f"Topic {io_config.topic!r} has {count} partitions; it had {before}. The new ones are read too.",
    )
