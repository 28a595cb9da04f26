"""How many of a task's records could not be read, or only in part: over all its indexers, whatever became of them."""

from __future__ import annotations

from controlplane.common.database import cursor
from ingestion.specs.protocol import ParseExceptionTotals

_TOTALS = """
    SELECT coalesce(sum(unparseable + processed_with_error), 0)::int8,
        (SELECT count(*) FROM segments_faultyrecord WHERE task_id = %s)
    FROM segments_writer WHERE task_id = %s
"""


def totals_of_task(task_id: str) -> ParseExceptionTotals:
    """What is committed of the task's totals, and what this transaction adds."""
    with cursor() as c:
        seen, saved = c.execute(_TOTALS, (task_id, task_id)).fetchone() or (0, 0)
    return ParseExceptionTotals(seen=seen, saved=saved)
