"""A web process that stands still hears no heartbeats: that is no application's fault, as long as it lasts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone

from controlplane.tasks import capacity, heartbeat_gaps, residents
from controlplane.tasks.models import Resident


@pytest.fixture
def goes_on(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """While it is not set, web accepts connections and answers nothing."""
    answers = threading.Event()

    class Web(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers.wait()
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    monkeypatch.setattr(heartbeat_gaps, "ASK_TIMEOUT_S", 0.2)
    with ThreadingHTTPServer(("127.0.0.1", 0), Web) as server:
        settings.INTERNAL_URL = f"http://127.0.0.1:{server.server_port}"
        serving = threading.Thread(target=server.serve_forever, args=(0.05,))
        serving.start()
        yield answers
        answers.set()
        server.shutdown()
        serving.join()
    cache.delete(heartbeat_gaps.key_here())


def test_an_application_that_stays_silent_after_it_makes_room(
    db: None, settings: Any, goes_on: threading.Event
) -> None:
    """The one that merges: it is not ended while web was frozen, and when it does not come back it holds no place."""
    settings.SPARK_MASTER, settings.WORKER_CAPACITY = "local[2]", 2
    heard = timezone.now() - settings.TASK_HEARTBEAT_TIMEOUT - timedelta(seconds=60)
    Resident.objects.create(pk="compaction_1", token_hash="", slots=1, launched_at=heard, last_heartbeat_at=heard)

    def runs() -> bool:
        residents.end_lost()
        return residents.running() is not None

    assert runs(), "web is frozen"
    assert capacity.pool().used == 1
    goes_on.set()
    assert runs(), "web has just gone on"
    cache.set(heartbeat_gaps.key_here(), (heard, timezone.now()), timeout=3600)
    assert not runs(), "it has answered for so long, and heard nothing"
    assert Resident.objects.get().error.startswith("It was lost: no heartbeat for ")
    assert capacity.pool().used == 0


def test_one_look_serves_the_rounds_that_come_together(
    db: None, goes_on: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on.set()
    since = heartbeat_gaps.heartbeats_accepted_since()
    goes_on.clear()
    assert heartbeat_gaps.heartbeats_accepted_since() == since is not None
    monkeypatch.setattr(heartbeat_gaps, "JUST_NOW", timedelta())
    assert heartbeat_gaps.heartbeats_accepted_since() is None
