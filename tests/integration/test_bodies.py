"""Bodies of requests at the site's door: taken from the connection only for those who may send them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client

from controlplane.config.asgi import application
from controlplane.config.request_body import BEGINNING_BYTES, most_bytes
from controlplane.tasks.lifecycle import new_token
from controlplane.teams.models import ApiToken
from tests.support.django_cast import Cast, make_cast, spec_for

PIECE = b" " * 32 * 1024
PUBLISH = "/internal/tasks/nobodys/indexers/0/publish"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_cache")]


class Connection:
    """A client that sends as much as it is asked for; ``taken`` counts it."""

    def __init__(self, method: str, path: str, body: bytes | None, length: int | None, **headers: str) -> None:
        self.taken = 0
        self.status = 0
        self.answer = b""
        self._body = body
        announced = {"transfer-encoding": "chunked"} if length is None else {"content-length": str(length)}
        given = {"host": "127.0.0.1", "content-type": "application/json", **announced, **headers}
        self._scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "https",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8000),
        }

    def speak(self) -> Connection:
        asyncio.run(asyncio.wait_for(application(self._scope, self._receive, self._send), 60))
        return self

    async def _receive(self) -> Mapping[str, Any]:
        if self._body is None:  # it goes on for ever
            self.taken += len(PIECE)
            assert self.taken <= 128 * 1024 * 1024, "nobody stops it"
            return {"type": "http.request", "body": PIECE, "more_body": True}
        if self.taken:
            await asyncio.Event().wait()  # it stays, and waits for the answer
        self.taken = max(len(self._body), 1)
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def _send(self, message: Mapping[str, Any]) -> None:
        self.status = message.get("status", self.status)
        self.answer += message.get("body", b"")


@pytest.fixture
def all_cast() -> Cast:
    """Committed: the site's threads have connections of their own."""
    return make_cast()


def bearer(cast: Cast, role: str) -> dict[str, str]:
    return {"authorization": f"Bearer {ApiToken.objects.create(user=cast.users[role])[1]}"}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/supervisors/", 401),
        ("/druid/indexer/v1/task", 401),
        (PUBLISH, 401),
        ("/login/", 413),
        ("/supervisors/-/new/", 413),
        ("/api/v1/auth/login/", 413),
    ],
)
@pytest.mark.parametrize("length", [None, 40 * 1024 * 1024])
def test_of_a_stranger_no_more_than_the_beginning_is_taken(path: str, status: int, length: int | None) -> None:
    """Row 27 of the security checklist: whether it says how much will come, or not."""
    said = Connection("POST", path, None, length, authorization="Bearer nobodys").speak()
    assert said.status == status
    assert said.taken <= (BEGINNING_BYTES if length is None else 0)


@pytest.mark.parametrize("path", ["/api/v1/supervisors/", "/druid/indexer/v1/task", "/internal/tasks/{}/heartbeat"])
@pytest.mark.parametrize("length", [None, 100 * 1024 * 1024])
def test_of_others_no_more_than_the_most(path: str, length: int | None, all_cast: Cast) -> None:
    """Row 27 of the security checklist: those who may send have an end, too."""
    headers = bearer(all_cast, "owner")
    if path.startswith("/internal/"):
        headers = {"authorization": f"Bearer {new_token(all_cast.task)}"}
    path = path.format(all_cast.task.pk)
    said = Connection("POST", path, None, length, **headers).speak()
    assert said.status == 413
    assert said.taken <= most_bytes(path) + len(PIECE)


@pytest.mark.parametrize("length", ["said", None])
def test_a_large_body_of_somebody_who_may_is_read_whole(length: str | None, all_cast: Cast) -> None:
    spec = spec_for("flights", groupId="another")
    spec["context"] = {"padding": "x" * 4 * BEGINNING_BYTES}
    body = json.dumps(spec).encode()
    given = len(body) if length else None
    said = Connection("POST", "/api/v1/supervisors/", body, given, **bearer(all_cast, "owner")).speak()
    assert (said.status, said.answer.count(b"x" * BEGINNING_BYTES) > 0) == (200, True)


def test_so_is_an_indexers(all_cast: Cast) -> None:
    headers = {"authorization": f"Bearer {new_token(all_cast.task)}"}
    body = json.dumps({"padding": "x" * 4 * BEGINNING_BYTES}).encode()
    said = Connection("POST", f"/internal/tasks/{all_cast.task.pk}/heartbeat", body, len(body), **headers).speak()
    assert said.status == 400
    assert b"padding" in said.answer


def test_a_large_form_is_for_those_who_are_logged_in(all_cast: Cast) -> None:
    """Row 27 of the security checklist: the pages' forms."""
    form = {"document": "x" * 2 * BEGINNING_BYTES}
    browser = Client()
    assert browser.post("/supervisors/-/new/", form).status_code == 413
    browser.force_login(all_cast.users["owner"])
    assert browser.post("/supervisors/-/new/", form).status_code == 400
