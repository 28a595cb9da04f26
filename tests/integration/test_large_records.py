"""Records that are larger than a message to the control plane may be."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import numbered, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers

POISON_BYTES = 60_000_000  # 80 MB in base64
LARGE_BYTES = 5_000_000
KINDS = ["share_group", "offset_range", "consumer_group"]


@pytest.mark.timeout(900)
def test_records_that_are_too_large(house: House, make_workers: Callable[..., Workers]) -> None:
    """Row 19 of the failure matrix: of a poison record that no message carries the beginning is kept; nothing stops."""
    topic = f"large-{uuid.uuid4().hex[:8]}"
    config = {"max.message.bytes": str(2 * POISON_BYTES)}
    house.admin.create_topics([NewTopic(topic, 1, config=config)])[topic].result(30)
    producer = Producer({"bootstrap.servers": house.bootstrap, "message.max.bytes": 2 * POISON_BYTES, "linger.ms": 0})
    large = json.dumps({"time": "2025-06-01", "n": 1000, "value": 3000, "text": "x" * LARGE_BYTES}).encode()
    for payload in (*numbered(0, 1000), b"{broken" + bytes(POISON_BYTES), large, *numbered(1001, 2000)):
        producer.produce(topic, value=payload)
    assert producer.flush(60) == 0
    for kind in KINDS:
        name = f"{topic}-{kind}"
        workers = make_workers(spec_of(house, topic, name, kind))
        workers.start(0)
        published(house, name, 2000)
        wait_for("all of it is counted", lambda name=name: house.totals(name)["unparseable"] == 1, 60)
        check_exactly_once(house, name, range(2000))
        (kept,) = house.api("GET", f"/api/v1/datasources/{name}/quarantine/")["results"]
        assert (kept["partition"], kept["offset"]) == (0, 1000)
        assert f"of its {POISON_BYTES + len(b'{broken'):,} bytes are stored" in kept["error"]
        workers.close()


def spec_of(house: House, topic: str, datasource: str, kind: str) -> dict[str, Any]:
    if kind == "share_group":
        return house.spec(topic, datasource, groupId=datasource, lock_ms=30_000, consumersPerIndexer=1)
    return house.kafka_spec(topic, datasource=datasource, assignment=kind)
