"""An indexer and the control plane in one process: the indexer's own client, without a server in between."""

from __future__ import annotations

import httpx2
from django.test import Client

from controlplane.tasks.lifecycle import new_token
from controlplane.tasks.models import Task
from ingestion.client import HttpControlPlane


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
