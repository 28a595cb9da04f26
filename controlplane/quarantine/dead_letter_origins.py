"""Where the record of a dead-letter topic comes from: the headers that Kafka's share groups, Kafka Connect and Spring
for Apache Kafka write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Headers = Sequence[tuple[str, bytes | None]]

_KAFKA, _CONNECT, _SPRING = "__dlq.errors.", "__connect.errors.", "kafka_dlt-"
_DIGITS = re.compile(r"[0-9]{1,18}")
_MAX_INT = 2**31 - 1
_MAX_REASON = 1000  # characters


@dataclass(frozen=True)
class Origin:
    """The record as it was, and why its reader gave it up."""

    writer: str  # who wrote the headers
    topic: str
    partition: int
    offset: int
    reason: str = ""
    group: str = ""  # of Kafka's own headers: the share group
    deliveries: int = 0

    @property
    def by_kafka(self) -> bool:
        """Whether a broker wrote it for a share group. Key and payload are there only if the group copies records."""
        return self.writer == "Kafka"

    @property
    def sentence(self) -> str:
        """Why it is a dead letter, as the error of a quarantined record says it."""
        after = f" after {self.deliveries} deliver{'y' if self.deliveries == 1 else 'ies'}" if self.deliveries else ""
        return f"{self.writer} gave this record up{after}{': ' + self.reason if self.reason else '.'}"


def origin_of(headers: Headers) -> Origin | None:
    """None where no header says it. A header that stands twice counts as it was written last."""
    named = {name: value for name, value in headers if value is not None}
    return _of_kafka(named) or _of_connect(named) or _of_spring(named)


def _of_kafka(named: Mapping[str, bytes]) -> Origin | None:
    place = _place_of_text(named, _KAFKA)
    if place is None or _KAFKA + "group" not in named:
        return None
    return Origin(
        "Kafka",
        *place,
        reason=_text(named.get(_KAFKA + "message")),
        group=_text(named[_KAFKA + "group"]),
        deliveries=min(_number(named.get(_KAFKA + "delivery.count")) or 0, _MAX_INT),
    )


def _of_connect(named: Mapping[str, bytes]) -> Origin | None:
    place = _place_of_text(named, _CONNECT)
    reason = named.get(_CONNECT + "exception.message") or named.get(_CONNECT + "exception.class.name")
    return None if place is None else Origin("Kafka Connect", *place, reason=_text(reason))


def _of_spring(named: Mapping[str, bytes]) -> Origin | None:
    """Spring writes numbers as Java's integers, not as text."""
    topic = _text(named.get(_SPRING + "original-topic"))
    partition, offset = (named.get(_SPRING + f"original-{name}", b"") for name in ("partition", "offset"))
    if not topic or len(partition) != 4 or len(offset) != 8:
        return None
    place = int.from_bytes(partition, signed=True), int.from_bytes(offset, signed=True)
    reason = named.get(_SPRING + "exception-message") or named.get(_SPRING + "exception-fqcn")
    return Origin("Spring", topic, *place, reason=_text(reason)) if min(place) >= 0 else None


def _place_of_text(named: Mapping[str, bytes], prefix: str) -> tuple[str, int, int] | None:
    topic = _text(named.get(prefix + "topic"))
    partition, offset = (_number(named.get(prefix + name)) for name in ("partition", "offset"))
    if not topic or partition is None or partition > _MAX_INT or offset is None:
        return None
    return topic, partition, offset


def _text(value: bytes | None) -> str:
    """Bytes that are no text are replaced, and so is what the metadata store can't hold."""
    return (value or b"")[: 4 * _MAX_REASON].decode("utf-8", "replace").replace("\x00", "\ufffd")[:_MAX_REASON]


def _number(value: bytes | None) -> int | None:
    text = _text(value)
    return int(text) if _DIGITS.fullmatch(text) else None
