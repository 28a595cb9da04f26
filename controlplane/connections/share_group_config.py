"""A share group's dynamic settings on the broker: read, with the broker's bounds, and set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from controlplane.connections.kafka import TIMEOUT_S, describe_config, measured, topic_admin
from ingestion.specs.kafka.providers import Value


@dataclass(frozen=True)
class ShareGroupConfig:
    """A group's dynamic settings as the broker has them: name → value, and whether it is only the broker's default."""

    values: dict[str, tuple[str | None, bool]]
    bounds: dict[str, tuple[int | None, int | None]]  # name → what the broker lets it be at least and at most
    dead_letter_prefix: str = ""  # how names of dead-letter topics must begin
    creates_dead_letters: bool = False  # whether the broker creates a dead-letter topic that is missing


_DEAD_LETTERS = ("topic.name.prefix", "auto.create.topics.enable")
# A group's setting → the broker's own for its least and its most.
_BOUNDS = {
    "share.record.lock.duration.ms": (
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    "share.delivery.count.limit": (
        "group.share.min.delivery.count.limit",
        "group.share.max.delivery.count.limit",
    ),
    "share.partition.max.record.locks": (
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
    ),
}


@measured
def share_group_config(properties: Mapping[str, Value], topic: str, group: str) -> ShareGroupConfig:
    """What the broker has for a share group. ``topic``: one that may be described."""
    with topic_admin(properties, topic) as (admin, _, _):
        broker = str(next(iter(admin.list_topics(topic, timeout=TIMEOUT_S).brokers)))
        resources = [ConfigResource(ResourceType.GROUP, group), ConfigResource(ResourceType.BROKER, broker)]
        group_entries, broker_entries = (describe_config(admin, resource) for resource in resources)
    bounds = {
        name: (_whole_number(broker_entries, low), _whole_number(broker_entries, high))
        for name, (low, high) in _BOUNDS.items()
    }
    prefix, creates = (broker_entries.get(f"errors.deadletterqueue.{name}") for name in _DEAD_LETTERS)
    return ShareGroupConfig(
        {n: (e.value, bool(e.is_default)) for n, e in group_entries.items()},
        bounds,
        dead_letter_prefix=(prefix.value or "") if prefix else "",
        creates_dead_letters=creates is not None and creates.value == "true",
    )


def _whole_number(entries: Mapping[str, ConfigEntry], name: str) -> int | None:
    value = entries[name].value if name in entries else None
    return int(value) if value is not None and value.isdecimal() else None


@measured
def set_share_group_config(
    properties: Mapping[str, Value], topic: str, group: str, to_try: Sequence[Mapping[str, str]]
) -> None:
    """Set a share group's dynamic settings, all or none: the first of ``to_try`` that the broker takes."""
    with topic_admin(properties, topic) as (admin, _, _):
        for settings in to_try:
            entries = [ConfigEntry(n, v, incremental_operation=AlterConfigOpType.SET) for n, v in settings.items()]
            resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
            try:
                for future in admin.incremental_alter_configs([resource], request_timeout=TIMEOUT_S).values():
                    future.result()
                return
            except KafkaException as error:
                if settings is to_try[-1] or error.args[0].code() != KafkaError.INVALID_CONFIG:
                    raise
