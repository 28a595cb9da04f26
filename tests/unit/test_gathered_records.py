"""What has gathered of a partition, when another replica has published some of it."""

from __future__ import annotations

import numpy as np
import pytest

from ingestion.sources.base import Batch
from ingestion.specs.messages.protocol import Advance, Outcomes
from ingestion.task.gathered_records import Gathered
from ingestion.task.ledger import STORED, Ledger


def gathered() -> Gathered:
    """Records at 10, 11, 14, 15 of partition 0, with two markers between them; 100 records of partition 1."""
    found = Gathered()
    for partition, offsets, start, extra in (
        (0, [10, 11], 10, {}),
        (0, [14, 15], 12, {0: Outcomes(empty=[(12, 14)])}),
        (1, [*range(100)], 0, {}),
    ):
        batch = Batch(
            partitions=np.full(len(offsets), partition, dtype=np.int64),
            offsets=np.array(offsets, dtype=np.int64),
            delivery_counts=np.ones(len(offsets), dtype=np.int64),
            payloads=[b"{}"] * len(offsets),
            keys=[None] * len(offsets),
            timestamps_ms=[None] * len(offsets),
            deadline=float("inf"),
            extra=extra,
            progress={partition: Advance(start=start, end=offsets[-1] + 1)},
        )
        ledger = Ledger(batch)
        ledger.mark(range(len(offsets)), STORED)
        found.add(ledger, 0)
    return found


@pytest.mark.parametrize(
    ("stored", "redundant", "released"),
    [(None, 0, 4), (10, 0, 4), (11, 1, 3), (12, 2, 2), (14, 2, 2), (15, 3, 1), (16, 4, 0), (99, 4, 0), (3, 0, 4)],
)
def test_records_below_the_stored_offset_are_redundant(stored: int | None, redundant: int, released: int) -> None:
    found = gathered()
    assert found.drop([0], {0: stored, 1: 50}) == (redundant, released)
    assert found.records == 100
    assert found.drop([0, 1], {1: 50}) == (50, 50)
    assert not found
