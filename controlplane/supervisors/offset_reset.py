"""Stored offsets moved by hand, of supervisors that have some, and an early handoff, of any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from django.db import transaction

from controlplane.common.errors import Conflict, FieldError, HeadgateError, InvalidInput, Unavailable
from controlplane.common.parallel import ask_all
from controlplane.connections import kafka
from controlplane.connections.named_connections import kafka_properties
from controlplane.connections.secrets import SecretsLost
from controlplane.publishing import claims
from controlplane.publishing.models import MAX_OFFSET, ProgressKey
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import TOPIC_SEPARATOR, sources_of
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.services import ask_to_hand_off, locked_children, record_action
from controlplane.tasks.models import Task
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs.kafka.providers import Value

Position = Literal["earliest", "latest"]
_NOTHING_STORED = "No offsets are stored: this supervisor has not read its topics yet."


def reset(*, user: User, supervisor: Supervisor) -> Supervisor:
    """Forget all stored offsets: reading begins anew, where ``useEarliestOffset`` says.

    Records may be skipped, or stored a second time. Raises ``NotAllowed``, ``Conflict``, ``InvalidInput``.
    """
    if supervisor.io_config.topicPattern is None:
        return _move_offsets(user, supervisor, None)
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    with transaction.atomic():
        moved = [_move_offsets(user, child, None) for child in locked_children(_lock(supervisor)) if _has_read(child)]
    if not moved:
        raise Conflict(_NOTHING_STORED)
    return supervisor


def reset_to(*, user: User, supervisor: Supervisor, position: Position) -> Supervisor:
    """Set the stored offsets of every partition to the log's beginning, or to its end, as Kafka says them now.

    With a pattern of topics, of every topic. Raises as ``reset``, and ``Unavailable`` when Kafka does not answer.
    """
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    supervisors = [supervisor]
    if supervisor.io_config.topicPattern is not None:
        with transaction.atomic():
            supervisors = [child for child in locked_children(_lock(supervisor)) if _has_read(child)]
    if not supervisors:
        raise Conflict(_NOTHING_STORED)
    offsets = _offsets_at(supervisors, position)  # before the transaction: Kafka may be slow
    with transaction.atomic():
        for each, new_offsets in zip(supervisors, offsets, strict=True):
            _move_offsets(user, each, new_offsets)
    return supervisor


@dataclass(frozen=True)
class _TopicQuestion:
    """A question to Kafka, asked without the database."""

    properties: Mapping[str, Value]
    topic: str

    def log(self) -> kafka.TopicOffsets | None:
        """None where there is no such topic. Raises ``KafkaProblem``."""
        return kafka.topic_offsets(self.properties, self.topic)


def _offsets_at(supervisors: Sequence[Supervisor], position: Position) -> list[dict[int, int]]:
    """Of each one's topic. Kafka is asked side by side; of several that fail the first is named."""
    for each in supervisors:
        _movable_source(each)
    questions = [(number, _topic_question(each)) for number, each in enumerate(supervisors)]
    answers = {number: log for (number, _), log in ask_all(lambda question: question[1].log(), questions)}
    return [_position_offsets(each, answers[number], position) for number, each in enumerate(supervisors)]


def _position_offsets(
    supervisor: Supervisor, answer: kafka.TopicOffsets | Exception | None, position: Position
) -> dict[int, int]:
    if isinstance(answer, kafka.KafkaProblem):
        raise Unavailable(f"Kafka did not answer with the {position} offsets: {answer}. Nothing was changed.")
    if isinstance(answer, Exception):
        raise answer
    if answer is None:
        raise Conflict(f"There is no topic {supervisor.io_config.topic!r}, so it has no {position} offsets.")
    return dict(
        answer.start_offsets
        if position == "earliest"
        else answer.for_isolation(supervisor.io_config.isolation).end_offsets
    )


def _topic_question(supervisor: Supervisor) -> _TopicQuestion:
    io_config = supervisor.io_config
    properties = kafka_properties(supervisor.datasource.team_id, io_config, supervisor.current.secrets)
    return _TopicQuestion(properties, io_config.topic)


def reset_offsets(
    *, user: User, supervisor: Supervisor, offsets: Mapping[int, int], topic: str | None = None
) -> Supervisor:
    """Set some partitions' stored offsets. ``topic``: the one that is meant, if it is said. Raises as ``reset``."""
    own_topic = supervisor.io_config.topic
    if supervisor.io_config.topicPattern is not None:
        raise InvalidInput(
            f"Supervisor {supervisor.pk} reads several topics. Reset the offsets of one topic at its own supervisor, "
            f"called {supervisor.pk}{TOPIC_SEPARATOR} and the topic."
        )
    if topic not in (None, own_topic):
        raise InvalidInput(f"The supervisor reads topic {own_topic!r}, not {topic!r}.")
    wrong = [p for p, o in offsets.items() if not 0 <= o <= MAX_OFFSET or p < 0]
    if wrong or not offsets:
        message = f"give at least one partition, each with an offset of 0 to {MAX_OFFSET}"
        raise InvalidInput("The offsets can't be stored.", [FieldError("/partitions", message, "partitions")])
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    faults = _offset_faults(supervisor, offsets)
    if faults:
        raise InvalidInput("The offsets can't be stored.", faults)
    return _move_offsets(user, supervisor, offsets)


def _offset_faults(supervisor: Supervisor, offsets: Mapping[int, int]) -> list[FieldError]:
    """By what was last seen of the log; where that does not have them, Kafka is asked. It may be away: then by that."""
    source = _source(supervisor)
    if source is None or not supervisor.io_config.traits.keeps_offsets or supervisor.terminated_at is not None:
        return []  # it can't be reset at all, which is said then
    keys = ProgressKey.objects.filter(source=source).exclude(end_offset=None)
    rows = keys.values_list("partition", "log_start_offset", "end_offset")
    spans = {p: (start or 0, end or 0) for p, start, end in rows}
    if all(p in spans and spans[p][0] <= offset <= spans[p][1] for p, offset in offsets.items()):
        return []
    io_config = supervisor.io_config
    try:
        log = _topic_question(supervisor).log()
    except (kafka.KafkaProblem, SecretsLost, HeadgateError):
        log = None
    if log is not None:
        spans = {p: (log.start_offsets[p], end) for p, end in log.log_ends.items()}
    faults = []
    for partition, offset in sorted(offsets.items()):
        low, high = spans.get(partition, (0, MAX_OFFSET))
        if log is not None and partition not in spans:
            message = f"topic {io_config.topic} has no partition {partition}; it has {len(spans)}, counted from 0"
        elif not low <= offset <= high:
            as_of = "" if log is not None else " at the last check"
            message = f"partition {partition} held the offsets from {low:,} to {high:,}{as_of}, not {offset:,}"
        else:
            continue
        faults.append(FieldError(f"/partitions/{partition}", message, f"partitions.{partition}"))
    return faults


def _move_offsets(user: User, supervisor: Supervisor, offsets: Mapping[int, int] | None) -> Supervisor:
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    with transaction.atomic():
        locked = _lock(supervisor)
        source = _movable_source(locked)
        tasks = Task.objects.active().reading().filter(supervisor_id=locked.pk).values_list("pk", flat=True)
        claims.reset_stored_offsets(source, list(tasks), offsets, str(user))
        locked.wake()
        locked.save(update_fields=["ends_seen", "inactive_since", "idle_since", "calm_until"])
        Task.objects.filter(pk__in=list(tasks)).update(topic_missed=False)  # it is there, and "latest" means now
        offsets_json = None if offsets is None else {str(p): o for p, o in sorted(offsets.items())}
        record_action(user, locked, "reset", topic=source.topic, offsets=offsets_json)
    return supervisor


def _movable_source(supervisor: Supervisor) -> Source:
    """What its stored offsets are of. Raises ``InvalidInput``, ``Conflict`` where there are none to move."""
    traits = supervisor.io_config.traits
    if not traits.keeps_offsets:
        raise InvalidInput(f"Kafka keeps the position of a {traits.label}. To read again, use another groupId.")
    source = _source(supervisor)
    if source is None:
        raise Conflict("No offsets are stored: this supervisor has not read its topic yet.")
    return source


def hand_off(*, user: User, supervisor: Supervisor) -> Supervisor:
    """Let its task publish and end, with the next one up before it stops. Raises ``NotAllowed``, ``Conflict``."""
    require(user, Action.OPERATE, supervisor.datasource.team)
    with transaction.atomic():
        locked = _lock(supervisor)
        ask_to_hand_off(locked)
        record_action(user, locked, "handoff")
    return supervisor


def _source(supervisor: Supervisor) -> Source | None:
    sources = sources_of(supervisor.datasource_id, supervisor.io_config, supervisor.owner).filter(current=True)
    return sources.order_by("-id").first()


def _has_read(supervisor: Supervisor) -> bool:
    io_config = supervisor.io_config
    return sources_of(supervisor.datasource_id, io_config, supervisor.owner).filter(current=True).exists()


def _lock(supervisor: Supervisor) -> Supervisor:
    locked = Supervisor.objects.select_for_update().get(pk=supervisor.pk)
    if locked.terminated_at is not None:
        raise Conflict(f"Supervisor {locked.pk} is terminated.")
    return locked
