"""When Kafka may delete unread records: what Kafka said of them → a time, or why there is none."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.supervisors.retention_countdown import Code, Look, OldestUnread, Retention, countdown

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
HOUR, DAY_MS = timedelta(hours=1), 86_400_000
WARNING = 6 * HOUR


def ms(time: datetime) -> int:
    return int(time.timestamp() * 1000)


def unread(ago: timedelta) -> OldestUnread:
    return OldestUnread(5, ms(NOW - ago))


DAY = Look(NOW, Retention(DAY_MS), {0: unread(20 * HOUR), 1: unread(HOUR)})
TABLE = {
    "the oldest record counts": (DAY, Code.LIMITED, 4 * HOUR, "in 4 h, from 2025-06-01 16:00:00 UTC on."),
    "it is over, and Kafka has not checked yet": (
        replace(DAY, oldest={0: unread(24 * HOUR + timedelta(minutes=9))}),
        Code.LIMITED,
        timedelta(),
        "may delete unread records now",
    ),
    "it is over for long, so other records keep it": (
        replace(DAY, oldest={0: unread(24 * HOUR + timedelta(minutes=11))}),
        Code.UNKNOWN,
        None,
        "unknown for 1 partition",
    ),
    "a time of 1970 beside a good one": (
        replace(DAY, oldest={0: OldestUnread(5, 1000), 1: unread(HOUR)}),
        Code.LIMITED,
        23 * HOUR,
        "unknown for 1 partition",
    ),
    "a record without a time": (replace(DAY, oldest={0: OldestUnread(5)}), Code.UNKNOWN, None, "has no time"),
    "Kafka gave no record": (
        replace(DAY, oldest={0: OldestUnread(5, was_read=False)}),
        Code.UNKNOWN,
        None,
        "has not given the oldest unread record",
    ),
    "a time ahead of now": (replace(DAY, oldest={0: unread(-HOUR)}), Code.LIMITED, 25 * HOUR, "in 1 d 1 h"),
    "microseconds for milliseconds": (
        replace(DAY, oldest={0: OldestUnread(5, 1000 * ms(NOW))}),
        Code.KEPT,
        None,
        "beyond the year 9998",
    ),
    "no limit": (replace(DAY, retention=Retention()), Code.KEPT, None, "by time or size"),
    "the longest limit there can be": (
        replace(DAY, retention=Retention(2**63 - 1)),
        Code.KEPT,
        None,
        "beyond the year",
    ),
    "by size only": (replace(DAY, retention=Retention(by_size=True)), Code.UNKNOWN, None, "by size only"),
    "by size too": (
        replace(DAY, retention=Retention(DAY_MS, by_size=True)),
        Code.LIMITED,
        4 * HOUR,
        "which may be earlier",
    ),
    "Kafka did not say": (
        replace(DAY, retention=None, problem="Kafka does not say what it deletes: timed out"),
        Code.UNKNOWN,
        None,
        "timed out",
    ),
    "asked long ago": (
        replace(DAY, at=NOW - timedelta(minutes=6)),
        Code.UNKNOWN,
        None,
        "has not asked Kafka since 2025-06-01 11:54:00 UTC",
    ),
}


@pytest.mark.parametrize(("look", "code", "left", "says"), TABLE.values(), ids=TABLE)
def test_the_time_that_is_left(look: Look, code: Code, left: timedelta | None, says: str) -> None:
    found = countdown(look, NOW)
    assert (found.code, found.left(NOW)) == (code, left)
    assert says in found.text


@pytest.mark.parametrize(
    ("retention_ms", "ago", "short"),
    [
        (DAY_MS, 18 * HOUR, False),
        (DAY_MS, 18 * HOUR + timedelta(seconds=1), True),
        (7 * DAY_MS, 7 * 24 * HOUR - 6 * HOUR, False),
        (7 * DAY_MS, 7 * 24 * HOUR - 6 * HOUR + timedelta(seconds=1), True),
        (DAY_MS // 24, timedelta(minutes=2), False),
        (DAY_MS // 24, timedelta(minutes=46), True),
        (DAY_MS, 30 * HOUR, False),
    ],
)
def test_what_is_short(retention_ms: int, ago: timedelta, short: bool) -> None:
    """Less than six hours, or than a quarter of what Kafka keeps."""
    found = countdown(Look(NOW, Retention(retention_ms), {0: unread(ago)}), NOW)
    assert found.is_short(WARNING, NOW) == short


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"cleanup.policy": "delete", "retention.ms": "60000", "retention.bytes": "-1"}, Retention(60_000)),
        ({"cleanup.policy": "compact,delete", "retention.ms": "60000"}, Retention(60_000)),
        ({"cleanup.policy": "compact", "retention.ms": "60000", "retention.bytes": "9"}, Retention()),
        ({"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "9"}, Retention(None, by_size=True)),
        ({"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}, Retention()),
        ({"cleanup.policy": "delete", "retention.ms": None}, None),
        ({"cleanup.policy": "delete", "retention.ms": "soon"}, None),
        ({}, None),
    ],
)
def test_what_a_topics_settings_say(config: dict[str, str | None], expected: Retention | None) -> None:
    assert Retention.of(config) == expected
