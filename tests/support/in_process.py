"""An indexer and the control plane in one process: the indexer's own client, without a server in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import httpx2
import numpy as np
from django.test import Client

from controlplane.tasks.lifecycle import new_token
from controlplane.tasks.models import Task
from ingestion.client import HttpControlPlane
from ingestion.sources import Batch
from ingestion.sources.memory import MemorySource
from ingestion.specs.protocol import Advance
from ingestion.task.control import Control


class _Through:
    """As httpx asks a server. In the caller's database transaction; whatever goes wrong is answered as by a server."""

    def __init__(self, token: str) -> None:
        self._client = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {token}"})

    def request(self, method: str, path: str, content: bytes | None) -> httpx2.Response:
        answer = self._client.generic(method, path, content or b"", "application/json")
        return httpx2.Response(answer.status_code, headers=dict(answer.headers), content=answer.content)

    def close(self) -> None:
        """Nothing is open."""


def client_of(task: Task) -> HttpControlPlane:
    """The task's client."""
    client = HttpControlPlane("http://testserver", task.pk, token := new_token(task))
    client._http = _Through(token)  # type: ignore[assignment]
    return client


class StoredSource(MemorySource):
    """Partition 0 with stored offsets: what is not published is read again. Tells its indexer to finish after the last.

    ``stored``: where the control plane says that it goes on. ``rewinds``: how often it went back.
    """

    def __init__(
        self, payloads: Iterable[bytes | None], stored: Callable[[], int], control: Control, batch_records: int = 100
    ) -> None:
        super().__init__((), batch_records=batch_records, gathers=True)
        self._payloads = list(payloads)
        self._stored, self._control = stored, control
        self._at = self.rewinds = 0

    def open(self) -> None:
        self._at = self._stored()

    def take(self, timeout_s: float) -> Batch | None:
        taken = self._payloads[self._at : self._at + self.batch_records]
        if not taken:
            self._control.tell("finish")
            return None
        start, self._at = self._at, self._at + len(taken)
        nothing: list[Any] = [None] * len(taken)
        return Batch(
            partitions=np.zeros(len(taken), np.int64),
            offsets=np.arange(start, self._at),
            delivery_counts=np.ones(len(taken), np.int64),
            payloads=taken,
            keys=nothing,
            timestamps_ms=nothing,
            deadline=float("inf"),
            progress={0: Advance(start=start, end=self._at)},
        )

    def rewind(self, partitions: Iterable[int]) -> None:
        self.rewinds += 1
        self._at = self._stored()

    def lost(self) -> Mapping[int, int | None]:
        return {}

    def exhausted(self) -> bool:
        return False
