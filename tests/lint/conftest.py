"""What the rules read is forgotten after the last of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lint import sources


@pytest.fixture(scope="package", autouse=True)
def _sources() -> Iterator[None]:
    yield
    sources.forget()
