"""What `benchmarks soak --hosts` calls a silence."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from benchmarks.soak.faults import Away, Faults
from benchmarks.soak.hosts import Hosts
from benchmarks.soak.lanes import Lane
from tests.support.house import House

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def at(second: float) -> datetime:
    return BEGAN + timedelta(seconds=second)


class Store:
    """Only the times of publishes, in seconds, by datasource."""

    def __init__(self, times: dict[str, list[int]]) -> None:
        self.times = times

    def sql(self, _query: str, datasource: str) -> list[tuple[Any, ...]]:
        return [(at(second),) for second in self.times[datasource]]


@pytest.fixture
def hosts() -> Hosts:
    """A run of 200 seconds; the share group's supervisor was suspended, Kafka and a web were away."""
    every = list(range(0, 201, 10))
    times = {
        "s": [t for t in every if not 50 < t < 130],
        "o": [t for t in every if not 20 < t < 90],
        "c": [t for t in every if t < 130],
    }
    lanes = [Lane("share_group", "s"), Lane("offset_range", "o"), Lane("consumer_group", "c")]
    house = cast(House, Store(times))
    faults = Faults(house, lanes, random.Random(1))
    faults.away += [
        Away("share_group", at(60), at(90)),
        Away("kafka", at(30), at(45)),
        Away("web", at(100), at(200)),
        Away("postgres", at(195)),  # to the end
    ]
    found = Hosts(house, faults, lanes, random.Random(1), lost=1, killed=4)
    found._began, found._ended = at(0), at(200)
    return found


def test_time_of_a_store_or_of_a_suspended_supervisor_does_not_count(hosts: Hosts) -> None:
    """80 s less 30 of its suspension; 70 s less 15 of Kafka; 80 s after its last publish less 5 of PostgreSQL."""
    assert hosts.silences() == {"share_group": 50, "offset_range": 55, "consumer_group": 75}
    assert hosts.wrong() == ["consumer_group: silent for 75 s"]
    results = hosts.results()
    assert (results["longest_silence_s"], results["hosts_lost"], results["processes_killed"]) == (75, 1, 4)


def test_a_run_without_a_lost_host_shows_nothing(hosts: Hosts) -> None:
    hosts.lost = 0
    assert "hosts: none was lost" in hosts.wrong()


def test_what_is_away_comes_back_once() -> None:
    faults = Faults(cast(House, None), [], random.Random(1))
    faults.leaves("host", "web")
    faults.leaves("kafka")
    faults.returns("web", "host")
    assert [(away.name, away.end is None) for away in faults.away] == [
        ("host", False),
        ("web", False),
        ("kafka", True),
    ]
    faults.leaves("web")
    faults.returns("kafka")
    assert [away.name for away in faults.away if away.end is None] == ["web"]
