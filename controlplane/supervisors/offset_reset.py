"""Stored offsets moved, of supervisors that have some, and an early handoff, of any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from django.db import transaction

from controlplane.common.errors import Conflict, FieldError, HeadgateError, InvalidInput
from controlplane.common.parallel import ask_all
from controlplane.connections import kafka
from controlplane.connections.named_connections import kafka_properties
from controlplane.connections.positions import ResolvedPosition, resolve
from controlplane.connections.secrets import SecretsLost
from controlplane.publishing import claims
from controlplane.publishing.models import MAX_OFFSET, MAX_PARTITION, ProgressKey
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import TOPIC_SEPARATOR, sources_of
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.services import ask_to_hand_off, locked_children, record_action
from controlplane.tasks.models import Task
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs.inputs.group_config import Isolation
from ingestion.specs.kafka.positions import Position
from ingestion.specs.kafka.providers import Value
from ingestion.specs.offsets import Range


def reset(*, user: User, supervisor: Supervisor) -> Supervisor:
    """Forget all stored offsets: reading begins anew, where ``useEarliestOffset`` says.

    Records may be skipped, or stored a second time. Raises ``NotAllowed``, ``Conflict``, ``InvalidInput``.
    """
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    with transaction.atomic():
        for reader in readers(supervisor):
            move_offsets(user, reader, None)
    return supervisor


def readers(supervisor: Supervisor) -> list[Supervisor]:
    """Itself; with a pattern of topics those that have read one for it, locked. Raises ``Conflict`` without any."""
    if supervisor.terminated_at is not None:
        raise Conflict(f"Supervisor {supervisor.pk} is terminated.")
    if supervisor.fills_id is not None:
        raise backfill_conflict(supervisor)
    if supervisor.io_config.topicPattern is None:
        return [supervisor]
    with transaction.atomic():
        children = [child for child in locked_children(_lock(supervisor)) if _has_read(child)]
    if not children:
        raise Conflict("No offsets are stored: this supervisor has not read its topics yet.")
    return children


def backfill_conflict(backfill: Supervisor) -> Conflict:
    """It has no stored offsets of its own."""
    return Conflict(f"{backfill.pk} is a backfill, without stored offsets of its own. Do this to {backfill.fills_id}.")


@dataclass(frozen=True)
class TopicQuestion:
    """A question to Kafka, asked without the database."""

    properties: Mapping[str, Value] = field(repr=False)
    topic: str
    isolation: Isolation

    def log(self) -> kafka.TopicOffsets | None:
        """None where there is no such topic. Raises ``KafkaProblem``."""
        return kafka.topic_offsets(self.properties, self.topic)

    def resolve(self, position: Position) -> ResolvedPosition | None:
        """Where a position lies in it; likewise."""
        return resolve(self.properties, self.topic, position, self.isolation)


def topic_question(supervisor: Supervisor) -> TopicQuestion:
    """Of the topic that the supervisor reads. Raises ``SecretsLost``, and what a connection that is gone raises."""
    io_config = supervisor.io_config
    properties = kafka_properties(supervisor.datasource.team_id, io_config, supervisor.current.secrets)
    return TopicQuestion(properties, io_config.topic, io_config.isolation)


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
    wrong = [p for p, o in offsets.items() if not (0 <= o <= MAX_OFFSET and 0 <= p <= MAX_PARTITION)]
    if wrong or not offsets:
        message = f"give at least one partition, each with an offset of 0 to {MAX_OFFSET}"
        raise InvalidInput("The offsets can't be stored.", [FieldError("/partitions", message, "partitions")])
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    faults = offset_faults({"/partitions": (supervisor, offsets)})
    if faults:
        raise InvalidInput("The offsets can't be stored.", faults)
    return move_offsets(user, supervisor, offsets)


def offset_faults(chosen: Mapping[str, tuple[Supervisor, Mapping[int, int]]]) -> list[FieldError]:
    """By what was last seen of the logs; where these do not have the offsets, Kafka is asked, of all topics at once.

    It may be away: then by that. ``chosen``: by the JSON pointer to the offsets in the request.
    """
    spans = {pointer: _spans_seen(supervisor) for pointer, (supervisor, _) in chosen.items()}
    questions = []
    for pointer, (supervisor, offsets) in chosen.items():
        seen = spans[pointer]
        if seen is not None and not all(p in seen and seen[p][0] <= o <= seen[p][1] for p, o in offsets.items()):
            try:
                questions.append((pointer, topic_question(supervisor)))
            except (SecretsLost, HeadgateError):
                continue
    answers = {pointer: answer for (pointer, _), answer in ask_all(lambda asked: asked[1].log(), questions)}
    return [
        fault
        for pointer, (supervisor, offsets) in chosen.items()
        for fault in _faults_in(supervisor.io_config.topic, offsets, spans[pointer], answers.get(pointer), pointer)
    ]


def _spans_seen(supervisor: Supervisor) -> dict[int, Range] | None:
    """By partition, what was last seen of the log; None where nothing can be reset at all, which is said then."""
    source = _source(supervisor)
    if source is None or not supervisor.io_config.traits.keeps_offsets or supervisor.terminated_at is not None:
        return None
    keys = ProgressKey.objects.filter(source=source).exclude(end_offset=None)
    rows = keys.values_list("partition", "log_start_offset", "end_offset")
    return {p: (start or 0, end or 0) for p, start, end in rows}


def _faults_in(
    topic: str,
    offsets: Mapping[int, int],
    seen: Mapping[int, Range] | None,
    answer: kafka.TopicOffsets | Exception | None,
    pointer: str,
) -> Iterator[FieldError]:
    if seen is None:
        return
    if isinstance(answer, Exception) and not isinstance(answer, kafka.KafkaProblem | HeadgateError):
        raise answer
    log = answer if isinstance(answer, kafka.TopicOffsets) else None
    spans = seen if log is None else {p: (log.start_offsets[p], end) for p, end in log.log_ends.items()}
    for partition, offset in sorted(offsets.items()):
        low, high = spans.get(partition, (0, MAX_OFFSET))
        if log is not None and partition not in spans:
            message = f"topic {topic} has no partition {partition}; it has {len(spans)}, counted from 0"
        elif not low <= offset <= high:
            as_of = "" if log is not None else " at the last check"
            message = f"partition {partition} held the offsets from {low:,} to {high:,}{as_of}, not {offset:,}"
        else:
            continue
        path = f"{pointer}/{partition}"
        yield FieldError(path, message, path[1:].replace("/", "."))


def move_offsets(
    user: User, supervisor: Supervisor, offsets: Mapping[int, int] | None, position: str = ""
) -> Supervisor:
    """Of one topic; None: forget them. ``position``: what was asked for, where the offsets come from one."""
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    with transaction.atomic():
        locked = _lock(supervisor)
        if locked.fills_id is not None:
            raise backfill_conflict(locked)
        source = movable_source(locked)
        tasks = Task.objects.active().ingesting().filter(supervisor_id=locked.pk).values_list("pk", flat=True)
        claims.reset_stored_offsets(source, list(tasks), offsets, str(user), position)
        locked.wake()
        locked.save(update_fields=["detailed_state", "ends_seen", "inactive_since", "idle_since", "calm_until"])
        Task.objects.filter(pk__in=list(tasks)).update(topic_missed=False)  # it is there, and "latest" means now
        offsets_json = None if offsets is None else {str(p): o for p, o in sorted(offsets.items())}
        asked = {"position": position} if position else {}
        record_action(user, locked, "reset", topic=source.topic, offsets=offsets_json, **asked)
    return supervisor


def movable_source(supervisor: Supervisor) -> Source:
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
