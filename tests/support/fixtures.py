"""Session fixtures of the whole product on real services."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.house import House


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Started once per run; every test uses topics, groups and datasources of its own."""
    folder: Path = tmp_path_factory.mktemp("house")
    house = House(folder / "home")
    yield house
    house.close()


@pytest.fixture
def stack(house: House) -> House:
    """The product as a browser sees it."""
    return house
