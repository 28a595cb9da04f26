"""What an autoscaler with other parameters would have decided on a lag that was recorded. Pure.

The lag stays as it was: with more or fewer indexers it would have been another one, which nobody can know.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.supervisors.autoscale import LagObservation, Samples, Scaling, autoscale, is_due, window_start
from ingestion.specs.inputs.auto_scaler import AutoScalerConfig

MAX_CHECKS = 2_000


@dataclass(frozen=True)
class Decision:
    """One scale action."""

    at: datetime
    scaling: Scaling


@dataclass(frozen=True)
class Simulation:
    """From the first sample to the last."""

    decisions: list[Decision]
    counts: list[tuple[datetime, int]]  # since when, how many indexers; the first is the start
    checks: int


def simulate(
    config: AutoScalerConfig, samples: Samples, *, begin_with: int, partitions: int | None = None
) -> Simulation:
    """``samples``: (when, lag) in the order of time. As if its tasks read all the time, and got all they asked for."""
    if not samples:
        return Simulation([], [], 0)
    times = [at for at, _ in samples]
    count, decisions, checks = begin_with, [], 0
    last_action: datetime | None = None
    last_check: datetime | None = None
    for now in _check_times(config, times):
        observed = LagObservation(now, config, count, times[0], (), last_action, last_check, partitions)
        if not is_due(observed):
            continue
        last_check, checks = now, checks + 1
        scaling = autoscale(_with_samples(observed, samples, times))
        if scaling is not None:
            decisions.append(Decision(now, scaling))
            last_action, count = now, scaling.after
    counts = [(times[0], begin_with), *((d.at, d.scaling.after) for d in decisions)]
    return Simulation(decisions, counts, checks)


def _check_times(config: AutoScalerConfig, times: Sequence[datetime]) -> list[datetime]:
    """When the autoscaler would have looked."""
    span = times[-1] - times[0]
    step = max(timedelta(milliseconds=config.scaleActionPeriodMillis), span / MAX_CHECKS, timedelta(seconds=1))
    return [times[0] + step * n for n in range(int(span / step) + 1)]


def _with_samples(observed: LagObservation, samples: Samples, times: Sequence[datetime]) -> LagObservation:
    begin, end = bisect_right(times, window_start(observed)), bisect_right(times, observed.now)
    return LagObservation(
        observed.now,
        observed.config,
        observed.task_count,
        observed.since,
        samples[begin:end],
        observed.last_action_at,
        observed.last_check_at,
        observed.partitions,
    )
