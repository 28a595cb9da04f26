"""Replays on real services: after a mended spec, killed at the worst places, and back into the topic."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.house import House
from tests.support.invariants import check_exactly_once, stored_numbers
from tests.support.records import numbered, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers

Make = Callable[..., Workers]
GOOD, BAD = 60, 20


def misnamed(first: int, last: int) -> Iterator[bytes]:
    """Records whose time stands under another name than the spec says."""
    for payload in numbered(first, last):
        record = json.loads(payload)
        record["when"] = record.pop("time")
        yield json.dumps(record).encode()


def quarantined(house: House, datasource: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = house.api("GET", f"/api/v1/datasources/{datasource}/quarantine/")["results"]
    return found


def states(house: House, datasource: str) -> set[str]:
    return {record["state"] for record in quarantined(house, datasource)}


def replay(house: House, datasource: str, mode: str, expect: int | None = None) -> Any:
    body = {"mode": mode, "filter": {"state": "kept"}}
    return house.api("POST", f"/api/v1/datasources/{datasource}/quarantine/replay/", body, expect)


@pytest.fixture
def poisoned(house: House, make_workers: Make) -> tuple[str, dict[str, Any]]:
    """A share group's datasource: 60 records stored, 20 in quarantine since their time has another name."""
    topic = house.topic(partitions=2)
    house.produce(topic, [*numbered(0, GOOD), *misnamed(GOOD, GOOD + BAD)])
    spec = house.spec(topic)
    workers = make_workers(spec)
    workers.start(0)
    published(house, topic, GOOD)
    wait_for("the bad ones are in quarantine", lambda: house.totals(topic)["unparseable"] == BAD)
    workers.finish(0)
    workers.close()
    return topic, spec


def mend(house: House, spec: dict[str, Any]) -> None:
    schema = {**spec["dataSchema"], "timestampSpec": {"column": "when", "format": "auto"}}
    house.api("POST", "/druid/indexer/v1/supervisor", {**spec, "dataSchema": schema, "suspended": True})


def killed_replay(house: House, datasource: str, place: str, held: Path) -> None:
    """One that ends there."""
    house.fail_at(datasource, **{place: f"hold:{held}"})
    [task] = replay(house, datasource, "ingest")["tasks"]
    wait_for(f"the replay is at {place}", held.exists, 60, lambda: house.logs(datasource))
    house.fail_at(datasource)
    assert house.kill_application(task)
    house.ended(task, "FAILED")


def test_a_mended_spec_ingests_what_is_kept_each_once(
    house: House, poisoned: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    """And so it does after a replay that was killed before it had committed."""
    topic, spec = poisoned
    [task] = replay(house, topic, "ingest")["tasks"]
    replay(house, topic, "ingest", expect=409)  # a double click
    house.ended(task)
    assert states(house, topic) == {"kept"}, "the spec is as it was: they are as bad as they were"
    assert house.totals(topic)["unparseable"] == BAD
    mend(house, spec)
    killed_replay(house, topic, "uploaded", tmp_path / "held")
    assert states(house, topic) == {"kept"}
    [task] = replay(house, topic, "ingest")["tasks"]
    house.ended(task)
    assert states(house, topic) == {"stored"}
    totals = check_exactly_once(house, topic, range(GOOD + BAD))
    assert (totals["polled"], totals["unparseable"], totals["quarantined"]) == (GOOD + BAD, 0, 0)
    one = quarantined(house, topic)[0]
    fates = house.api("GET", f"/api/v1/records/?topic={topic}&partition={one['partition']}&offset={one['offset']}")
    assert [f["outcome"] for f in fates["fates"]] == ["unparseable", "unparseable", "stored"]


def test_a_replay_that_is_killed_stores_nothing_twice(
    house: House, poisoned: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    topic, spec = poisoned
    mend(house, spec)
    killed_replay(house, topic, "committed", tmp_path / "held")
    assert states(house, topic) == {"stored"}
    replay(house, topic, "ingest", expect=409)
    check_exactly_once(house, topic, range(GOOD + BAD))


def test_dead_letters_of_stored_offsets_are_produced_again(house: House, make_workers: Make) -> None:
    """Key, value and headers come back as they were, with where they were, and are read like any record."""
    topic = house.topic(partitions=2)
    house.produce(topic, numbered(0, 10), partition=0)
    house.producer.produce(topic, b"no json", key=b"\xff", headers=[("trace", b"\x00\x01")], partition=1)
    assert house.producer.flush(30) == 0
    workers = make_workers(house.kafka_spec(topic))
    workers.start(0)
    wait_for("it is in quarantine", lambda: house.totals(topic)["unparseable"] == 1)
    [record] = quarantined(house, topic)
    [task] = replay(house, topic, "produce")["tasks"]
    house.ended(task)
    whole = house.api("GET", f"/api/v1/datasources/{topic}/quarantine/{record['id']}/")
    assert (whole["state"], whole["produced_partition"], whole["produced_offset"]) == ("produced", 1, 1)
    message = read_at(house, topic, 1, 1)
    assert (message.key(), message.value()) == (b"\xff", b"no json")
    assert message.headers() == [("trace", b"\x00\x01"), ("headgate.replayed-from", f"{topic}/1/0".encode())]
    wait_for("the new one is in quarantine, too", lambda: house.totals(topic)["unparseable"] == 2)
    workers.finish(0)
    assert stored_numbers(house, topic)[0].total() == 10


def read_at(house: House, topic: str, partition: int, offset: int) -> Any:
    consumer = Consumer({"bootstrap.servers": house.bootstrap, "group.id": f"look-{topic}"})
    try:
        consumer.assign([TopicPartition(topic, partition, offset)])
        return wait_for("the record is read", lambda: consumer.poll(1.0), 30)
    finally:
        consumer.close()


def test_what_the_topic_does_not_take_stays_in_quarantine(house: House, poisoned: tuple[str, dict[str, Any]]) -> None:
    topic, _ = poisoned
    house.admin.delete_topics([topic])[topic].result(30)
    wait_for("the topic is gone", lambda: topic not in house.admin.list_topics(timeout=10).topics)
    [task] = replay(house, topic, "produce")["tasks"]
    house.ended(task, "FAILED")
    [(error,)] = house.sql("SELECT error FROM tasks_task WHERE id = %s", task)
    assert "does not exist" in error
    assert states(house, topic) == {"kept"}
