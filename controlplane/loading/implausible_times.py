"""Times that a sample's rows can hardly mean: a number read in the wrong unit lands in 1970, or far ahead. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ingestion.specs.messages.sampling import SampleAnswer

AHEAD = timedelta(days=50 * 365)
_ALL_OF_1970_MS = 365 * 86_400_000
_EARLIEST_MS = 946_684_800_000  # 2000: a time that a record may well have
_A_YEAR_MS = 365 * 86_400_000
_PER_SECOND = {"posix": 1, "millis": 1_000, "micro": 1_000_000, "nano": 1_000_000_000}


@dataclass(frozen=True)
class OddTimes:
    """Rows in 1970 or before, or ``AHEAD`` of now."""

    rows: int
    total_rows: int  # all rows of the sample
    example_ms: int
    instead: str  # the format that makes a plausible time of the example; empty if none does
    instead_ms: int | None  # that time


def odd_times(answer: SampleAnswer, form: str, now: datetime) -> OddTimes | None:
    """``form``: the timestampSpec's; ``auto`` takes numbers for milliseconds. None if all times are plausible."""
    rows = (row for record in answer.records for row in record.stored_rows)
    times = [int(row["__time"]) for row in rows if row.get("__time") is not None]
    now_ms = int(now.astimezone(UTC).timestamp() * 1000)
    far_ms = now_ms + int(AHEAD.total_seconds()) * 1000
    odd = sorted(t for t in times if t < _ALL_OF_1970_MS or t > far_ms)
    if not odd:
        return None
    example = odd[len(odd) // 2]
    instead = _plausible_format(example, "millis" if form == "auto" else form, now_ms)
    return OddTimes(len(odd), len(times), example, *(instead or ("", None)))


def _plausible_format(time_ms: int, form: str, now_ms: int) -> tuple[str, int] | None:
    if form not in _PER_SECOND:
        return None
    candidates = ((name, time_ms * _PER_SECOND[form] // per_second) for name, per_second in _PER_SECOND.items())
    fitting: Sequence[tuple[str, int]] = [(n, t) for n, t in candidates if _EARLIEST_MS <= t <= now_ms + _A_YEAR_MS]
    return fitting[0] if fitting else None
