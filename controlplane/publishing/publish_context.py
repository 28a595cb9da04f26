"""How a publish begins: its indexer's row is locked, and all read that it must know before it writes.

In one round trip with the transaction's beginning: between two of them a busy machine lets other processes go first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from controlplane.common.database import pipeline
from controlplane.publishing.fence import LOCK_FENCE, LockedFence, LockedSource, fence_from_row
from controlplane.publishing.postgres_ranges import Ranges, get_or_create_keys
from controlplane.publishing.publication import KNOWN_SCHEMAS, fingerprints
from controlplane.publishing.settled import OVERLAPS_OF_INDEXER, merge_by_partition, range_columns
from ingestion.specs.messages.protocol import PublishRequest

EarlierPublish = tuple[bool, list[str]]
_EARLIER = "SELECT abandoned, segment_ids FROM publishing_publish WHERE id = %s"
_KEYS = """
    SELECT k.partition, k.id FROM publishing_indexerfence f JOIN publishing_progresskey k ON k.source_id = f.source_id
    WHERE f.task_id = %s AND f.number = %s AND k.partition = ANY(%s)
"""


@dataclass(frozen=True)
class PublishContext:
    """What a publish knows of the store when it begins."""

    fence: LockedFence
    source: LockedSource
    earlier_publish: EarlierPublish | None  # the same publish before: whether it was abandoned, and its segments' ids
    keys: dict[int, int]  # partition → progress key
    duplicates: dict[int, Ranges]  # what of the offsets is settled already; others may add to it until the commit
    schemas: bool  # whether those of all its files are stored


def publish_context(task_id: str, number: int, request: PublishRequest, settling: dict[int, Ranges]) -> PublishContext:
    """In the caller's transaction. Raises ``PublishRefused`` (fenced) for an old epoch, and for another topic."""
    partitions = sorted({*settling, *request.outcomes})
    schemas = fingerprints(request.segments)
    indexer = (task_id, number)
    with pipeline() as cursors:
        # Each statement sees what was committed when it began: those after the first, all of the lock's last holder.
        locked = cursors().execute(LOCK_FENCE, indexer)
        earlier = cursors().execute(_EARLIER, (request.publish_id,))
        keys = cursors().execute(_KEYS, (*indexer, partitions))
        overlaps = cursors().execute(OVERLAPS_OF_INDEXER, (*range_columns(settling), *indexer))
        known_schemas = cursors().execute(
            KNOWN_SCHEMAS, {"task": task_id, "number": number, "fingerprints": list(schemas)}
        )
    fence = fence_from_row(locked.fetchone(), task_id, number, request.epoch)
    source = fence.reading(request.topic_id)
    answer = earlier.fetchone()
    known_keys = dict(keys.fetchall())
    return PublishContext(
        fence=fence,
        source=source,
        earlier_publish=None if answer is None else (answer[0], json.loads(answer[1])),
        keys=known_keys if len(known_keys) == len(partitions) else get_or_create_keys(source.id, partitions),
        duplicates=merge_by_partition(overlaps.fetchall()),
        schemas=schemas.keys() <= {name for (name,) in known_schemas.fetchall()},
    )
