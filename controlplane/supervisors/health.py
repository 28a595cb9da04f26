"""What is said of how a supervisor stands: a kind, a code, a word and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from controlplane.supervisors.lag_state import Trend


class Kind(StrEnum):
    """What a person has to do with it; the same five for everything that has a state."""

    OK = "ok"  # as it should be
    WORKING = "working"  # on its way there, by itself
    WAITING = "waiting"  # at rest, until something comes or somebody resumes it
    NEEDS_ATTENTION = "needs_attention"  # it goes on only, or well only, when a person does something
    FAILED = "failed"  # it tries, and does not succeed


class Code(StrEnum):
    """For programs; these do not change."""

    UP_TO_DATE = "up_to_date"
    IDLE = "idle"
    BEHIND = "behind"
    HOLDING = "holding"
    QUARANTINING = "quarantining"
    STARTING = "starting"
    CHANGING_SPEC = "changing_spec"
    WAITING_FOR_TOPIC = "waiting_for_topic"
    TOO_MANY_TOPICS = "too_many_topics"
    TOPICS_UNWELL = "topics_unwell"
    TOPIC_MISSING = "topic_missing"
    WAITING_FOR_SLOT = "waiting_for_slot"
    QUOTA_USED_UP = "quota_used_up"
    FAILING = "failing"
    KAFKA_UNREACHABLE = "kafka_unreachable"
    UNHEALTHY = "unhealthy"
    RECOVERING = "recovering"
    KAFKA_REFUSES = "kafka_refuses"
    STRANGERS_IN_GROUP = "strangers_in_group"
    STORAGE_REFUSES = "storage_refuses"
    NOTHING_STORED = "nothing_stored"
    NOT_OBSERVED = "not_observed"
    STOPPING = "stopping"
    SUSPENDED = "suspended"
    TERMINATED = "terminated"


@dataclass(frozen=True)
class Health:
    """What is said of a supervisor."""

    kind: Kind
    code: Code
    label: str  # a word or a few
    text: str  # one sentence or two: the cause, and what to do
    since: datetime | None = None  # as far as that is known
    behind: int | None = None  # offsets that are not settled; None: not known
    trend: Trend | None = None  # of a supervisor that is behind

    @property
    def calls(self) -> bool:
        """Whether a person should look at it."""
        return self.kind in (Kind.NEEDS_ATTENTION, Kind.FAILED)
