"""A cluster that wants certificates, and a spec of Druid with Java's own stores: tried, sampled and ingested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.house import House
from tests.support.records import published
from tests.support.secured_kafka import Secured, in_folder, mutual, secured

__all__ = ["secured"]  # a fixture


@pytest.fixture
def properties(house: House, secured: Secured, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Those of a spec of Druid, where JKS is what no type means; the folder is one that web and worker may read."""
    stores = {n: v for n, v in in_folder(secured, tmp_path, "JKS").items() if not n.endswith(".type")}
    with house.set_up_with(HEADGATE_KEY_FOLDER=str(tmp_path)):
        yield mutual(secured, **stores)


def test_javas_own_stores_are_read_wherever_a_client_is_made(
    house: House, secured: Secured, properties: dict[str, Any]
) -> None:
    """Under Spark, whose executors have neither the files nor Java's program for them."""
    draft = {"kind": "kafka", "properties": properties, "topic": secured.topic}
    tried = house.api("POST", "/api/v1/connections/-/test/", draft)
    assert tried["ok"], tried
    spec = house.kafka_spec(secured.topic, consumerProperties=properties, inputFormat={"type": "lines"})
    spec["dataSchema"]["timestampSpec"] = {"column": "none", "missingValue": "2026-01-01T00:00:00Z"}
    sampled = house.api("POST", "/druid/indexer/v1/sampler", spec)
    assert [row["parsed"]["line"] for row in sampled["data"]] == [str(n) for n in range(10)]
    house.supervise(spec)
    published(house, secured.topic, 10)
    assert not [path for path in house.home.path.rglob("*") if path.is_file() and b"pass one" in path.read_bytes()]
