"""A claim that the control plane answers late: the indexer reads, and its state says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ingestion.client.errors import Unreachable
from ingestion.client.memory import MemoryControlPlane
from ingestion.specs.messages.protocol import ClaimAnswer, ClaimRequest
from ingestion.task.control import Control
from tests.support.indexer import OneLog, assignment, record, stored

Run = Callable[..., MemoryControlPlane]


class LateAnswer(MemoryControlPlane):
    """Is away at the first claim."""

    def __init__(self, given: Any, control: Control) -> None:
        super().__init__(given)
        self.states: list[tuple[str, str]] = []
        self._control = control

    def claim(self, number: int, request: ClaimRequest) -> ClaimAnswer:
        self.states.append((self._control.status.state, self._control.status.message[:17]))
        if len(self.states) == 1:
            raise Unreachable("no answer")
        return super().claim(number, request)


def test_an_indexer_reads_once_its_claim_is_answered(run_indexer: Run, tmp_path: Path) -> None:
    control = Control(0, 1)
    plane = LateAnswer(assignment(tmp_path, kafka=True), control)
    while_reading: list[str] = []

    def note() -> None:
        while_reading.append(control.status.state)
        control.update("finish")

    run_indexer(OneLog([record(1)], control, at_end=note), plane, control=control, kafka=True)
    assert plane.states[:2] == [("reading", ""), ("paused", "The control plane")]
    assert while_reading == ["reading"]
    assert stored(plane, tmp_path) == [1]
