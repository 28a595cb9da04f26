"""Clients of SQL that leave, at the door that uvicorn serves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import psutil
import pytest

from controlplane.config.asgi import application
from controlplane.query import running
from controlplane.teams.models import ApiToken
from tests.support.django_cast import make_cast
from tests.support.sql import ADDRESS
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_cache")]
FOREVER = "SELECT count(*) FROM range(100000) a, range(100000) b, range(100000) c WHERE a.range + b.range = c.range"


def queries() -> list[psutil.Process]:
    waiting = running.ready_process.pid
    return [] if waiting is None else psutil.Process(waiting).children()


class Leaving:
    """Sends a statement and closes its connection once the query runs."""

    def __init__(self, secret: str, statement: str) -> None:
        self.sent: list[Mapping[str, Any]] = []
        self._body = json.dumps({"query": statement}).encode()
        self._asked = False
        headers = {"host": "127.0.0.1", "content-type": "application/json", "authorization": f"Bearer {secret}"}
        headers["content-length"] = str(len(self._body))
        self._scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "https",
            "path": ADDRESS,
            "raw_path": ADDRESS.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8000),
        }

    def speak(self) -> None:
        asyncio.run(asyncio.wait_for(application(self._scope, self._receive, self._send), 50))

    async def _receive(self) -> Mapping[str, Any]:
        if self._asked:
            while not queries():
                await asyncio.sleep(0.05)
            return {"type": "http.disconnect"}
        self._asked = True
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def _send(self, message: Mapping[str, Any]) -> None:
        self.sent.append(message)


def test_a_query_ends_when_its_client_leaves_before_the_first_rows(settings: Any) -> None:
    """It would run for its whole time limit, which is longer than the test waits."""
    settings.SQL_TIMEOUT = settings.SNAPSHOT_LEASE
    _, secret = ApiToken.objects.create(user=make_cast().users["viewer"], name="test")
    client = Leaving(secret, FOREVER)
    client.speak()
    wait_for("the end of the query", lambda: queries() == [])
    assert client.sent == []
