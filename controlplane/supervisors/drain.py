"""When a supervisor has caught up with its topic, and with how many indexers it would sooner. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil

from controlplane.lag.trend import LagTrend
from controlplane.supervisors.health_messages import duration_text, indexer_count, utc
from controlplane.supervisors.health_rules import STALE, HealthFacts
from controlplane.supervisors.lag_state import has_read, is_behind, seconds_left
from controlplane.supervisors.models import Supervisor

WITHIN = (timedelta(minutes=15), timedelta(hours=1), timedelta(hours=6))
LONGEST = timedelta(days=365)  # what takes longer never ends


class Code(StrEnum):
    """Whether it catches up; for programs."""

    CAUGHT_UP = "caught_up"
    DRAINING = "draining"
    NEVER = "never"  # at the present rate
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Need:
    """How many indexers would do it."""

    within: timedelta
    indexers: int
    possible: bool  # the topic has partitions for them

    @property
    def text(self) -> str:
        """``about 5 indexers within 1 h``."""
        limit = "" if self.possible else " (the topic has fewer partitions)"
        return f"about {indexer_count(self.indexers)} within {duration_text(self.within)}{limit}"


@dataclass(frozen=True)
class Drain:
    """What is said of it. Rates are records per second."""

    code: Code
    text: str
    done_at: datetime | None = None
    net_per_s: float | None = None  # by which the lag shrinks, of the last minutes; negative: it grows
    needs: tuple[Need, ...] = ()  # empty: not known

    def left_s(self, now: datetime) -> float | None:
        """Infinite: never. None: not known."""
        if self.code == Code.NEVER:
            return float("inf")
        if self.code == Code.CAUGHT_UP:
            return 0.0
        return None if self.done_at is None else max(0.0, (self.done_at - now).total_seconds())


def drain(
    lag: LagTrend | None,
    now: datetime,
    *,
    indexers: int,
    most: int | None = None,
    within: Sequence[timedelta] = WITHIN,
) -> Drain:
    """``indexers``: that read now. ``most``: others beyond it would have nothing to read; None: there is no limit."""
    if lag is None or now - lag.at > STALE:
        return Drain(Code.UNKNOWN, "Its lag is not known, so it is not known when it has caught up.")
    if not is_behind(lag):
        return Drain(Code.CAUGHT_UP, "It keeps up with its topic.")
    if lag.is_too_new or lag.before is None:
        return Drain(Code.UNKNOWN, "It is behind. When it has caught up is known after a minute.")
    net = (lag.before - lag.ahead) / lag.elapsed.total_seconds()
    needs = _needs(lag, net, indexers, most, within)
    advice = f" To catch up it needs {', '.join(need.text for need in needs)}." if needs else ""
    left_s = seconds_left(lag)
    if left_s is None or left_s > LONGEST.total_seconds():
        rate = (
            "At the present rate" if has_read(lag) else f"It read nothing in {duration_text(lag.elapsed)}. At that rate"
        )
        return Drain(Code.NEVER, f"{rate} it never catches up{_pace(net)}.{advice}", None, net, needs)
    left = timedelta(seconds=left_s)
    text = f"At the present rate it has caught up in {duration_text(left)}, at {utc(now + left)}.{advice}"
    return Drain(Code.DRAINING, text, now + left, net, needs)


def drain_of(facts: HealthFacts, supervisor: Supervisor, within: Sequence[timedelta] = WITHIN) -> Drain:
    """By what its health is made of. A partition of a share group has any number of readers, others have one."""
    reading = sum(state == "reading" for state in facts.indexer_states)
    most = supervisor.partitions if supervisor.io_config.traits.keeps_offsets else None
    return drain(facts.lag, facts.now, indexers=reading, most=most, within=within)


def _pace(net: float) -> str:
    return f": its lag grows by {-net:,.0f} records per second" if net <= -1 else ""


def _needs(lag: LagTrend, net: float, indexers: int, most: int | None, within: Sequence[timedelta]) -> tuple[Need, ...]:
    """By what one indexer ends now, if that is known: not of one whose records gather for longer than was observed."""
    ended = lag.ended_per_s or 0
    if indexers < 1 or not ended or lag.ahead - lag.unread > ended * lag.elapsed.total_seconds():
        return ()
    by_one, arriving = ended / indexers, max(0.0, ended - net)
    counts = [ceil((arriving + lag.ahead / time.total_seconds()) / by_one) for time in within]
    return tuple(Need(time, n, most is None or n <= most) for time, n in zip(within, counts, strict=True))
