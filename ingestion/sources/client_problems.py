"""What Kafka's client complains of: in words that name what is missing, and for how long they hold.

librdkafka says a broker's "no" once and tries on in silence; trouble with a connection it says at each attempt.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaError

from ingestion.specs.kafka.client_messages import NO_RIGHT

CLIENT_PROBLEM_S = 15.0  # what is not said again for so long is over
ALL_PARTITIONS = -1  # in place of a partition: it holds for all of them
_NOT_JOINED = frozenset(
    {
        KafkaError.INCONSISTENT_GROUP_PROTOCOL,
        KafkaError.GROUP_ID_NOT_FOUND,
        KafkaError.GROUP_MAX_SIZE_REACHED,
        KafkaError.INVALID_GROUP_ID,
        KafkaError.INVALID_SESSION_TIMEOUT,
    }
)
_NO_RIGHT = frozenset(getattr(KafkaError, name) for name in NO_RIGHT)
UNREADABLE = frozenset({KafkaError._BAD_COMPRESSION, KafkaError._BAD_MSG, KafkaError.INVALID_MSG})
_BATCH_OFFSET = re.compile(r"of message at (?P<offset>\d+) of")
REFUSALS = _NOT_JOINED | _NO_RIGHT | UNREADABLE


def missing_read_right(resource: str) -> str:
    """Of whom Kafka does not let read. ``resource``: as "topic 'orders'"."""
    return f"This login lacks the right READ on {resource}"


def explain_error(error: Any, topic: str, group: str, partition: int = ALL_PARTITIONS) -> str:
    """The client's error in words; of a refusal, what is missing and where."""
    message, code = str(error.str()).rstrip(": "), error.code()
    if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return f"{missing_read_right(f'topic {topic!r}')} ({message})."
    if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return f"{missing_read_right(f'group {group!r}')} ({message})."
    if code == KafkaError.INCONSISTENT_GROUP_PROTOCOL:
        return (
            f"Group {group!r} is a share group, or another application is in it with another assignor "
            f"({message}). Stop that application, or use another groupId."
        )
    if code == KafkaError.GROUP_ID_NOT_FOUND:
        return f"Group {group!r} is a group of another kind ({message}). Use another groupId."
    if code == KafkaError._BAD_COMPRESSION:
        batch_match = _BATCH_OFFSET.search(message)
        where = f" at offset {batch_match['offset']}" if batch_match else ""
        where += "" if partition == ALL_PARTITIONS else f" of partition {partition}"
        return (
            f"The batch{where} of topic {topic!r} can't be unpacked ({message}): it is broken or too large. If it is "
            "too large, set fetch.max.bytes in consumerProperties to more than it unpacks to."
        )
    return message


def is_of_unused_group(error: Any) -> bool:
    """Whether it is of a consumer's group alone: one that is assigned its partitions reads without a right to it."""
    return bool(error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED)


class ClientProblems:
    """The last of a client's. Thread-safe in CPython: each change is one assignment or one dict operation."""

    def __init__(self, topic: str, group: str) -> None:
        self._topic = topic
        self._group = group
        self._last = ("", 0.0)
        self._refused: dict[int, str] = {}  # by partition, or WHOLE: until something of it is read

    def add_error(self, error: Any, partition: int = ALL_PARTITIONS) -> None:
        """Keep what the client says. ``error``: a ``KafkaError``."""
        text = explain_error(error, self._topic, self._group, partition)
        if error.code() in (REFUSALS - UNREADABLE if partition == ALL_PARTITIONS else REFUSALS):
            self._refused[partition] = text
        else:
            self.add_text(text)

    def add_text(self, text: str) -> None:
        """Keep what is no error of the client."""
        self._last = (text, time.monotonic())

    def clear_partitions(self, partitions: Iterable[int]) -> None:
        """These are read, or are others' business by now."""
        for partition in partitions:
            self._refused.pop(partition, None)

    def clear_connection_problems(self) -> None:
        """Records came in: what was said of connections is over."""
        self._last = ("", 0.0)

    @property
    def refused(self) -> list[int]:
        """Which partitions Kafka refuses; ``ALL_PARTITIONS`` for all."""
        return list(self._refused)

    @property
    def text(self) -> str:
        """Refusals first; empty when all is well."""
        text, at = self._last
        recent = text if time.monotonic() - at < CLIENT_PROBLEM_S else ""
        return next(iter(self._refused.values()), recent)
