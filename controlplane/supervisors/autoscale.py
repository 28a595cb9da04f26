"""How many indexers a supervisor's lag asks for: Druid's lag-based autoscaler, a pure function of what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from controlplane.supervisors.health_messages import utc
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


class Reason(StrEnum):
    """What the autoscaler's last look at the lag came to; for programs."""

    SCALED = "scaled"
    LAG_IN_BOUNDS = "lag_in_bounds"
    NOT_LONG_ENOUGH = "not_long_enough"
    AT_MAXIMUM = "at_maximum"
    AT_PARTITIONS = "at_partitions"
    AT_MINIMUM = "at_minimum"
    NO_FREE_SLOT = "no_free_slot"
    COOLDOWN = "cooldown"
    START_DELAY = "start_delay"
    NOT_READING = "not_reading"
    LAG_UNKNOWN = "lag_unknown"


@dataclass(frozen=True)
class Verdict:
    """What it does about the lag, and why it does nothing."""

    reason: Reason
    text: str
    scaling: Scaling | None = None


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


def starts_at(observed: LagObservation) -> datetime:
    """When it first looks at the lag."""
    return observed.since + _ms(observed.config.scaleActionStartDelayMillis)


def is_due(observed: LagObservation) -> bool:
    """Whether it is time to look at the lag."""
    config, now = observed.config, observed.now
    if now < starts_at(observed):
        return False
    return observed.last_check_at is None or now >= observed.last_check_at + _ms(config.scaleActionPeriodMillis)


def window_start(observed: LagObservation) -> datetime:
    """Older samples do not count: those beyond the range, and those from before the last action."""
    beginnings = [observed.now - _ms(observed.config.lagCollectionRangeMillis), observed.since, observed.last_action_at]
    return max(b for b in beginnings if b is not None)


def autoscale(observed: LagObservation) -> Scaling | None:
    """What to do about the lag; None: nothing."""
    return judge(observed).scaling


def judge(observed: LagObservation) -> Verdict:
    """What to do about the lag, and why."""
    config = observed.config
    if not observed.steady:
        return Verdict(Reason.NOT_READING, "No indexer reads, or a task hands off.")
    up_delay, down_delay = config.delays
    if (cooldown := _cooldown(observed, min(up_delay, down_delay), "change")) is not None:
        return cooldown
    lags = _sampled_lags(observed)
    if not lags:
        return Verdict(Reason.LAG_UNKNOWN, "No lag was observed since its last change, or in the time that counts.")
    least, most = (min(bound, observed.partitions or bound) for bound in config.bounds)
    above = sum(lag >= config.scaleOutThreshold for lag in lags)
    below = sum(lag <= config.scaleInThreshold for lag in lags)
    high = _reason(observed, lags, above, "at least", config.scaleOutThreshold)
    low = _reason(observed, lags, below, "at most", config.scaleInThreshold)
    if above >= config.triggerScaleOutFractionThreshold * len(lags):
        return _cooldown(observed, up_delay, "raise") or _scale_out(observed, most, high)
    if below >= config.triggerScaleInFractionThreshold * len(lags):
        if observed.task_count <= least:
            return Verdict(Reason.AT_MINIMUM, f"{low} It runs as few indexers as it may: {least:,}.")
        if (cooldown := _cooldown(observed, down_delay, "lower")) is not None:
            return cooldown
        after = max(observed.task_count - config.scaleInStep, least)
        return Verdict(Reason.SCALED, low, Scaling(observed.task_count, after, low))
    if above:
        share = config.triggerScaleOutFractionThreshold
        return Verdict(Reason.NOT_LONG_ENOUGH, f"{high} It adds indexers from {share:.0%} of the samples on.")
    if below and observed.task_count > least:
        share = config.triggerScaleInFractionThreshold
        return Verdict(Reason.NOT_LONG_ENOUGH, f"{low} It removes indexers from {share:.0%} of the samples on.")
    return Verdict(Reason.LAG_IN_BOUNDS, f"The lag asks for no other number. It is {lags[-1]:,} now.")


def _cooldown(observed: LagObservation, delay: timedelta, verb: str) -> Verdict | None:
    """While the last change is more recent than ``delay``."""
    if observed.last_action_at is None or observed.now >= observed.last_action_at + delay:
        return None
    again = utc(observed.last_action_at + delay)
    return Verdict(Reason.COOLDOWN, f"It changed the number recently. It may {verb} it again at {again}.")


def _scale_out(observed: LagObservation, most: int, high: str) -> Verdict:
    if observed.task_count >= most:
        if most < observed.config.bounds[1]:
            return Verdict(Reason.AT_PARTITIONS, f"{high} The topic has no more than {most:,} partitions to read.")
        return Verdict(Reason.AT_MAXIMUM, f"{high} It runs as many indexers as it may: {most:,}.")
    if not observed.granted:
        return Verdict(Reason.NO_FREE_SLOT, f"{high} The indexers that it last added still wait for free slots.")
    after = min(observed.task_count + observed.config.scaleOutStep, most)
    return Verdict(Reason.SCALED, high, Scaling(observed.task_count, after, high))


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
