"""What is known of a supervisor, as far as its health goes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from controlplane.common.health import Health
from controlplane.lag.quarantined_since import BadSince
from controlplane.lag.trend import LagTrend
from controlplane.quotas.services import OverQuota
from controlplane.supervisors.health_messages import Idleness, utc
from controlplane.supervisors.states import Detail
from controlplane.tasks.bounded_reads import BoundedProgress
from controlplane.tasks.slot_waits import SlotWait


@dataclass(frozen=True)
class PastAction:
    """Who did something, and when: as far as the audit trail knows."""

    username: str = ""
    at: datetime | None = None

    @property
    def text(self) -> str:
        by = f" by {self.username}" if self.username else ""
        return f"{by} since {utc(self.at)}" if self.at else by


@dataclass(frozen=True)
class ErrorStreak:
    """Errors in a row."""

    times: int
    message: str
    since: datetime | None = None
    kind: str = ""  # an error's class
    is_of_source: bool = False


@dataclass(frozen=True)
class HealthFacts:
    """What is known of a supervisor; ``health_of`` looks at nothing else."""

    now: datetime
    topic: str
    detailed_state: Detail = Detail.RUNNING
    terminated: PastAction | None = None
    suspended: PastAction | None = None
    idleness: Idleness | None = None  # it is idle, by Druid's state
    bounded: BoundedProgress | None = None  # of one that reads given offsets
    fills: str | None = None  # of a backfill, the supervisor that it fills
    filling: BoundedProgress | None = None  # of its backfills that read, together
    held_back: Health | None = None  # and why Kafka does not hand out the last of them
    tasks: int = 1  # that have not ended
    ran_at: datetime | None = None  # its last round; None: none since it began
    iterations: ErrorStreak | None = None  # its own, which ask Kafka
    runs_to_recover: int = 1  # successful ones, until its state is healthy again
    contacted_at: datetime | None = None  # when Kafka last answered one
    failures: ErrorStreak | None = None  # of its tasks
    next_start_at: datetime | None = None
    # Of its newest task, or the replica that does best.
    indexer_states: tuple[str, ...] = ()
    indexer_message: str = ""  # of one that is paused or fails
    refusal: str = ""  # why Kafka does not let an indexer read
    kafka_error: str = ""
    kafka_refuses: bool = False  # that is why
    foreign_members: tuple[str, ...] = ()  # others' members of its consumer group
    topic_exists: bool | None = None  # None: not looked at yet
    reason: Health | None = None  # why its task has published nothing
    slot_wait: SlotWait | None = None  # that it waits for
    quota: OverQuota | None = None  # of its team, that is used up
    versions: tuple[int, int] | None = None  # the one that is still read by, and the one that is to follow
    # Of the topic that it reads.
    topics: Health | None = None  # how those of its pattern stand, if it has one
    topic_seen_at: datetime | None = None
    complete_until: datetime | None = None  # said of it elsewhere, and no part of its health
    stored: int = 0  # rows, before the topic was gone
    lag: LagTrend | None = None
    behind_since: datetime | None = None  # None: for longer than there are samples
    quarantining_since: BadSince | None = None  # of one of whose records a large part comes into quarantine
    indexers: int = 1
    scales_itself: bool = False

    @property
    def unhealthy(self) -> bool:
        """By Druid's state, unless its own runs go well and that is the state of the topics of its pattern."""
        return not self.detailed_state.state.is_healthy and (self.topics is None or self.iterations is not None)
