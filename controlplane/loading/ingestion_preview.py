"""What a spec will write, judged by its sample: pure.

A rate is what came within a minute, an hour or a day: the newest records may be one burst, and say none. All of it is
what they suggest, no promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ingestion.specs.messages.sampling import STORED, Arrived, SampleAnswer
from ingestion.specs.schema.periods import AnyGranularity

A_MINUTE_S = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_INTERVALS_PER_MINUTE = 2  # that a minute lies in, at most, when intervals are not shorter than it
FEW_ROWS = 1000  # of a segment
# Rows a second that one indexer takes in the project's own benchmarks, a wide margin below what it reaches there.
INDEXER_ROWS_PER_S = 50_000


@dataclass(frozen=True)
class IngestionPreview:
    """None where the sample does not tell."""

    arrived: Arrived | None
    records_per_s: float | None
    stored_share: float | None  # of the records, those that become part of a row
    rollup_ratio: float | None  # records to a row; None without rollup
    rows_per_minute: int | None
    bytes_per_minute: int | None  # in segments
    segments: int | None  # that a first minute writes to
    indexers_needed: int | None
    task_count: int

    @property
    def has_small_segments(self) -> bool:
        """A minute writes to many intervals, and few rows to each: files without end, which are merged later."""
        if self.rows_per_minute is None or self.segments is None:
            return False
        return (
            self.segments > MAX_INTERVALS_PER_MINUTE * self.task_count
            and self.rows_per_minute < FEW_ROWS * self.segments
        )


def preview_ingestion(
    arrived: Arrived | None, answer: SampleAnswer, task_count: int, granularity: AnyGranularity
) -> IngestionPreview:
    """``granularity``: of segments."""
    rate = None if arrived is None else arrived.per_s
    stored = sum(record.outcome in STORED for record in answer.records)
    share = stored / len(answer.records) if answer.records else None
    rows_before_rollup = sum(max(1, len(record.stored_rows)) for record in answer.records if record.outcome in STORED)
    rows = rows_before_rollup if answer.rollup is None else len(answer.rollup)
    ratio = stored / rows if answer.rollup is not None and rows else None
    per_minute = None
    if rate is not None and share is not None and stored:
        per_minute = round(rate * A_MINUTE_S * share * rows / stored)
    return IngestionPreview(
        arrived=arrived,
        records_per_s=rate,
        stored_share=share,
        rollup_ratio=ratio,
        rows_per_minute=per_minute,
        bytes_per_minute=round(per_minute * answer.stored_bytes / rows) if per_minute is not None and rows else None,
        segments=_segments(answer, granularity) * task_count if stored else None,
        indexers_needed=None if rate is None else max(1, -(-int(rate) // INDEXER_ROWS_PER_S)),
        task_count=task_count,
    )


def _segments(answer: SampleAnswer, granularity: AnyGranularity) -> int:
    """How many intervals a minute of such records falls into: those of the sample's times that are near its middle."""
    rows = (row for record in answer.records for row in record.stored_rows)
    times = sorted(int(row["__time"]) for row in rows if row.get("__time") is not None)
    quarter = len(times) // 4
    near = times[quarter : len(times) - quarter]
    return len({granularity.bucket(_EPOCH + timedelta(milliseconds=t)) for t in near}) or 1
