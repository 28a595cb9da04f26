"""What the acceptance tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.house import House


@pytest.fixture(autouse=True)
def _at_rest(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test nothing goes on, and nothing fails on purpose."""
    house: House | None = request.getfixturevalue("house") if "house" in request.fixturenames else None
    yield
    if house is not None:
        house.proxy.set("pass")
        house.let_go()
