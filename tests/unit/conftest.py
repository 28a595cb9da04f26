"""Fixtures of tests without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ingestion.specs.schema.data_schema import DataSchema
from tests.support.desk import Desk, schema_of


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    made: list[Desk] = []

    def make(schema: DataSchema | None = None, **tuning: Any) -> Desk:
        made.append(Desk(tmp_path / str(len(made)), schema or schema_of(), **tuning))
        return made[-1]

    yield make
    for one in made:
        one.index.close()
        assert list(one.scratch.rglob("*")) == []
