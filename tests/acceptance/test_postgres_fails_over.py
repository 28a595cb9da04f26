"""The metadata store's primary dies under publishes and its standby takes over, at one address for both."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import httpx2
import psutil
import pytest

from controlplane.embedded.home import temporary_home
from tests.support.broker import Broker
from tests.support.browsing import browsing
from tests.support.fixtures import LOGS
from tests.support.house import House, lives
from tests.support.invariants import check_exactly_once
from tests.support.lanes import LANES, lane_spec
from tests.support.records import Endless, published, published_rows
from tests.support.replicated_postgres import ReplicatedPostgres, replicated
from tests.support.waiting import PATIENCE, wait_for
from tests.support.workers import Workers

Make = Callable[..., Workers]
BACK_S = 30.0  # from the promotion on


@pytest.fixture
def stores(request: pytest.FixtureRequest) -> Iterator[ReplicatedPostgres]:
    with temporary_home() as home, replicated(home, synchronous=request.param == "synchronous") as servers:
        yield servers


@pytest.fixture
def house(stores: ReplicatedPostgres, broker: Broker, pytestconfig: pytest.Config) -> Iterator[House]:
    """With these two servers as its metadata store."""
    with temporary_home() as home:
        pytestconfig.stash[LOGS] = home.logs
        house = House(home, kafka=broker.kafka, database=stores.dsn)
        yield house
        house.close()


def read_in_all_ways(house: House, make_workers: Make) -> tuple[str, dict[str, Workers]]:
    topic = house.topic()
    readers = {}
    for lane in LANES:
        readers[f"{topic}-{lane}"] = make_workers(lane_spec(house, lane, topic, f"{topic}-{lane}"), 2)
    for workers in readers.values():
        workers.start(0, 1)
    return topic, readers


def go_on(house: House, names: Any) -> None:
    before = {name: published_rows(house, name) for name in names}
    for name in before:
        wait_for(f"{name} goes on", lambda name=name: published_rows(house, name) > before[name], BACK_S)


class Answered:
    """Teams that are made one after the other while this runs, as far as their making was answered."""

    def __init__(self, house: House) -> None:
        self.names: list[str] = []
        self._house, self._enough = house, Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._enough.wait(0.02):
            number += 1
            name = f"answered{number}"
            with suppress(AssertionError, httpx2.HTTPError):
                self._house.api("POST", "/api/v1/teams/", {"name": name}, expect=201)
                self.names.append(name)

    def finish(self) -> list[str]:
        self._enough.set()
        self._thread.join(60 * PATIENCE)
        return self.names


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("stores", ["synchronous"], indirect=True)
def test_what_was_answered_is_there_and_all_go_on(house: House, stores: ReplicatedPostgres, make_workers: Make) -> None:
    """Row 40 of the failure matrix, with synchronous replication. A fenced indexer stays fenced on the new primary."""
    topic, readers = read_in_all_ways(house, make_workers)
    stream = Endless(house, topic)
    for name in readers:
        published(house, name, 1_000)
    fenced = readers[f"{topic}-offset_range"]
    asleep = psutil.Process(fenced.pid(0))
    asleep.send_signal(signal.SIGSTOP)
    fenced.start(0)  # a newer epoch
    go_on(house, readers)
    with browsing(house) as client:
        assert client.get("/").status_code == 200
        answered = Answered(house)
        wait_for("some are answered", lambda: len(answered.names) > 20, 60)
        stores.first.kill()
        page = client.get("/")
        assert (page.status_code, page.headers["Retry-After"]) == (503, "10")
        assert "The metadata store does not answer; try again." in page.text
        stores.fail_over()
        before = len(answered.names)
        wait_for("changes are taken again", lambda: len(answered.names) > before, BACK_S)
        assert client.get("/").status_code == 200
    names = answered.finish()
    made = {name for (name,) in house.sql("SELECT name FROM teams_team")}
    assert set(names) <= made, "what was answered is there"
    go_on(house, readers)
    os.kill(asleep.pid, signal.SIGCONT)
    wait_for("the fenced one has ended", lambda: not lives(asleep), 60)
    wait_for("the worker has jobs again", lambda: _beats(house), BACK_S)
    records = stream.finish()
    for name in readers:
        published(house, name, records)
        check_exactly_once(house, name, range(records))


def _beats(house: House) -> bool:
    """Whether the worker has renewed the lease of its host's name within ten seconds."""
    rows = house.sql("SELECT 1 FROM tasks_host WHERE seen_at > now() - interval '10 seconds'")
    return bool(rows)


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("stores", ["asynchronous"], indirect=True)
def test_answered_publishes_that_the_standby_lacks_are_read_again_and_named(
    house: House, stores: ReplicatedPostgres, make_workers: Make
) -> None:
    """Row 41 of the failure matrix: the store falls back behind what Kafka has as delivered and committed.

    All partitions are quiet by then.
    """
    topic, readers = read_in_all_ways(house, make_workers)
    stream = Endless(house, topic)
    for name in readers:
        published(house, name, 1_000)
    stores.lag_behind()
    before = {name: published_rows(house, name) for name in readers}
    for name in readers:
        published(house, name, before[name] + 1_000)
    records = stream.finish()  # no record comes after the failover: what is lost is noticed all the same
    for name in readers:
        published(house, name, records)
    stores.fail_over()
    for name in readers:
        assert published_rows(house, name) < records, "the standby lacks what was answered"
    for name in readers:
        published(house, name, records, 240)  # a repair reads holes that are older than the deliveries of a share group
        check_exactly_once(house, name, range(records))
        kind = "repaired" if name.endswith("share_group") else "offset_reset"
        wait_for(f"{name} says so", lambda name=name, kind=kind: alarms(house, name, kind), 30)
    for lane in ("offset_range", "consumer_group"):
        [detail, *_] = alarms(house, f"{topic}-{lane}", "offset_reset")
        assert "PostgreSQL has lost publishes that it had answered" in detail and "stored " in detail


def alarms(house: House, datasource: str, kind: str) -> list[str]:
    """What the events of one kind say."""
    rows = house.sql(
        "SELECT detail FROM sources_sourceevent e JOIN datasources_datasource d ON d.id = e.datasource_id"
        " WHERE d.name = %s AND e.kind = %s AND e.alarm",
        datasource,
        kind,
    )
    return [detail for (detail,) in rows]
