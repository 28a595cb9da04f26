"""The bounds of a bounded read, when it is submitted: Kafka is asked, what it can't read is refused, by its place.

Positions become offsets, and the topic's id is kept: later tasks of the same spec read exactly that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from django.db import transaction

from controlplane.common.errors import InvalidInput, NotAllowed, Unavailable
from controlplane.connections import kafka, positions
from controlplane.connections.admission import Fault, raise_faults
from controlplane.datasources.models import Datasource
from controlplane.datasources.services import datasource_for_ingestion
from controlplane.publishing.offset_gaps import extents, unsettled
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import sources_of
from controlplane.teams.models import User
from controlplane.teams.permissions import Action
from ingestion.specs.inputs.io_config import IOConfig
from ingestion.specs.kafka.positions import Position
from ingestion.specs.kafka.providers import Value
from ingestion.specs.tasks.ingestion_spec import SupervisorSpec, TaskSpec

_FIELD = "boundedStreamConfig"
_START, _END = "startSequenceNumbers", "endSequenceNumbers"
Spec = TypeVar("Spec", TaskSpec, SupervisorSpec)


def with_offsets(
    *,
    user: User,
    document: Any,
    spec: Spec,
    team_name: str | None,
    action: Action,
    properties: Callable[[], Mapping[str, Value]],
) -> Spec:
    """The spec with the offsets that it reads, and its topic's id. One without bounds is as it was.

    ``properties``: by which Kafka is reached, once ``user`` may submit it. Blocks for seconds. Raises ``InvalidInput``
    with every fault, ``NotAllowed``, ``Conflict``, ``Unavailable``.
    """
    io_config = spec.spec.ioConfig
    bounds = io_config.boundedStreamConfig
    if bounds is None:
        return spec
    with transaction.atomic():  # Kafka is asked for those alone who may submit it
        datasource_for_ingestion(user=user, name=spec.datasource, team_name=team_name, action=action)
        transaction.set_rollback(True)
    reached = properties()
    topic = _topic(reached, io_config)
    if bounds.topicId not in (None, topic.topic_id):
        was = f"topic {io_config.topic!r} was deleted and recreated: its id was {bounds.topicId}"
        message = f"{was} and is {topic.topic_id}. Leave it out to read the new topic"
        raise_faults(document, [((_FIELD, "topicId"), message)])
    found = {
        _START: bounds.startSequenceNumbers or _offsets_at(reached, io_config, bounds.startPosition, topic),
        _END: bounds.endSequenceNumbers or _offsets_at(reached, io_config, bounds.endPosition, topic),
    }
    named = bounds.startSequenceNumbers or bounds.endSequenceNumbers or found[_START]
    # Of a partition that the topic does not have, a position knows nothing: it is refused by its number.
    starts, ends = ({p: found[side].get(p, 0) for p in sorted(named)} for side in (_START, _END))
    owner = (spec.id if isinstance(spec, SupervisorSpec) else None) or spec.datasource
    raise_faults(document, list(_faults(spec.datasource, io_config, owner, topic, starts, ends)))
    changes = {_START: starts, _END: ends, "topicId": topic.topic_id}
    changed = io_config.model_copy(update={_FIELD: bounds.model_copy(update=changes)})
    return spec.with_io_config(changed)


def _topic(properties: Mapping[str, Value], io_config: IOConfig) -> kafka.TopicOffsets:
    try:
        topic = kafka.topic_offsets(properties, io_config.topic)
        if topic is not None:
            kafka.check_rights(properties, io_config.topic, "")
    except kafka.KafkaRefuses as refused:
        raise NotAllowed(f"Kafka refuses: {refused}") from None
    except kafka.KafkaProblem as problem:
        raise _unavailable(problem) from None
    if topic is None:
        raise InvalidInput(f"There is no topic {io_config.topic!r}, or this login has no permission to see it.")
    return topic


def _unavailable(problem: kafka.KafkaProblem) -> Unavailable:
    return Unavailable(f"Kafka did not answer, so the offsets can't be checked: {problem}. Nothing was submitted.")


def _offsets_at(
    properties: Mapping[str, Value], io_config: IOConfig, position: str | None, topic: kafka.TopicOffsets
) -> dict[int, int]:
    """At most the ends that ``topic`` has: it may have grown since."""
    try:
        found = positions.resolve(properties, io_config.topic, Position.parse(position or ""), io_config.isolation)
    except kafka.KafkaProblem as problem:
        raise _unavailable(problem) from None
    offsets = {} if found is None else found.offsets
    return {p: min(offset, topic.log_ends.get(p, offset)) for p, offset in offsets.items()}


def _faults(
    datasource: str,
    io_config: IOConfig,
    owner: str,
    topic: kafka.TopicOffsets,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
) -> Iterator[Fault]:
    yield from _beginning_faults(datasource, io_config, owner, topic, ends)
    name, count = io_config.topic, len(topic.log_ends)
    taken = _taken_by_retention(datasource, io_config, owner, topic, starts, ends)
    for partition, end in ends.items():
        low, high = topic.start_offsets.get(partition), topic.log_ends.get(partition)
        if low is None or high is None:
            yield (_FIELD, _START, str(partition)), f"topic {name!r} has no such partition; it has {count}, from 0 on"
            continue
        if partition in taken:
            message = f"retention has removed the offsets before {low} of partition {partition}: begin there or later"
            yield (_FIELD, _START, str(partition)), message
        if starts[partition] > end:
            message = f"partition {partition}: the start {starts[partition]} lies behind the end {end}"
            yield (_FIELD, _START, str(partition)), message
        if end > high:
            yield (_FIELD, _END, str(partition)), f"partition {partition} ends at {high} now: give an end up to {high}"


def _beginning_faults(
    datasource: str, io_config: IOConfig, owner: str, topic: kafka.TopicOffsets, ends: Mapping[int, int]
) -> Iterator[Fault]:
    """Where nobody could tell later what a share group left out when it began at the latest offset."""
    if not io_config.traits.in_share_group or io_config.useEarliestOffset:
        return
    source = _source(datasource, io_config, owner, topic)
    begun = extents(source) if source else {}
    for partition in sorted(ends.keys() - begun.keys()):
        message = (
            f"group {io_config.group!r} starts at latest and has not read partition {partition} yet. Submit this after "
            "its first publish, or set useEarliestOffset"
        )
        yield (_FIELD, _START, str(partition)), message


def _source(datasource: str, io_config: IOConfig, owner: str, topic: kafka.TopicOffsets) -> Source | None:
    found = Datasource.objects.filter(name=datasource).first()
    return sources_of(found, io_config, owner).filter(topic_id=topic.topic_id).first() if found else None


def _taken_by_retention(
    datasource: str,
    io_config: IOConfig,
    owner: str,
    topic: kafka.TopicOffsets,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
) -> set[int]:
    """Partitions of which retention has removed offsets that are not settled: what was read before is not missed."""
    gone = {
        p: (start, min(low, ends[p]))
        for p, start in starts.items()
        if (low := topic.start_offsets.get(p, 0)) > start and ends[p] > start
    }
    source = _source(datasource, io_config, owner, topic) if gone else None
    if source is None:
        return set(gone)
    return {p for p, left in unsettled(source, gone, 1).items() if left.lag}
