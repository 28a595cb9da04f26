"""Handoffs of the one loop on a source that gathers: as it comes unless the spec says when."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ingestion.client import MemoryControlPlane
from ingestion.sources import Batch
from ingestion.sources.memory import MemorySource
from ingestion.specs.protocol import Advance
from tests.support.indexer import TOPIC, assignment, record, stored, total


@dataclass
class Log(MemorySource):
    """One partition, read in order."""

    gathers: bool = True

    def take(self, timeout_s: float) -> Batch | None:
        batch = super().take(timeout_s)
        if batch is None:
            return None
        [(partition, start, end)] = batch.hulls()
        return replace(batch, progress={partition: Advance(start=start, end=end)}, deadline=float("inf"))


def log(records: int) -> Log:
    return Log([(0, n, record(n)) for n in range(records)])


@pytest.fixture
def plane(tmp_path: Path) -> MemoryControlPlane:
    found = MemoryControlPlane(assignment(tmp_path, kafka=True))
    found.stored[TOPIC.topic_id, 0] = 0
    return found


def test_all_that_there_is_is_handed_off_together_as_soon_as_it_is_read(
    run_indexer: Any, plane: MemoryControlPlane, tmp_path: Path
) -> None:
    run_indexer(log(250), plane, kafka=True)
    assert stored(plane, tmp_path) == list(range(250))
    assert [p.progress for p in plane.published] == [{0: Advance(start=0, end=250)}]


def test_a_period_that_is_given_is_kept_to(run_indexer: Any, plane: MemoryControlPlane) -> None:
    run_indexer(log(250), plane, kafka=True, tuningConfig={"intermediateHandoffPeriod": "PT1H"})
    assert plane.published == []


@pytest.mark.parametrize("tuning", [{"maxTotalRows": 100}, {"maxRowsPerSegment": 100}])
def test_limits_of_rows_are_kept_to_whatever_there_is_to_read(
    run_indexer: Any, plane: MemoryControlPlane, tmp_path: Path, tuning: dict[str, int]
) -> None:
    run_indexer(log(300), plane, kafka=True, tuningConfig=tuning)
    assert stored(plane, tmp_path) == list(range(300))
    assert [p.counters.published for p in plane.published] == [100, 100, 100]
    assert total(plane).polled == 300
