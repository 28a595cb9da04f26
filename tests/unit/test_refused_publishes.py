"""Publishes that are refused for what they say: cut up until the records at fault stand alone, never sent unchanged."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from ingestion.client.errors import Invalid, Unacceptable
from ingestion.client.memory import MemoryControlPlane
from ingestion.sources.base import ACCEPT, REJECT, RELEASE, Batch
from ingestion.sources.memory import MemoryLeasedSource
from ingestion.specs import offsets
from ingestion.specs.messages import publish_limits as limits
from ingestion.specs.messages.protocol import Advance, Outcomes, PublishAnswer, PublishRequest
from ingestion.task import batch_splitting, publishing
from ingestion.task.control import Control
from ingestion.task.errors import Refused
from tests.support.indexer import OneLog, assignment, record, stored, total

POISON = "poison"  # a field's name that this control plane can't keep


@dataclass
class Squeamish(MemoryControlPlane):
    """Refuses a column of the name above, and in the quarantine the payloads and places that it is told."""

    payloads: tuple[bytes, ...] = ()
    places: tuple[int, ...] = ()
    asked: list[PublishRequest] = field(default_factory=list)

    def publish(self, number: int, request: PublishRequest) -> PublishAnswer:
        self.asked.append(request)
        if any(c.name == POISON for s in request.segments for c in s.columns):
            raise Unacceptable("A value of the message cannot be stored.")
        for kept in request.quarantined:
            if kept.payload in self.payloads or kept.offset in self.places:
                raise Unacceptable("Something in quarantine can't be stored.")
        return super().publish(number, request)


def poison(n: int) -> bytes:
    return json.dumps({"time": "2025-06-01", "n": n, POISON: 1}).encode()


def quarantined(plane: MemoryControlPlane) -> dict[int, str]:
    return {q.offset: q.reason for p in plane.published for q in p.quarantined}


def test_a_share_groups_batch_is_cut_up_to_the_records_at_fault(run_indexer: Any, tmp_path: Path) -> None:
    """Row 30 of the failure matrix."""
    bad = {17, 18, 99}
    payloads = {n: poison(n) if n in bad else record(n) for n in range(100)}
    payloads[40] = b"no JSON"
    source = MemoryLeasedSource([(0, n, p) for n, p in payloads.items()])
    plane = Squeamish(assignment(tmp_path))
    run_indexer(source, plane)
    assert stored(plane, tmp_path) == [n for n in range(100) if n not in {*bad, 40}]
    assert quarantined(plane) == {**dict.fromkeys(bad, "refused"), 40: "unparseable"}
    kept = [q for p in plane.published for q in p.quarantined if q.reason == "refused"]
    assert [q.payload for q in kept] == [poison(n) for n in sorted(bad)]
    assert {q.error for q in kept} == {"its publish was refused: A value of the message cannot be stored."}
    assert {o for (_, o), v in source.acknowledgements.items() if v == REJECT} == {*bad, 40}
    assert (total(plane).polled, total(plane).published, total(plane).quarantined) == (100, 96, 4)
    assert all(len(p.quarantined) + sum(s.rows for s in p.segments) for p in plane.published)
    told = [(p.outcomes, [(s.offsets, s.columns) for s in p.segments]) for p in plane.asked]
    assert all(one != other for i, one in enumerate(told) for other in told[:i]), "nothing is sent twice"


@pytest.mark.parametrize("kind", ["share_group", "kafka"])
def test_what_is_refused_even_in_quarantine_leaves_its_place(run_indexer: Any, tmp_path: Path, kind: str) -> None:
    plane = Squeamish(assignment(tmp_path), payloads=(b"{",))
    payloads = [b"{" if n == 3 else record(n) for n in range(8)]
    if kind == "kafka":
        control = Control(0, 1)
        run_indexer(OneLog(payloads, control), plane, control=control, kafka=True)
    else:
        run_indexer(MemoryLeasedSource([(0, n, p) for n, p in enumerate(payloads)]), plane)
    assert stored(plane, tmp_path) == [0, 1, 2, 4, 5, 6, 7]
    [bare] = [q for p in plane.published for q in p.quarantined]
    assert (bare.offset, bare.payload, bare.key, bare.reason) == (3, None, None, "refused")
    assert bare.error.startswith(
        "(The rest of the record could not be stored.) its publish was refused: Something in quarantine"
    )


def test_when_not_even_a_place_is_taken_the_task_fails(run_indexer: Any, tmp_path: Path) -> None:
    plane = Squeamish(assignment(tmp_path), places=(3,))
    source = MemoryLeasedSource([(0, n, b"{" if n == 3 else record(n)) for n in range(8)])
    with pytest.raises(Refused, match="even of a quarantined record without its payload: Something in quarantine"):
        run_indexer(source, plane)
    assert ACCEPT not in source.acknowledgements.values() and set(source.acknowledgements.values()) == {RELEASE}


def test_when_it_is_no_records_fault_the_task_fails_and_quarantines_no_more(
    run_indexer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 30 of the failure matrix."""
    monkeypatch.setattr(batch_splitting, "MAX_IN_A_ROW", 5)
    plane = Squeamish(assignment(tmp_path))
    with pytest.raises(Refused, match="not because of a record: A value of the message cannot be stored"):
        run_indexer(MemoryLeasedSource([(0, n, poison(n)) for n in range(64)]), plane)
    assert len(quarantined(plane)) == 5


class Forbidding(MemoryControlPlane):
    tries = 0

    def publish(self, number: int, request: PublishRequest) -> PublishAnswer:
        self.tries += 1
        raise Invalid("status 409: the file is not there")


def test_a_refusal_that_cutting_up_can_not_help_ends_the_task_at_once(run_indexer: Any, tmp_path: Path) -> None:
    plane = Forbidding(assignment(tmp_path))
    with pytest.raises(Refused, match="the file is not there"):
        run_indexer(MemoryLeasedSource([(0, n, record(n)) for n in range(64)]), plane)
    assert plane.tries == 1


def test_with_stored_offsets_what_gathered_is_read_again_and_cut_up(run_indexer: Any, tmp_path: Path) -> None:
    """Row 30 of the failure matrix."""
    bad = {17, 250, 251}
    plane = Squeamish(assignment(tmp_path))
    control = Control(0, 1)
    source = OneLog([poison(n) if n in bad else record(n) for n in range(400)], control, batch_records=50)
    tuning = {"maxRowsPerSegment": 300, "intermediateHandoffPeriod": "PT1H"}
    run_indexer(source, plane, control=control, kafka=True, tuningConfig=tuning)
    assert stored(plane, tmp_path) == [n for n in range(400) if n not in bad]
    assert quarantined(plane) == dict.fromkeys(bad, "refused")
    assert source.rewinds == 1
    moves = [p.progress[0] for p in plane.published]
    assert [m.start for m in moves] == [0, *(m.end for m in moves[:-1])] and moves[-1].end == 400
    assert (total(plane).polled, total(plane).published, total(plane).quarantined) == (400, 397, 3)
    assert control.status.unpublished.released == 300


def test_a_publish_keeps_to_its_limits_by_itself(
    run_indexer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more segments, quarantined records and bytes than one may have: it is cut up before anything is sent."""
    monkeypatch.setattr(publishing, "MAX_SEGMENTS", 4)
    monkeypatch.setattr(limits, "MAX_QUARANTINED", 3)
    monkeypatch.setattr(limits, "MAX_KEPT_BYTES", 50)
    days = [json.dumps({"time": f"2025-06-{n % 28 + 1:02d}", "n": n}).encode() for n in range(28)]
    bad = [b"x" * 30, b"y" * 30, *[b"z"] * 8]
    plane = Squeamish(assignment(tmp_path))
    run_indexer(MemoryLeasedSource([(0, n, p) for n, p in enumerate([*days, *bad])]), plane)
    assert stored(plane, tmp_path) == list(range(28))
    assert len(quarantined(plane)) == 10 and set(quarantined(plane).values()) == {"unparseable"}
    assert all(len(p.segments) <= 4 and limits.excess(p) == "" for p in plane.asked)


def test_halves_take_what_belongs_to_their_offsets() -> None:
    [batch] = [b for b in [_batch([(0, 5), (1, 70), (0, 8), (2, 3), (0, 9), (1, 80)])] if b]
    batch = replace(
        batch,
        extra={
            0: Outcomes(empty=[(4, 5), (6, 8)], gap=[(10, 12)]),
            1: Outcomes(empty=[(71, 80)]),
            7: Outcomes(gap=[(0, 2)]),
        },
        progress={0: _to(4, 12), 1: _to(70, 81), 2: _to(3, 4), 7: _to(0, 2)},
    )
    first, second = batch_splitting.split_batch(batch, 3)
    assert (first.offsets.tolist(), second.offsets.tolist()) == ([5, 70, 8], [3, 9, 80])
    assert first.progress == {0: _to(4, 9), 1: _to(70, 80), 7: _to(0, 2)}
    assert second.progress == {0: _to(9, 12), 1: _to(80, 81), 2: _to(3, 4)}
    assert first.extra == {
        0: Outcomes(empty=[(4, 5), (6, 8)]),
        1: Outcomes(empty=[(71, 80)]),
        7: Outcomes(gap=[(0, 2)]),
    }
    assert second.extra == {0: Outcomes(gap=[(10, 12)])}
    for partition, advance in batch.progress.items():
        whole = [
            (p.progress[partition].start, p.progress[partition].end) for p in (first, second) if partition in p.progress
        ]
        assert offsets.merged(whole) == [(advance.start, advance.end)]


def _to(start: int, end: int) -> Advance:
    return Advance(start=start, end=end)


def _batch(places: list[tuple[int, int]]) -> Batch:
    nothing: list[None] = [None] * len(places)
    return Batch(
        partitions=np.array([p for p, _ in places], np.int64),
        offsets=np.array([o for _, o in places], np.int64),
        delivery_counts=np.ones(len(places), np.int64),
        payloads=nothing,
        keys=nothing,
        timestamps_ms=nothing,
        deadline=float("inf"),
    )


def test_a_columns_poison_goes_with_its_record(run_indexer: Any, tmp_path: Path) -> None:
    """The others' files have no column of that name, not even an empty one; named ones stay."""
    dimensions = {"dimensions": ["none"], "useSchemaDiscovery": True}
    plane = Squeamish(assignment(tmp_path))
    run_indexer(MemoryLeasedSource([(0, 0, record(0)), (0, 1, poison(1))]), plane, dimensionsSpec=dimensions)
    [file] = [s for p in plane.published for s in p.segments]
    names = pq.read_table(tmp_path / "segments" / file.path).column_names
    assert names == ["__time", "none", "n"] == [c.name for c in file.columns]
