"""What is to be one publish is one, however much it is, or none: the reading of a rewind's part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from ingestion.client.errors import Unacceptable
from ingestion.client.memory import MemoryControlPlane
from ingestion.sources.base import Batch
from ingestion.sources.rewind import RewindSource
from ingestion.specs.messages.protocol import Advance, Outcomes, PublishAnswer, PublishRequest
from ingestion.task.control import Control
from ingestion.task.errors import Refused
from ingestion.task.rewind import _storage, for_rewind
from tests.support.indexer import OneLog, Rewinding, assignment, record, stored

Run = Callable[..., MemoryControlPlane]
ALL = 250
AT_ONCE: dict[str, Any] = {"maxTotalRows": 100}  # a handoff is due after each batch


class Whole(Rewinding):
    whole = True

    def exhausted(self) -> bool:
        return self._next[0] == ALL


class WholeLog(OneLog):
    def __call__(self, claim: Any) -> Rewinding:
        made = super().__call__(claim)
        made.__class__ = Whole
        return made


def records() -> list[bytes]:
    return [record(n) for n in range(ALL)]


def test_it_is_published_once_at_its_end(run_indexer: Run, tmp_path: Path) -> None:
    control = Control(0, 1)
    plane = run_indexer(WholeLog(records(), control), control=control, kafka=True, tuningConfig=AT_ONCE)
    assert len(plane.published) == 1
    assert stored(plane, tmp_path) == list(range(ALL))


@pytest.mark.parametrize("told", ["finish", "stop"])
def test_told_to_end_before_it_publishes_nothing(run_indexer: Run, told: Any) -> None:
    control = Control(0, 1)
    source = WholeLog(records()[:200], control, end=told)  # it never has all
    plane = run_indexer(source, control=control, kafka=True, tuningConfig=AT_ONCE)
    assert plane.published == []


def test_a_refused_publish_is_not_cut_up(run_indexer: Run, tmp_path: Path) -> None:
    class Refusing(MemoryControlPlane):
        def publish(self, number: int, request: PublishRequest) -> PublishAnswer:
            raise Unacceptable("It is too large.")

    control = Control(0, 1)
    plane = Refusing(assignment(tmp_path, kafka=True))
    with pytest.raises(Refused, match="All of these records must be one publish"):
        run_indexer(WholeLog(records(), control), plane, control=control, kafka=True, tuningConfig=AT_ONCE)


def test_a_batch_reaches_from_its_first_to_its_last_offset() -> None:
    """Whether there was a record or not."""

    class Read:
        def __init__(self, *batches: Batch) -> None:
            self.batches = list(batches)

        def poll(self, timeout_s: float) -> Batch | None:
            return self.batches.pop(0) if self.batches else None

        def exhausted(self) -> bool:
            return not self.batches

    batch = Batch(
        partitions=np.array([0, 0]),
        offsets=np.array([5, 9]),
        delivery_counts=np.array([1, 1]),
        payloads=[b"a", b"b"],
        keys=[None, None],
        timestamps_ms=[None, None],
        deadline=0.0,
        extra={0: Outcomes(gap=[(2, 4)], empty=[(12, 14)])},
    )
    source = RewindSource(lambda: cast("Any", Read(batch)))
    first = source.poll(0)
    assert first is not None and first.progress == {0: Advance(start=2, end=14)}
    assert source.poll(0) is None and source.exhausted()
    source = RewindSource(lambda: cast("Any", Read(batch, batch)))
    assert source.poll(0) is not None and not source.exhausted()


def test_periods_do_not_make_a_stored_record_late(tmp_path: Path) -> None:
    """A fixed time does: it is the same whenever the record is read."""
    fixed = "2025-06-01T00:00:00Z"
    given = assignment(tmp_path, kafka=True, io_config={"earlyMessageRejectionPeriod": "PT1H"}).spec
    assert for_rewind(given).ioConfig.earlyMessageRejectionPeriod is None
    given = assignment(tmp_path, kafka=True, io_config={"lateMessageRejectionStartDateTime": fixed}).spec
    assert for_rewind(given).ioConfig.lateMessageRejectionStartDateTime is not None


def test_a_dry_run_writes_files_that_go_with_its_task(tmp_path: Path) -> None:
    given = assignment(tmp_path, kafka=True)
    kept, gone = _storage(given, tmp_path), _storage(given.model_copy(update={"dry_run": True}), tmp_path / "scratch")
    assert kept.url("a").startswith(f"file://{tmp_path}/segments/")
    assert gone.url("a").startswith(f"file://{tmp_path}/scratch/")
