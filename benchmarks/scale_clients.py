"""Clients of the protocol that say what the applications of many running tasks say."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ingestion.specs.messages.protocol import HeartbeatRequest, IndexerStatus, Leases

THREADS = 16  # that send, each on a connection of its own
TIMEOUT_S = 30.0


@dataclass(frozen=True)
class RunningTask:
    """One application's task, and what it shows to say that it is."""

    id: str
    token: str
    indexers: int


@dataclass
class Beaten:
    """What became of heartbeats."""

    seconds: list[float] = field(default_factory=list)  # each took
    refused: list[str] = field(default_factory=list)
    late: int = 0  # sent more than a second after they were due


class Applications:
    """Sends one heartbeat for each task every ``period_s``, spread evenly. Threads share the tasks out."""

    def __init__(self, url: str, tasks: Sequence[RunningTask]) -> None:
        self._address = urlsplit(url)
        self._shares = [tasks[n::THREADS] for n in range(THREADS)]

    def beat(self, seconds: float, period_s: float) -> Beaten:
        """For so long: what is not sent by then is not sent."""
        result, lock = Beaten(), threading.Lock()
        begin = time.monotonic()

        def send(share: Sequence[RunningTask]) -> None:
            mine = self._beat(share, begin, seconds, period_s)
            with lock:
                result.seconds += mine.seconds
                result.refused += mine.refused
                result.late += mine.late

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(send, self._shares))
        return result

    def _beat(self, share: Sequence[RunningTask], begin: float, seconds: float, period_s: float) -> Beaten:
        result = Beaten()
        connection = http.client.HTTPConnection(self._address.hostname or "", self._address.port, timeout=TIMEOUT_S)
        number = 0
        while share:
            due = begin + period_s * number / len(share)
            if max(due, time.monotonic()) > begin + seconds:
                break
            time.sleep(max(0.0, due - time.monotonic()))
            result.late += time.monotonic() > due + 1
            started = time.monotonic()
            answer = _send(connection, share[number % len(share)], number)
            result.seconds.append(time.monotonic() - started)
            if answer:
                result.refused.append(answer)
            number += 1
        connection.close()
        return result


def _send(connection: http.client.HTTPConnection, task: RunningTask, number: int) -> str:
    """What is wrong with the answer, or nothing."""
    headers = {"Authorization": f"Bearer {task.token}", "Content-Type": "application/json"}
    connection.request("POST", f"/internal/tasks/{task.id}/heartbeat", _message(task, number), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    return "" if answer.status == 200 else f"{task.id}: {answer.status} {text[:200]}"


def _message(task: RunningTask, number: int) -> bytes:
    """Of indexers that read: what they hold is another number each time."""
    indexers = [
        IndexerStatus(
            number=n,
            epoch=1,
            state="reading",
            pid=1000 + n,
            in_flight=1 + (number * 37 + n) % 900,
            publishes=number,
            redelivery_counts={1: 1000 * number},
            leases=Leases(acquired=1000 * number, accepted=1000 * number),
        )
        for n in range(task.indexers)
    ]
    return HeartbeatRequest(indexers=indexers, slots=task.indexers).model_dump_json().encode()
