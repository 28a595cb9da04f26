"""Session fixtures of the whole product on real services."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controlplane.embedded.demo.records import FLIGHTS
from controlplane.embedded.demo.records import flights as flight_records
from controlplane.embedded.demo.specs import FLIGHTS_DATASOURCE, FLIGHTS_TOPIC, flights_supervisor
from controlplane.embedded.home import temporary_home
from tests.support.house import House
from tests.support.records import published


@pytest.fixture(scope="session")
def house() -> Iterator[House]:
    """Started once per run; every test uses topics, groups and datasources of its own."""
    with temporary_home() as home:
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
