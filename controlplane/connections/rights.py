"""What a login may do with a topic and with a group, as the broker says it."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient

from controlplane.connections.probe_report import Cause, Clock, Failed


def check_readable(admin: AdminClient, topic: str, clock: Clock) -> None:
    """Raises ``Failed`` where the topic may not be read, or is not there."""
    futures = admin.describe_topics(
        TopicCollection([topic]), include_authorized_operations=True, request_timeout=clock.cap(3.0)
    )
    try:
        described = futures[topic].result()
    except KafkaException as error:
        raise _no_topic(topic, error.args[0]) from None
    allowed = described.authorized_operations
    if allowed and AclOperation.READ not in allowed and AclOperation.ALL not in allowed:
        advice = f"Grant this login the right READ on topic {topic}."
        raise Failed("authorisation", f"The login may see the topic {topic!r} but not read it.", advice)


def check_joinable(admin: AdminClient, group: str, clock: Clock) -> Collection[AclOperation]:
    """What the login may do with the group, which need not exist yet. Raises ``Failed``."""
    deadline = Clock(clock.cap(5.0))
    while True:
        futures = admin.describe_consumer_groups(
            [group], include_authorized_operations=True, request_timeout=deadline.seconds_left
        )
        try:
            allowed: Collection[AclOperation] = futures[group].result().authorized_operations or ()
            break
        except KafkaException as error:
            if error.args[0].name() == "GROUP_AUTHORIZATION_FAILED":
                allowed = (AclOperation.DESCRIBE,)
                break
            if deadline.is_over or not _has_no_coordinator(error):
                advice = "See the broker's log."
                raise Failed("other", f"Kafka says of group {group!r}: {error.args[0].str()}.", advice) from None
            time.sleep(0.2)
    if allowed and AclOperation.READ not in allowed and AclOperation.ALL not in allowed:
        advice = f"Grant this login the right READ on group {group}. Offset ranges need no group."
        raise Failed("authorisation", f"The login may not read with group {group!r}.", advice)
    return allowed


def _has_no_coordinator(error: KafkaException) -> bool:
    """Whether the broker that coordinates the group is not known yet: of a new one that takes a moment."""
    return "COORDINATOR" in error.args[0].name()


def group_detail(allowed: Collection[AclOperation]) -> str:
    """What ``check_joinable`` found."""
    if not allowed or AclOperation.ALTER_CONFIGS in allowed or AclOperation.ALL in allowed:
        return "may read, and may set the configuration of a share group"
    return "may read; a share group also needs ALTER_CONFIGS"


def _no_topic(topic: str, error: Any) -> Failed:
    cause: Cause = "authorisation" if error.name() == "TOPIC_AUTHORIZATION_FAILED" else "other"
    if cause == "authorisation" or error.name() == "UNKNOWN_TOPIC_OR_PART":
        advice = f"Check the name. Grant this login the rights DESCRIBE and READ on topic {topic}."
        message = f"There is no topic {topic!r}, or this login may not describe it."
        return Failed("authorisation", message, advice)
    return Failed(cause, f"Kafka says of topic {topic!r}: {error.str()}.", "See the broker's log.")
