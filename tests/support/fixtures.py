"""Session fixtures of the whole product on real services."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from controlplane.embedded.demo.records import FLIGHTS
from controlplane.embedded.demo.records import flights as flight_records
from controlplane.embedded.demo.specs import FLIGHTS_DATASOURCE, FLIGHTS_TOPIC, flights_supervisor
from controlplane.embedded.home import temporary_home
from controlplane.embedded.spark_classes import prepare_classes
from tests.support.house import House
from tests.support.records import published
from tests.support.workers import Workers


@pytest.fixture(scope="session")
def house() -> Iterator[House]:
    """Started once per run; every test uses topics, groups and datasources of its own."""
    with temporary_home() as home:
        prepare_classes(home.log("spark-classes"))  # `make test` has begun to
        house = House(home)
        yield house
        house.close()


@pytest.fixture
def stack(house: House) -> House:
    """The product as a browser sees it."""
    return house


@pytest.fixture(scope="session")
def flights(house: House) -> str:
    """The flights of 2013, ingested whole; their supervisor is at rest. Returns the datasource's name."""
    house.make_topic(FLIGHTS_TOPIC)
    assert house.produce(FLIGHTS_TOPIC, flight_records()) == FLIGHTS
    house.supervise(flights_supervisor(house.bootstrap))
    published(house, FLIGHTS_DATASOURCE, FLIGHTS, 280)
    house.rest()
    return FLIGHTS_DATASOURCE


@pytest.fixture
def make_workers(house: House) -> Iterator[Callable[..., Workers]]:
    """Makes the workers of a task; after the test none runs and nothing fails on purpose."""
    made: list[Workers] = []

    def make(spec: dict[str, Any], indexers: int = 1, owner: str | None = "") -> Workers:
        made.append(Workers(house, spec, indexers, owner))
        return made[-1]

    yield make
    house.proxy.set("pass")
    for workers in made:
        workers.close()
        workers.leave_nothing_to_do()
