"""What a spec will write, judged by its sample: pure.

A rate is read off the records' own times in Kafka. All of it is what the newest records suggest, no promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ingestion.specs import AnyGranularity
from ingestion.specs.sampling import STORED, KeptRecord, SampleAnswer

A_MINUTE_S = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Rows a second that one indexer takes in the project's own benchmarks, a wide margin below what it reaches there.
INDEXER_ROWS_PER_S = 50_000


@dataclass(frozen=True)
class Outlook:
    """None where the sample does not tell."""

    records_per_s: float | None
    stored_share: float | None  # of the records, those that become part of a row
    rollup_ratio: float | None  # records to a row; None without rollup
    rows_per_minute: int | None
    bytes_per_minute: int | None  # in segments
    segments: int | None  # that a first minute writes to
    indexers_needed: int | None
    task_count: int


def outlook(kept: Sequence[KeptRecord], answer: SampleAnswer, task_count: int, granularity: AnyGranularity) -> Outlook:
    """``granularity``: of segments."""
    rate = rate_of(kept)
    stored = sum(record.outcome in STORED for record in answer.records)
    share = stored / len(answer.records) if answer.records else None
    rows = stored if answer.rollup is None else len(answer.rollup)
    ratio = stored / rows if answer.rollup is not None and rows else None
    per_minute = None
    if rate is not None and share is not None and stored:
        per_minute = round(rate * A_MINUTE_S * share * rows / stored)
    return Outlook(
        records_per_s=rate,
        stored_share=share,
        rollup_ratio=ratio,
        rows_per_minute=per_minute,
        bytes_per_minute=round(per_minute * answer.stored_bytes / rows) if per_minute is not None and rows else None,
        segments=_segments(answer, granularity) * task_count if stored else None,
        indexers_needed=None if rate is None else max(1, -(-int(rate) // INDEXER_ROWS_PER_S)),
        task_count=task_count,
    )


def rate_of(kept: Sequence[KeptRecord]) -> float | None:
    """Records a second of the topic: of each partition its newest records over the time between the first and the last.

    None without two records of one partition that differ in time.
    """
    rates = [rate for times in _by_partition(kept).values() if (rate := _rate(times)) is not None]
    return sum(rates) if rates else None


def _by_partition(kept: Iterable[KeptRecord]) -> dict[int, list[int]]:
    times: dict[int, list[int]] = {}
    for record in kept:
        if record.timestamp_ms is not None:
            times.setdefault(record.partition, []).append(record.timestamp_ms)
    return times


def _rate(times: list[int]) -> float | None:
    taken_ms = max(times) - min(times)
    return (len(times) - 1) * 1000 / taken_ms if taken_ms > 0 else None


def _segments(answer: SampleAnswer, granularity: AnyGranularity) -> int:
    """How many intervals a minute of such records falls into: those of the sample's times that are near its middle."""
    times = sorted(int(r.row["__time"]) for r in answer.records if r.row and r.row.get("__time") is not None)
    quarter = len(times) // 4
    near = times[quarter : len(times) - quarter]
    return len({granularity.bucket(_EPOCH + timedelta(milliseconds=t)) for t in near}) or 1
