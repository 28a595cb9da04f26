"""How long until Kafka may delete what a supervisor has not read. Pure.

Kafka deletes a log segment when its newest record is older than ``retention.ms``, in the order of offsets. So no unread
record goes before the oldest of them is that old: what is said here is the earliest time. A segment may stay longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from controlplane.supervisors.health_messages import count, duration_text, utc

# Kafka looks for segments to delete every five minutes, unless set otherwise. What is there for longer after its time
# is kept by newer records of its segment.
CHECKED_WITHIN = timedelta(minutes=10)
STALE = timedelta(minutes=5)
LARGEST_SHARE = 4  # no warning comes earlier than with a quarter of the retention left
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = (datetime(9999, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


class Code(StrEnum):
    """What is known; for programs."""

    LIMITED = "limited"  # from a known time on
    KEPT = "kept"  # Kafka deletes nothing of it
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class OldestUnread:
    """The oldest unread record of a partition."""

    offset: int
    time_ms: int | None = None  # since 1970; None: it has no time
    was_read: bool = True  # Kafka gave it in time


@dataclass(frozen=True)
class Retention:
    """What Kafka deletes of a topic."""

    time_ms: int | None = None  # None: nothing by time
    by_size: bool = False

    @classmethod
    def of(cls, config: Mapping[str, str | None]) -> Retention | None:
        """By the topic's settings; None where they do not say."""
        time_ms, size = _whole(config.get("retention.ms")), _whole(config.get("retention.bytes"))
        if "delete" not in (config.get("cleanup.policy") or "delete").replace(" ", "").split(","):
            return cls()
        return None if time_ms is None else cls(time_ms if time_ms >= 0 else None, size is not None and size >= 0)


@dataclass(frozen=True)
class Look:
    """What Kafka last said of a topic's unread records."""

    at: datetime
    retention: Retention | None
    oldest: Mapping[int, OldestUnread]  # by partition
    problem: str = ""  # why it has said nothing since


@dataclass(frozen=True)
class Countdown:
    """What is said of it."""

    code: Code
    text: str
    observed_at: datetime
    expires_at: datetime | None = None  # the earliest time, of all partitions; it may be over
    retention: timedelta | None = None
    partitions: Mapping[int, datetime] = field(default_factory=dict)  # those whose time is known

    def left(self, now: datetime) -> timedelta | None:
        """None: not known, or never."""
        return None if self.expires_at is None else max(timedelta(), self.expires_at - now)

    def is_short(self, limit: timedelta, now: datetime) -> bool:
        """Whether less than ``limit`` is left, and no more than a quarter of the retention."""
        left = self.left(now)
        if left is None:
            return False
        return left < (limit if self.retention is None else min(limit, self.retention / LARGEST_SHARE))


def countdown(look: Look, now: datetime) -> Countdown:
    """What ``look`` says now."""
    retention = look.retention
    if now - look.at > STALE:
        return _unknown(look, f"Headgate has not asked Kafka since {utc(look.at)}.")
    if retention is None:
        return _unknown(look, look.problem or "Kafka does not say what it deletes of the topic.")
    if retention.time_ms is None and retention.by_size:
        return _unknown(look, "Kafka deletes the topic's records by size only, and does not say when.")
    if retention.time_ms is None:
        return Countdown(Code.KEPT, "Kafka deletes no records of the topic by time or size.", look.at)
    by_partition = {p: _expiry_ms(unread, retention.time_ms, now) for p, unread in look.oldest.items()}
    known = {p: _time(ms) for p, ms in by_partition.items() if ms is not None and ms < _LAST_MS}
    unknown = sum(ms is None for ms in by_partition.values())
    length = None if retention.time_ms >= _LAST_MS else timedelta(milliseconds=retention.time_ms)
    if known:
        first = min(known.values())
        text = _text(first, now, unknown, retention.by_size)
        return Countdown(Code.LIMITED, text, look.at, first, length, known)
    if unknown:
        return _unknown(
            look, f"{_UNKNOWN_PARTITIONS.format(count(unknown, 'partition'))}{_BY_SIZE * retention.by_size}"
        )
    return Countdown(Code.KEPT, f"Kafka keeps them beyond the year 9998.{_BY_SIZE * retention.by_size}", look.at)


_BY_SIZE = " It also deletes by size (retention.bytes), which may be earlier."
_UNKNOWN_PARTITIONS = (
    "The time is unknown for {}: Kafka has not given the oldest unread record, or it has no time, or newer records in "
    "its log segment keep it."
)


def _unknown(look: Look, text: str) -> Countdown:
    return Countdown(Code.UNKNOWN, text, look.at)


def _text(first: datetime, now: datetime, unknown: int, by_size: bool) -> str:
    if first <= now:
        text = f"Kafka may delete unread records now: they are older than retention.ms since {utc(first)}."
    else:
        text = f"Kafka may delete unread records in {duration_text(first - now)}, from {utc(first)} on."
    more = f" {_UNKNOWN_PARTITIONS.format(count(unknown, 'partition'))}" if unknown else ""
    return f"{text}{_BY_SIZE * by_size}{more}"


def _expiry_ms(unread: OldestUnread, retention_ms: int, now: datetime) -> int | None:
    """From when on Kafka may delete it, in ms since 1970; None: not known."""
    if not unread.was_read or unread.time_ms is None:
        return None
    expiry = unread.time_ms + retention_ms
    return None if expiry < (now - CHECKED_WITHIN - _EPOCH) // timedelta(milliseconds=1) else expiry


def _time(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)


def _whole(value: str | None) -> int | None:
    try:
        return None if value is None else int(value)
    except ValueError:
        return None
