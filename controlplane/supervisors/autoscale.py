"""How many indexers a supervisor's lag asks for: Druid's lag-based autoscaler, a pure function of what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ingestion.specs.inputs.auto_scaler import AutoScalerConfig
from ingestion.specs.inputs.io_config import IOConfig

Samples = Sequence[tuple[datetime, int]]
_LAGS = {"SUM": "The lag", "MAX": "The largest lag of a partition", "AVERAGE": "The partitions' average lag"}


@dataclass(frozen=True)
class Scaling:
    """Another number of indexers, and why."""

    before: int
    after: int
    reason: str


@dataclass(frozen=True)
class LagObservation:
    """What the autoscaler decides by."""

    now: datetime
    config: AutoScalerConfig
    task_count: int
    since: datetime  # when the autoscaler began
    samples: Samples = ()  # (when, the aggregate of the lags) in the order of time
    last_action_at: datetime | None = None  # its own
    last_check_at: datetime | None = None
    partitions: int | None = None  # beyond so many indexers some would have nothing to read; None where that is not so
    steady: bool = True  # the task reads, and none before it is still publishing
    granted: bool = True  # as many indexers run as it wants


def wanted_task_count(io_config: IOConfig, decided: int | None) -> int:
    """How many indexers a supervisor wants. ``decided``: by its autoscaler, perhaps under an older spec."""
    config = io_config.auto_scaler
    if config is None:
        return io_config.taskCount
    least, most = config.bounds
    start = config.taskCountStart or least
    return min(max(start if decided is None else decided, least), most)


def is_due(observed: LagObservation) -> bool:
    """Whether it is time to look at the lag."""
    config, now = observed.config, observed.now
    if now < observed.since + _ms(config.scaleActionStartDelayMillis):
        return False
    return observed.last_check_at is None or now >= observed.last_check_at + _ms(config.scaleActionPeriodMillis)


def window_start(observed: LagObservation) -> datetime:
    """Older samples do not count: those beyond the range, and those from before the last action."""
    beginnings = [observed.now - _ms(observed.config.lagCollectionRangeMillis), observed.since, observed.last_action_at]
    return max(b for b in beginnings if b is not None)


def autoscale(observed: LagObservation) -> Scaling | None:
    """What to do about the lag; None: nothing."""
    config = observed.config
    pause = _ms(config.minTriggerScaleActionFrequencyMillis)
    if not observed.steady or (observed.last_action_at is not None and observed.now < observed.last_action_at + pause):
        return None
    lags = _sampled_lags(observed)
    if not lags:
        return None
    least, most = (min(bound, observed.partitions or bound) for bound in config.bounds)
    above = sum(lag >= config.scaleOutThreshold for lag in lags)
    below = sum(lag <= config.scaleInThreshold for lag in lags)
    if above >= config.triggerScaleOutFractionThreshold * len(lags):
        if observed.task_count >= most or not observed.granted:
            return None
        after = min(observed.task_count + config.scaleOutStep, most)
        return Scaling(observed.task_count, after, _reason(observed, lags, above, "at least", config.scaleOutThreshold))
    if below >= config.triggerScaleInFractionThreshold * len(lags) and observed.task_count > least:
        after = max(observed.task_count - config.scaleInStep, least)
        return Scaling(observed.task_count, after, _reason(observed, lags, below, "at most", config.scaleInThreshold))
    return None


def _sampled_lags(observed: LagObservation) -> list[int]:
    """The last lag of every collection interval in the window."""
    start, step = window_start(observed), _ms(observed.config.lagCollectionIntervalMillis)
    by_interval = {(at - start) // step: lag for at, lag in observed.samples if start < at <= observed.now}
    return list(by_interval.values())


def _reason(observed: LagObservation, lags: list[int], how_many: int, relation: str, threshold: int) -> str:
    samples = "sample" if len(lags) == 1 else "samples"
    name = _LAGS[observed.config.lagAggregate or "SUM"]
    return f"{name} was {relation} {threshold:,} in {how_many:,} of {len(lags):,} {samples}; it is {lags[-1]:,} now."


def _ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)
