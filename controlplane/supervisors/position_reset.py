"""Stored offsets moved to a position: where it lies in each topic is shown first, and then stored as it was shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from controlplane.common.errors import Conflict, FieldError, InvalidInput, Unavailable
from controlplane.common.parallel import ask_all
from controlplane.connections.kafka import KafkaProblem
from controlplane.connections.positions import PartitionPosition, ResolvedPosition
from controlplane.publishing.models import MAX_OFFSET, MAX_PARTITION, ProgressKey
from controlplane.sources.models import Source
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.offset_reset import movable_source, move_offsets, offset_faults, readers, topic_question
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs.kafka.positions import Position

Offsets = Mapping[str, Mapping[int, int]]  # topic → partition → offset


@dataclass(frozen=True)
class PartitionReset:
    """What a reset does to one partition."""

    to: PartitionPosition
    stored: int | None  # the offset that is stored now

    @property
    def read_again(self) -> int:
        """Offsets that were read and are read once more."""
        return max(0, self._goes_on - self.to.offset)

    @property
    def skipped(self) -> int:
        """Offsets that were not read yet and will not be."""
        return max(0, self.to.offset - self._goes_on)

    @property
    def _goes_on(self) -> int:
        """Where reading goes on without a reset, within the log: a partition without an offset at its start."""
        stored = self.to.log_start if self.stored is None else self.stored
        return min(max(stored, self.to.log_start), self.to.end)


@dataclass(frozen=True)
class TopicReset:
    """What a reset does to one topic."""

    supervisor: Supervisor
    resolved: ResolvedPosition
    partitions: list[PartitionReset]

    @property
    def topic(self) -> str:
        return self.resolved.topic


@dataclass(frozen=True)
class ResetPlan:
    """What a reset to a position does, as of now."""

    asked: Position
    position: Position  # a duration is an instant here, the same for all topics
    topics: list[TopicReset]

    @property
    def offsets(self) -> dict[str, dict[int, int]]:
        """By topic, what is to be stored: ``reset_to`` does exactly that."""
        return {reset.topic: reset.resolved.offsets for reset in self.topics}

    @property
    def read_again(self) -> int:
        return sum(p.read_again for reset in self.topics for p in reset.partitions)

    @property
    def skipped(self) -> int:
        return sum(p.skipped for reset in self.topics for p in reset.partitions)

    @property
    def warnings(self) -> list[str]:
        """Of all topics, each once."""
        return list(dict.fromkeys(text for reset in self.topics for text in reset.resolved.warnings))


def plan_reset(*, user: User, supervisor: Supervisor, position: Position) -> ResetPlan:
    """What ``reset_to`` would do; nothing is changed. With a pattern of topics, to every topic that is read.

    Asks Kafka side by side; of several topics that fail the first is named. Raises as ``reset``, and ``Unavailable``
    when Kafka does not answer.
    """
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    supervisors = readers(supervisor)
    sources = [movable_source(each) for each in supervisors]
    at = position.at(timezone.now())
    questions = [(number, topic_question(each)) for number, each in enumerate(supervisors)]
    answers = {number: answer for (number, _), answer in ask_all(lambda asked: asked[1].resolve(at), questions)}
    resets = [
        _topic_reset(each, source, _checked(each, source, answers[number]))
        for number, (each, source) in enumerate(zip(supervisors, sources, strict=True))
    ]
    return ResetPlan(position, at, resets)


def reset_to(*, user: User, supervisor: Supervisor, position: Position, offsets: Offsets | None = None) -> Supervisor:
    """Set the stored offsets of every partition to a position; with a pattern of topics, of every topic that is read.

    ``offsets``: those that a plan has shown are stored as they are. None: Kafka is asked now. Raises as ``plan_reset``.
    """
    if offsets is None:
        plan = plan_reset(user=user, supervisor=supervisor, position=position)
        moves: Sequence[tuple[Supervisor, Mapping[int, int]]] = [
            (reset.supervisor, reset.resolved.offsets) for reset in plan.topics
        ]
    else:
        require(user, Action.ADMINISTER, supervisor.datasource.team)
        moves = _chosen(readers(supervisor), offsets)
    with transaction.atomic():
        for each, new_offsets in moves:
            move_offsets(user, each, new_offsets, str(position))
    return supervisor


def _checked(supervisor: Supervisor, source: Source, answer: ResolvedPosition | Exception | None) -> ResolvedPosition:
    topic = supervisor.io_config.topic
    if isinstance(answer, KafkaProblem):
        raise Unavailable(f"Kafka did not say where topic {topic!r} has this position: {answer}. Nothing was changed.")
    if isinstance(answer, Exception):
        raise answer
    if answer is None:
        raise Conflict(f"There is no topic {topic!r}, so it has no such position.")
    if answer.topic_id != source.topic_id:
        raise Conflict(
            f"Topic {topic!r} was deleted and created again, and the stored offsets are those of the old one. "
            "Reset it when a task has begun to read the new topic."
        )
    return answer


def _topic_reset(supervisor: Supervisor, source: Source, resolved: ResolvedPosition) -> TopicReset:
    stored = dict(ProgressKey.objects.filter(source=source).values_list("partition", "next_offset"))
    return TopicReset(supervisor, resolved, [PartitionReset(p, stored.get(p.partition)) for p in resolved.partitions])


def _chosen(supervisors: Sequence[Supervisor], offsets: Offsets) -> list[tuple[Supervisor, Mapping[int, int]]]:
    """Whose offsets they are. Raises ``InvalidInput`` with every fault."""
    by_topic = {each.io_config.topic: each for each in supervisors}
    wanted = {topic: chosen for topic, chosen in offsets.items() if chosen}
    faults = [
        FieldError(f"/topics/{topic}", "this supervisor has not read such a topic", f"topics.{topic}")
        for topic in wanted
        if topic not in by_topic
    ]
    faults += [
        FieldError(f"/topics/{topic}/{p}", f"must be an offset of 0 to {MAX_OFFSET}", f"topics.{topic}.{p}")
        for topic, chosen in wanted.items()
        for p, offset in chosen.items()
        if not (0 <= p <= MAX_PARTITION and 0 <= offset <= MAX_OFFSET)
    ]
    if not wanted:
        faults = [FieldError("/topics", "give the offsets of at least one topic", "topics")]
    if not faults:
        faults = offset_faults({f"/topics/{topic}": (by_topic[topic], chosen) for topic, chosen in wanted.items()})
    if faults:
        raise InvalidInput("The offsets can't be stored.", faults)
    return [(by_topic[topic], chosen) for topic, chosen in wanted.items()]
