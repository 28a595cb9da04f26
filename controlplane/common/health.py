"""Health: how a supervisor, a task or an interval is, why, and what a person should do.

Pages, REST, alerts and home show this one value. Druid's states have fewer words: ``supervisors.states`` has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Kind(StrEnum):
    """How severe it is, and who acts next."""

    OK = "ok"  # it works
    WORKING = "working"  # it changes or catches up by itself
    WAITING = "waiting"  # it waits for something, or rests until a person resumes it
    NEEDS_ATTENTION = "needs_attention"  # a person has to do something
    FAILED = "failed"  # it does not work


WORST_FIRST = (Kind.FAILED, Kind.NEEDS_ATTENTION, Kind.WORKING, Kind.OK, Kind.WAITING)


class Code(StrEnum):
    """A code for programs, which does not change; its usual kind and label; and where it is used."""

    _value_: str
    kind: Kind
    label: str
    users: frozenset[str]

    def __new__(cls, value: str, kind: Kind, label: str, users: str) -> Code:
        code = str.__new__(cls, value)
        code._value_, code.kind, code.label, code.users = value, kind, label, frozenset(users.split())
        return code

    UP_TO_DATE = "up_to_date", Kind.OK, "up to date", "supervisor"
    IDLE = "idle", Kind.WAITING, "idle", "supervisor task"
    COMPLETED = "completed", Kind.OK, "completed", "supervisor"
    BEHIND = "behind", Kind.WORKING, "behind", "supervisor"
    HOLDING = "holding", Kind.WORKING, "read, not stored", "supervisor"
    QUARANTINING = "quarantining", Kind.NEEDS_ATTENTION, "quarantining", "supervisor"
    STARTING = "starting", Kind.WORKING, "starting", "supervisor task"
    CHANGING_SPEC = "changing_spec", Kind.WORKING, "changing spec", "supervisor"
    WAITING_FOR_TOPIC = "waiting_for_topic", Kind.WAITING, "waiting for topic", "supervisor task"
    TOO_MANY_TOPICS = "too_many_topics", Kind.NEEDS_ATTENTION, "too many topics", "supervisor task"
    TOPICS_UNWELL = "topics_unwell", Kind.WORKING, "topics unhealthy", "supervisor"
    TOPIC_MISSING = "topic_missing", Kind.FAILED, "topic missing", "supervisor task"
    WAITING_FOR_SLOT = "waiting_for_slot", Kind.WAITING, "waiting for a slot", "supervisor task"
    QUOTA_USED_UP = "quota_used_up", Kind.NEEDS_ATTENTION, "quota used up", "supervisor task"
    FAILING = "failing", Kind.FAILED, "failing", "supervisor task"
    KAFKA_UNREACHABLE = "kafka_unreachable", Kind.WAITING, "Kafka unreachable", "supervisor task"
    UNHEALTHY = "unhealthy", Kind.FAILED, "runs failing", "supervisor task"
    RECOVERING = "recovering", Kind.WORKING, "recovering", "supervisor task"
    KAFKA_REFUSES = "kafka_refuses", Kind.FAILED, "Kafka refuses", "supervisor task"
    STRANGERS_IN_GROUP = "strangers_in_group", Kind.NEEDS_ATTENTION, "shares its group", "supervisor task"
    STORAGE_REFUSES = "storage_refuses", Kind.FAILED, "paused", "supervisor task"
    NOTHING_STORED = "nothing_stored", Kind.NEEDS_ATTENTION, "nothing stored", "supervisor"
    NOT_OBSERVED = "not_observed", Kind.WAITING, "not checked", "supervisor task"
    STOPPING = "stopping", Kind.WORKING, "stopping", "supervisor task"
    SUSPENDED = "suspended", Kind.WAITING, "suspended", "supervisor task"
    TERMINATED = "terminated", Kind.WAITING, "terminated", "supervisor task"
    QUARANTINED = "quarantined", Kind.NEEDS_ATTENTION, "quarantined", "home alert"
    CAPACITY_FULL = "capacity_full", Kind.NEEDS_ATTENTION, "no free slots", "home"
    GROUP_DRIFT = "group_drift", Kind.NEEDS_ATTENTION, "share group differs", "home"
    EXPIRING = "expiring", Kind.NEEDS_ATTENTION, "records expire soon", "alert"
    NO_DATA = "no_data", Kind.NEEDS_ATTENTION, "no data", "alert"
    INCOMPLETE = "incomplete", Kind.NEEDS_ATTENTION, "not complete", "alert"
    PARSE_ERRORS = "parse_errors", Kind.NEEDS_ATTENTION, "parse errors", "alert"
    ALARM = "alarm", Kind.NEEDS_ATTENTION, "alarm", "alert"
    LONG_HOLD = "long_hold", Kind.NEEDS_ATTENTION, "long hold", "group"
    LOCKS_EXPIRED = "locks_expired", Kind.NEEDS_ATTENTION, "locks expired", "group"
    LAST_DELIVERIES = "last_deliveries", Kind.NEEDS_ATTENTION, "last deliveries", "group"
    NOT_TRACKED = "not_tracked", Kind.WAITING, "not tracked", "datasource"
    OFF = "off", Kind.WAITING, "off", "compaction"
    COMPACTED = "compacted", Kind.OK, "compacted", "compaction"
    COMPACTING = "compacting", Kind.WORKING, "compacting", "compaction"
    WAITING_FOR_SEGMENTS = "waiting_for_segments", Kind.WAITING, "waiting for segments", "compaction"
    SKIPPED = "skipped", Kind.WAITING, "skipped", "compaction"
    TOO_LARGE = "too_large", Kind.NEEDS_ATTENTION, "too large", "compaction"
    NOT_PARTITIONABLE = "not_partitionable", Kind.NEEDS_ATTENTION, "not partitionable", "compaction"
    FAILED = "failed", Kind.FAILED, "failed", "task compaction"
    SHARE_GROUPS_OFF = "share_groups_off", Kind.NEEDS_ATTENTION, "no share groups", "task"
    TOPIC_EMPTY = "topic_empty", Kind.WAITING, "topic empty", "task"
    TOPIC_EXPIRED = "topic_expired", Kind.WAITING, "records expired", "task"
    CAUGHT_UP = "caught_up", Kind.OK, "caught up", "task"
    STARTS_AT_LATEST = "starts_at_latest", Kind.WAITING, "no new records", "task"
    PREDECESSOR = "predecessor", Kind.WORKING, "waiting for its predecessor", "task"
    AWAITING_RECORDS = "awaiting_records", Kind.WORKING, "waiting for records", "task"
    AWAITING_HANDOFF = "awaiting_handoff", Kind.WORKING, "waiting for handoff", "task"
    AWAITING_DELIVERY = "awaiting_delivery", Kind.WORKING, "waiting for records", "task"
    VERSION_NOT_STARTED = "version_not_started", Kind.NEEDS_ATTENTION, "new spec not started", "task"
    FILTER_DROPS = "filter_drops", Kind.WORKING, "some filtered", "task"
    OUTSIDE_WINDOW = "outside_window", Kind.WORKING, "some outside the window", "task"
    UNPARSEABLE = "unparseable", Kind.WORKING, "some unparseable", "task"
    TOMBSTONES = "tombstones", Kind.WORKING, "some tombstones", "task"
    DUPLICATES = "duplicates", Kind.WORKING, "some duplicates", "task"
    RELEASED = "released", Kind.WORKING, "some released", "task"
    REDUNDANT = "redundant", Kind.WORKING, "some redundant", "task"
    ALL_FILTER_DROPS = "all_filter_drops", Kind.NEEDS_ATTENTION, "all filtered", "task"
    ALL_OUTSIDE_WINDOW = "all_outside_window", Kind.NEEDS_ATTENTION, "all outside the window", "task"
    ALL_UNPARSEABLE = "all_unparseable", Kind.NEEDS_ATTENTION, "all unparseable", "task"
    ALL_TOMBSTONES = "all_tombstones", Kind.NEEDS_ATTENTION, "all tombstones", "task"
    ALL_DUPLICATES = "all_duplicates", Kind.OK, "all duplicates", "task"
    ALL_RELEASED = "all_released", Kind.WORKING, "all released", "task"
    ALL_REDUNDANT = "all_redundant", Kind.OK, "all redundant", "task"


class Trend(StrEnum):
    """Where a lag goes."""

    GROWING = "growing"
    STEADY = "steady"
    SHRINKING = "shrinking"


@dataclass(frozen=True)
class Health:
    """How something is now."""

    kind: Kind
    code: str
    label: str  # a word or a few
    cause: str  # one sentence or two
    action: str = ""  # what a person should do next; empty: it goes on by itself
    since: datetime | None = None  # as far as that is known
    behind: int | None = None  # offsets that are not settled; None: not known
    trend: Trend | None = None  # of a supervisor that is behind

    @classmethod
    def of(
        cls,
        code: Code,
        cause: str,
        action: str = "",
        *,
        kind: Kind | None = None,
        label: str = "",
        since: datetime | None = None,
        behind: int | None = None,
        trend: Trend | None = None,
    ) -> Health:
        """With the code's usual kind and label, unless others are given."""
        return cls(kind or code.kind, code, label or code.label, cause, action, since, behind, trend)

    @property
    def text(self) -> str:
        """Cause and action, where one text has to say both."""
        return one_text(self.cause, self.action)

    @property
    def calls(self) -> bool:
        """Whether a person should look at it."""
        return self.kind in (Kind.NEEDS_ATTENTION, Kind.FAILED)


def one_text(cause: str, action: str) -> str:
    """A cause may be an error's message, which ends without a stop."""
    if not action:
        return cause
    return f"{cause if cause.endswith(('.', '!', '?', '…')) else f'{cause}.'} {action}"


def codes_of(user: str) -> list[str]:
    """Those that a ``supervisor``, a ``task``, ``compaction``, ``home`` or an ``alert`` has."""
    return [code.value for code in Code if user in code.users]
