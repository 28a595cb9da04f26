"""Three hosts with a worker each, and two beats: each host has a name and a folder of tasks of its own.

Under Spark: a driver outlives its worker, is stopped by a signal, and dies with its host.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import httpx2
import pytest

from controlplane.embedded import apps
from tests.support.hosts import Host, new_host
from tests.support.house import House, lives
from tests.support.invariants import check_exactly_once
from tests.support.lanes import lane_spec
from tests.support.records import Endless, published, published_rows
from tests.support.services import start_all, stop_all
from tests.support.waiting import PATIENCE, wait_for

NAMES = ("one", "two", "three")
SILENCE_S = 60.0  # of a source at most


@pytest.fixture
def hosts(house: House) -> Iterator[dict[str, Host]]:
    """All three, instead of the house's own worker; two beats send each job twice."""
    stop_all(house.beat, house.worker)
    found = {name: new_host(house, name) for name in NAMES}
    beats = [apps.Beat(house.home, house.environment, name=f"beat-{n}") for n in (1, 2)]
    services = [*(host.worker for host in found.values()), *beats]
    start_all(*services)
    yield found
    stop_all(*services)
    for host in found.values():
        host.kill_applications()
    start_all(house.worker, house.beat)


class Silence:
    """The longest time in which a datasource got no row, in seconds, while this is watched."""

    def __init__(self, house: House, datasource: str) -> None:
        self.longest = 0.0
        self._house, self._datasource = house, datasource
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        rows, since = published_rows(self._house, self._datasource), time.monotonic()
        while not self._ends.wait(0.5):
            count, now = published_rows(self._house, self._datasource), time.monotonic()
            self.longest = max(self.longest, now - since)
            if count > rows:
                rows, since = count, now

    def end(self) -> float:
        self._ends.set()
        self._thread.join(30)
        return self.longest


def host_of(house: House, hosts: dict[str, Host], task: str) -> Host:
    [(name,)] = house.sql("SELECT host FROM tasks_task WHERE id = %s", task)
    return hosts[name]


def log_of(house: House, task: str) -> str:
    """By REST; the web process has another folder than all hosts."""
    answer = httpx2.get(
        f"{house.url}/api/v1/tasks/{task}/log/", headers={"Authorization": f"Bearer {house.token}"}, trust_env=False
    )
    return answer.text if answer.status_code == 200 else ""


def next_task(house: House, topic: str, before: str) -> str:
    def another() -> str | None:
        task = house.running_task(topic)
        return task if task != before else None

    return wait_for("another task reads", another, 120, lambda: house.logs(topic))


@pytest.mark.timeout(2400)
def test_hosts_and_workers_die_while_a_supervisor_reads(house: House, hosts: dict[str, Host]) -> None:
    """Row 39 of the failure matrix: a host, a worker alone, a driver that sleeps. 0 lost, 0 twice, no long silence."""
    topic = house.topic()
    house.supervise(lane_spec(house, "offset_range", topic, startDelay="PT0S", taskDuration="PT1H"))
    stream = Endless(house, topic)
    published(house, topic, 500, 180)
    silence = Silence(house, topic)

    # A whole host: its worker and its driver. Another host starts the next task.
    first = house.running_task(topic)
    dead = host_of(house, hosts, first)
    assert "Spark" in log_of(house, first)
    dead.kill()
    second = next_task(house, topic, first)
    assert host_of(house, hosts, second) is not dead
    published(house, topic, published_rows(house, topic) + 500)
    assert "no heartbeat for" in house.sql("SELECT error FROM tasks_task WHERE id = %s", first)[0][0]
    answer = house.api("GET", f"/api/v1/tasks/{first}/log/", expect=503)
    assert f"on host {dead.name}, which does not answer" in answer["detail"]
    dead.worker.restart()
    wait_for("its log can be read again", lambda: "Spark" in log_of(house, first), 30)

    # A worker alone: its driver reads on, and is heard.
    orphaned = host_of(house, hosts, second)
    orphaned.worker.kill()
    timeout = int(house.environment["HEADGATE_TASK_HEARTBEAT_TIMEOUT"])
    until = time.monotonic() + timeout + 10
    wait_for("the heartbeat's bound is over", lambda: time.monotonic() > until, timeout + 20)
    assert house.running_task(topic) == second
    published(house, topic, published_rows(house, topic) + 500)
    orphaned.worker.restart()

    # A driver that sleeps: it is lost for all, and its own host kills it.
    asleep = orphaned.family(orphaned.folder / second)
    for process in asleep:
        process.send_signal(signal.SIGSTOP)
    next_task(house, topic, second)
    wait_for("the driver that slept is killed", lambda: not any(map(lives, asleep)), 40)

    longest = silence.end()
    records = stream.finish()
    published(house, topic, records)
    check_exactly_once(house, topic, range(records))
    assert longest < SILENCE_S * PATIENCE, "the deadline of tests: see PATIENCE"
