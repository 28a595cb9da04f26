"""When a query that ends has gathered enough for a micro-batch: nobody waits for rows, and each has its price."""

from __future__ import annotations

from dataclasses import dataclass

SETTLE_S = 1.0  # after the last records, for those that are released or come again
COMPLETE_S = 0.2  # the same where each partition was polled to its end: others may still write what they polled
BYTES_DIVISOR = 4  # of the bytes that may wait


@dataclass(frozen=True)
class Backlog:
    """What no micro-batch has taken."""

    rows: int
    size_bytes: int
    quiet_s: float  # since records were polled last
    complete: bool  # each partition was polled to its end


def is_batch_due(backlog: Backlog, most_rows: int | None, most_bytes: int) -> bool:
    """``most_rows``: of a micro-batch; ``most_bytes``: past which nobody polls."""
    if not backlog.rows:
        return False
    if most_rows is not None and backlog.rows >= most_rows:
        return True
    quiet = backlog.quiet_s >= (COMPLETE_S if backlog.complete else SETTLE_S)
    return quiet or backlog.size_bytes >= most_bytes / BYTES_DIVISOR
