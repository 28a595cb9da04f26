"""The reading of a rewind's part: few and large publishes, of which nobody sees one before the last."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from ingestion.client.errors import Unacceptable
from ingestion.client.memory import MemoryControlPlane
from ingestion.sources.base import Batch
from ingestion.sources.rewind import RewindSource
from ingestion.specs.messages.protocol import Advance, Outcomes, PublishAnswer, PublishRequest, RepairRange
from ingestion.task.control import Control
from ingestion.task.rewind import _storage, for_rewind
from tests.support.indexer import OneLog, Rewinding, assignment, record, stored

Run = Callable[..., MemoryControlPlane]
ALL = 250


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


def test_what_is_too_much_for_one_publish_needs_several(run_indexer: Run, tmp_path: Path) -> None:
    control = Control(0, 1)
    plane = run_indexer(WholeLog(records(), control), control=control, kafka=True, tuningConfig={"maxTotalRows": 100})
    assert len(plane.published) == 3
    assert stored(plane, tmp_path) == list(range(ALL))


def test_a_publish_that_is_refused_for_its_size_is_cut_up(run_indexer: Run, tmp_path: Path) -> None:
    class Refusing(MemoryControlPlane):
        def publish(self, number: int, request: PublishRequest) -> PublishAnswer:
            if request.counters.polled > 60:
                raise Unacceptable("It is too large.")
            return super().publish(number, request)

    control = Control(0, 1)
    plane = Refusing(assignment(tmp_path, kafka=True))
    run_indexer(WholeLog(records(), control, end="continue"), plane, control=control, kafka=True)
    assert stored(plane, tmp_path) == list(range(ALL))
    assert len(plane.published) > 4


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
    source = RewindSource([], lambda _: cast("Any", Read(batch)))
    first = source.poll(0)
    assert first is not None and first.progress == {0: Advance(start=2, end=14)}
    assert source.poll(0) is None and source.exhausted()
    source = RewindSource([], lambda _: cast("Any", Read(batch, batch)))
    assert source.poll(0) is not None and not source.exhausted()


def test_what_is_given_up_is_read_again_from_behind_the_last_publish() -> None:
    class Read:
        def close(self) -> None:
            """Nothing to do."""

    begun: list[list[tuple[int, int, int]]] = []

    def make_reader(ranges: list[RepairRange]) -> Any:
        begun.append([(r.partition, r.start, r.end) for r in ranges])
        return Read()

    wanted = [(0, 0, 10), (0, 20, 30), (1, 0, 10)]
    source = RewindSource([RepairRange(partition=p, start=s, end=e) for p, s, e in wanted], make_reader)
    source.published({0: 25})
    source.rewind([0])
    source.published({0: 30, 1: 10})
    source.rewind([0])
    assert begun == [wanted, [(0, 25, 30), (1, 0, 10)], []]


def test_periods_do_not_make_a_stored_record_late(tmp_path: Path) -> None:
    """A fixed time does: it is the same whenever the record is read."""
    fixed = "2025-06-01T00:00:00Z"
    given = assignment(tmp_path, kafka=True, io_config={"earlyMessageRejectionPeriod": "PT1H"}).spec
    assert for_rewind(given).ioConfig.earlyMessageRejectionPeriod is None
    given = assignment(tmp_path, kafka=True, io_config={"lateMessageRejectionStartDateTime": fixed}).spec
    assert for_rewind(given).ioConfig.lateMessageRejectionStartDateTime is not None
    given = assignment(tmp_path, kafka=True, tuningConfig={"maxTotalRows": 5}).spec
    assert for_rewind(given).tuningConfig.maxTotalRows is None


def test_a_dry_run_writes_files_that_go_with_its_task(tmp_path: Path) -> None:
    given = assignment(tmp_path, kafka=True)
    kept, gone = _storage(given, tmp_path), _storage(given.model_copy(update={"dry_run": True}), tmp_path / "scratch")
    assert kept.url("a").startswith(f"file://{tmp_path}/segments/")
    assert gone.url("a").startswith(f"file://{tmp_path}/scratch/")
