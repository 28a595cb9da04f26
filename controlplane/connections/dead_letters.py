"""A share group's dead-letter topic (Kafka 4.4): where the broker writes records that it rejects or gives up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.connections import kafka
from controlplane.connections.share_group_config import ShareGroupConfig
from ingestion.specs.inputs.group_config import DEAD_LETTER_TOPIC
from ingestion.specs.kafka.providers import Value

_ENABLED = "errors.deadletterqueue.group.enable"


@dataclass(frozen=True)
class DeadLetterTopic:
    """The topic that the group names. The broker archives records without a word when it can't write there."""

    name: str
    records: int | None = None  # in the topic, of all groups that write there; None: not known
    problem: str = ""  # why the broker writes nothing there, and what to do


def dead_letter_topic(properties: Mapping[str, Value], group_config: ShareGroupConfig) -> DeadLetterTopic | None:
    """None if the group has none. Asks Kafka; raises nothing."""
    name = group_config.values.get(DEAD_LETTER_TOPIC, (None, True))[0]
    if not name:
        return None
    prefix = group_config.dead_letter_prefix
    if not name.startswith(prefix):
        return DeadLetterTopic(
            name,
            problem=f"Kafka writes nothing there: on this broker, names of dead-letter topics begin with {prefix!r}. "
            "Use such a name, or change the broker's errors.deadletterqueue.topic.name.prefix.",
        )
    try:
        offsets = kafka.topic_offsets(properties, name)
        enabled = kafka.topic_config(properties, name).get(_ENABLED) if offsets else None
    except kafka.KafkaProblem as problem:
        return DeadLetterTopic(name, problem=f"Headgate can't check this topic: {problem}")
    if offsets is None:
        if group_config.creates_dead_letters:
            return DeadLetterTopic(name, records=0)
        return DeadLetterTopic(
            name, problem=f"There is no such topic, so Kafka writes nothing there. Create it with {_ENABLED}=true."
        )
    records = sum(end - offsets.start_offsets[partition] for partition, end in offsets.end_offsets.items())
    if enabled != "true":
        return DeadLetterTopic(
            name, records, f"Kafka writes nothing there: the topic does not allow it. Set its {_ENABLED} to true."
        )
    return DeadLetterTopic(name, records)
