"""What the acceptance tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.house import House


@pytest.fixture(autouse=True)
def _at_rest(house: House) -> Iterator[None]:
    """After each test nothing goes on, and nothing fails on purpose."""
    yield
    house.proxy.set("pass")
    house.let_go()
