"""Session fixtures of the whole product on real services."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from controlplane.embedded.home import temporary_home
from controlplane.embedded.spark_classes import prepare_classes
from tests.support.house import House
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
