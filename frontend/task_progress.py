"""How far a task has come, from what the observer last saw of its topic. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Progress:
    """Records settled and still to come. ``percent`` is 100 only when nothing is left."""

    settled: int
    lag: int
    observed_at: datetime | None
    missing: bool = False  # there is no such topic, or it may not be seen

    @property
    def complete(self) -> bool:
        """There were records, and none is left."""
        return self.settled > 0 and not self.lag and not self.missing

    @property
    def total(self) -> int:
        return self.settled + self.lag

    @property
    def percent(self) -> int:
        return 100 if self.lag == 0 else min(99, self.settled * 100 // self.total)

    @property
    def tenths(self) -> int:
        """The percentage in steps of ten: for what is read out, which should not change each second."""
        return self.percent // 10 * 10


def progress_of(observation: Mapping[str, Any]) -> Progress | None:
    """None while the topic has not been looked at."""
    settled, lag = observation.get("settled"), observation.get("lag")
    if not isinstance(settled, int) or not isinstance(lag, int):
        return None
    missing = observation.get("topic_exists") is False
    return Progress(max(0, settled), max(0, lag), _time(observation.get("observed_at")), missing)


def _time(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        return None
