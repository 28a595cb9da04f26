"""An indexer and the control plane in one process: the indexer's own client, without a server in between."""

from __future__ import annotations

import httpx2
from django.test import Client
from django.utils import timezone

from controlplane.tasks.lifecycle import new_token, token_hash
from controlplane.tasks.models import Resident, Task
from ingestion.client.compaction import CompactionControlPlane
from ingestion.client.http import HttpControlPlane


class _Through:
    """A server for httpx, in the caller's database transaction; whatever goes wrong is answered as by a server."""

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


def client_of_compaction(application: str, slots: int = 1) -> CompactionControlPlane:
    """The client of a compaction application that was launched just now."""
    token = "the token of a compaction application"
    now = timezone.now()
    Resident.objects.create(pk=application, token_hash=token_hash(token), slots=slots, launched_at=now)
    client = CompactionControlPlane("http://testserver", application, token)
    client._http = _Through(token)  # type: ignore[assignment]
    return client
