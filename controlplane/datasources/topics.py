"""Whether the topic of a spec that is not submitted yet is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.common.errors import HeadgateError
from controlplane.connections import kafka
from controlplane.datasources.sampling import check_rights
from controlplane.teams.models import User
from ingestion.specs.kafka.providers import Value


@dataclass(frozen=True)
class TopicLookup:
    """What a look at a topic has shown."""

    name: str
    partitions: int | None = None  # of the topic, None when there is none or that is not known
    problem: str = ""  # why it is not known


@dataclass(frozen=True)
class TopicListing:
    """What a look at all topics has shown."""

    names: list[str]  # without Kafka's own, by name
    problem: str = ""  # why they are not known


def find_topics(*, user: User, datasource: str, properties: Mapping[str, Value]) -> TopicListing:
    """Ask Kafka, as ``find_topic`` does."""
    try:
        check_rights(user, datasource)
        return TopicListing(kafka.topic_names(properties))
    except HeadgateError as error:
        return TopicListing([], problem=error.detail)
    except kafka.KafkaProblem as problem:
        return TopicListing([], problem=f"{problem}.")


def find_topic(*, user: User, datasource: str, topic: str, properties: Mapping[str, Value]) -> TopicLookup:
    """Ask Kafka; blocks for some seconds at most. Who may not take samples for the datasource is not shown topics.

    ``properties``: those that were admitted.
    """
    try:
        check_rights(user, datasource)
        return TopicLookup(topic, kafka.partition_count(properties, topic))
    except HeadgateError as error:
        return TopicLookup(topic, problem=error.detail)
    except kafka.KafkaProblem as problem:
        return TopicLookup(topic, problem=f"{problem}.")
