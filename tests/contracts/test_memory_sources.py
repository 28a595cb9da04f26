"""The memory sources keep the contracts of their kinds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ingestion.client.memory import MemoryControlPlane
from ingestion.sources.base import LeasedSource
from ingestion.sources.memory import MemoryLeasedSource
from ingestion.sources.memory_log import MemoryLog, MemoryStoredSource
from ingestion.task.claims import Claims
from tests.contracts.source_contracts import LeasedContract, Log, StoredOffsetContract
from tests.support.indexer import TOPIC, assignment, stored_offsets


class TestLeased(LeasedContract):
    def source(self, records: Sequence[bytes], lock_s: float) -> LeasedSource:
        return MemoryLeasedSource([(0, n, payload) for n, payload in enumerate(records)], 4, lock_s)


class _InMemory(Log):
    def __init__(self, plane: MemoryControlPlane, in_group: bool) -> None:
        super().__init__(plane, TOPIC.topic_id)
        self.replicated = not in_group
        self._in_group = in_group
        self._log = MemoryLog()

    def append(self, records: Sequence[bytes]) -> None:
        self._log.append(records)
        self._log.skip_offsets(1)

    def remove_before(self, offset: int) -> None:
        self._log.remove_before(offset)

    def source(self, claims: Claims, may_reset: bool = False, replicas: int = 1) -> MemoryStoredSource:
        more = {"may_reset": may_reset, "replicas": replicas, "with_generation": self._in_group}
        return MemoryStoredSource(self._log, stored_offsets(self._log, claims, **more), batch_records=4)


class TestStored(StoredOffsetContract):
    @pytest.fixture(params=[False, True], ids=["by number", "in a group"])
    def log(self, request: pytest.FixtureRequest, tmp_path: Path) -> Log:
        return _InMemory(MemoryControlPlane(assignment(tmp_path, kafka=True)), request.param)
