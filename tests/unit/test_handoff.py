"""Handoffs of the one loop on a source that gathers: as it comes unless the spec says when."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingestion.client.memory import MemoryControlPlane
from ingestion.specs.messages.protocol import Advance
from ingestion.task.control import Control
from tests.support.indexer import OneLog, assignment, record, stored, total


@pytest.fixture
def plane(tmp_path: Path) -> MemoryControlPlane:
    return MemoryControlPlane(assignment(tmp_path, kafka=True))


@pytest.fixture
def run(run_indexer: Any, plane: MemoryControlPlane) -> Callable[..., None]:
    """Runs an indexer over so many records; at their end it is stopped, so that nothing is handed off for that."""

    def run_over(records: int, **more: Any) -> None:
        control = Control(0, 1)
        log = OneLog([record(n) for n in range(records)], control, "stop")
        run_indexer(log, plane, control=control, kafka=True, **more)

    return run_over


def test_all_that_there_is_is_handed_off_together_as_soon_as_it_is_read(
    run: Callable[..., None], plane: MemoryControlPlane, tmp_path: Path
) -> None:
    run(250)
    assert stored(plane, tmp_path) == list(range(250))
    assert [p.progress for p in plane.published] == [{0: Advance(start=0, end=250)}]


def test_a_period_that_is_given_is_kept_to(run: Callable[..., None], plane: MemoryControlPlane) -> None:
    run(250, tuningConfig={"intermediateHandoffPeriod": "PT1H"})
    assert plane.published == []


@pytest.mark.parametrize("tuning", [{"maxTotalRows": 100}, {"maxRowsPerSegment": 100}])
def test_limits_of_rows_are_kept_to_whatever_there_is_to_read(
    run: Callable[..., None], plane: MemoryControlPlane, tmp_path: Path, tuning: dict[str, int]
) -> None:
    run(300, tuningConfig=tuning)
    assert stored(plane, tmp_path) == list(range(300))
    assert [p.counters.published for p in plane.published] == [100, 100, 100]
    assert total(plane).polled == 300
