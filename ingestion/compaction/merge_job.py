"""One job: merge, then have the one replaced by the other."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

from ingestion.client.compaction import CompactionControlPlane
from ingestion.client.retry import until_answered
from ingestion.compaction.merging import Merged, merge
from ingestion.failpoints import Failpoints
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.deep_storage import DeepStorage, open_deep_storage
from ingestion.specs.messages.compaction import CompactionJob, ReplaceAnswer, ReplaceRequest

LONGEST_S = 300.0  # without an answer; the files are orphans then, unless it was taken
Work = Callable[[CompactionJob, DeepStorage, Path, ColumnIds], Merged]


def run(job: CompactionJob, client: CompactionControlPlane, scratch: Path, work: Work = merge) -> ReplaceAnswer:
    """Raises what ``work`` does, and ``ClientError``: ``PublishRefused`` when others were quicker."""
    failpoints = Failpoints(job.failpoints)
    failpoints.reach("taken")
    ids = ColumnIds(lambda request: until_answered(lambda: client.columns(job.job_id, request), LONGEST_S))
    merged = work(job, open_deep_storage(job.deep_storage), scratch, ids)
    failpoints.reach("written")
    request = ReplaceRequest(
        replace_id=uuid.uuid4(),
        attempt=job.attempt,
        read=merged.read,
        segments=merged.files,
        counted=merged.counted,
    )
    answer = until_answered(lambda: client.replace(job.job_id, request), LONGEST_S)
    failpoints.reach("replaced")
    return answer
