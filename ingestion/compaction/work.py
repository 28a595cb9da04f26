"""One job: merge, then have the one replaced by the other."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

from ingestion.client import Unreachable
from ingestion.client.compaction import CompactionControlPlane
from ingestion.compaction.merging import merge
from ingestion.segments import open_deep_storage
from ingestion.specs.compaction import CompactionJob, ReplaceAnswer, ReplaceRequest
from ingestion.task.failpoints import Failpoints

LONGEST_S = 300.0  # without an answer; the files are orphans then, unless it was taken
_PAUSE_S = 1.0


def run(job: CompactionJob, client: CompactionControlPlane, scratch: Path) -> ReplaceAnswer:
    """Raises what a merge does, and ``ClientError``: ``PublishRefused`` when others were quicker."""
    failpoints = Failpoints(job.failpoints)
    failpoints.reach("taken")
    merged = merge(job, open_deep_storage(job.deep_storage), scratch)
    failpoints.reach("written")
    request = ReplaceRequest(
        replace_id=uuid.uuid4(),
        attempt=job.attempt,
        read=merged.read,
        segments=merged.files,
        counted=merged.counted,
    )
    answer = _replaced(job, client, request)
    failpoints.reach("replaced")
    return answer


def _replaced(job: CompactionJob, client: CompactionControlPlane, request: ReplaceRequest) -> ReplaceAnswer:
    """Without an answer nothing is known: the same is asked again."""
    end = time.monotonic() + LONGEST_S
    while True:
        try:
            return client.replace(job.job_id, request)
        except Unreachable:
            if time.monotonic() > end:
                raise
            time.sleep(_PAUSE_S)
