"""How long a share group's records are held, and what became of their leases: pure sums over indexers' last words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controlplane.common.health import Code, Health
from ingestion.specs.messages.protocol import Leases

WARN_AT = 0.5  # of the lock's duration: beyond it a pause of the store or the disk makes locks expire


@dataclass(frozen=True)
class HoldTimes:
    """The time from poll to acknowledgement: percentiles to within a quarter, weighted by records. None: no data."""

    p50_ms: int | None
    p99_ms: int | None
    longest_ms: int | None
    lock_ms: int  # how long the broker lets a record be held


@dataclass(frozen=True)
class LeaseSums:
    """Sums over all indexers of a task, each since its present start."""

    acquired: int = 0
    accepted: int = 0
    rejected: int = 0
    released: int = 0
    lock_expired: int = 0
    deliveries: dict[int, int] = field(default_factory=dict)  # delivery count → records
    hold_ms: dict[int, int] = field(default_factory=dict)
    longest_ms: int = 0


def sums_of(indexers: Iterable[tuple[Mapping[str, Any], Mapping[str, int]]]) -> LeaseSums:
    """``indexers``: each one's leases and delivery counts, as its heartbeat said them."""
    total = LeaseSums()
    for raw_leases, deliveries in indexers:
        leases = Leases.model_validate(raw_leases)
        total = LeaseSums(
            acquired=total.acquired + leases.acquired,
            accepted=total.accepted + leases.accepted,
            rejected=total.rejected + leases.rejected,
            released=total.released + leases.released,
            lock_expired=total.lock_expired + leases.lock_expired,
            deliveries=_merged_counts(total.deliveries, {int(k): n for k, n in deliveries.items()}),
            hold_ms=_merged_counts(total.hold_ms, leases.hold_ms),
            longest_ms=max(total.longest_ms, leases.longest_hold_ms),
        )
    return total


def _merged_counts(first: Mapping[int, int], second: Mapping[int, int]) -> dict[int, int]:
    return {k: first.get(k, 0) + second.get(k, 0) for k in sorted({*first, *second})}


def hold_times(sums: LeaseSums, lock_ms: int) -> HoldTimes:
    """The percentiles; none is beyond the longest hold."""
    if not sums.hold_ms:
        return HoldTimes(None, None, None, lock_ms)
    p50, p99 = (min(_percentile(sums.hold_ms, share), sums.longest_ms) for share in (0.5, 0.99))
    return HoldTimes(p50, p99, sums.longest_ms, lock_ms)


def _percentile(buckets: Mapping[int, int], share: float) -> int:
    target = share * sum(buckets.values())
    cumulative = 0
    for bucket in sorted(buckets):
        cumulative += buckets[bucket]
        if cumulative >= target:
            return bucket
    return max(buckets)


def warnings_of(sums: LeaseSums, hold: HoldTimes, delivery_limit: int) -> list[Health]:
    """What an operator should look into before records are delivered for the last time."""
    warnings = []
    if hold.p99_ms is not None and hold.p99_ms > WARN_AT * hold.lock_ms:
        held = f"1 % of the records are held for {hold.p99_ms} ms or longer"
        cause = f"{held}, and their locks expire after {hold.lock_ms} ms."
        action = (
            "Raise groupConfig.recordLockDurationMs, lower consumersPerIndexer, or check how fast deep storage and the "
            "metadata store are."
        )
        warnings.append(Health.of(Code.LONG_HOLD, cause, action))
    if sums.lock_expired:
        cause = (
            f"{_records(sums.lock_expired)} held until the lock expired. Kafka delivers such records again. Each "
            f"delivery counts towards the limit of {delivery_limit}."
        )
        action = "If it happens again, raise groupConfig.recordLockDurationMs."
        warnings.append(Health.of(Code.LOCKS_EXPIRED, cause, action))
    last = sum(n for delivery, n in sums.deliveries.items() if delivery >= delivery_limit)
    if last:
        cause = f"{_records(last)} delivered for the last time: the limit is {delivery_limit} deliveries."
        action = "Check in the log of the task why earlier deliveries failed."
        warnings.append(Health.of(Code.LAST_DELIVERIES, cause, action))
    return warnings


def _records(count: int) -> str:
    return "1 record was" if count == 1 else f"{count:,} records were"
