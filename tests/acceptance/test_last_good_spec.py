"""A new spec cannot start, and the old one's application is killed: the old one reads on, until the new is mended."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import numbered, published
from tests.support.waiting import wait_for

KINDS = ["share_group", "offset_range"]


def spec_of(house: House, kind: str, topic: str, **io_config: Any) -> dict[str, Any]:
    return house.spec(topic, **io_config) if kind == "share_group" else house.kafka_spec(topic, **io_config)


def mended(house: House, kind: str, topic: str) -> dict[str, Any]:
    """It reads the topic, and makes one more column than the first."""
    spec = spec_of(house, kind, topic)
    half = {"type": "expression", "name": "half", "expression": "n // 2", "language": "sql"}
    spec["dataSchema"]["transformSpec"] = {"transforms": [half]}
    return spec


def tasks_of(house: House, supervisor: str) -> list[tuple[Any, ...]]:
    """(id, spec version, status, error), repairs aside, oldest first."""
    return house.sql(
        "SELECT id, spec_version, status, error FROM tasks_task WHERE supervisor_id = %s AND kind <> 'repair'"
        " ORDER BY created_at",
        supervisor,
    )


def said(house: House, supervisor: str) -> str:
    found = house.api("GET", f"/api/v1/supervisors/{supervisor}/")
    return " ".join(reason["text"] for reason in found["why_nothing"])


@pytest.mark.timeout(900)
def test_the_last_good_spec_is_started_again(house: House) -> None:
    """Row 35 of the failure matrix, for both kinds of progress: the next topic is missing, the next Kafka unreachable.

    Under Spark, since applications come and go by what the supervisor decides.
    """
    topics = {kind: house.topic() for kind in KINDS}
    broken: dict[str, dict[str, Any]] = {
        "offset_range": {"topic": "never-made"},
        "share_group": {"consumerProperties": {"bootstrap.servers": "127.0.0.1:9"}},
    }
    for kind, topic in topics.items():
        house.produce(topic, numbered(0, 1000))
        house.supervise(spec_of(house, kind, topic))
    killed = {}
    for kind, topic in topics.items():
        published(house, topic, 1000)
        killed[kind] = house.running_task(topic)
        spec = spec_of(house, kind, topic)
        spec["ioConfig"] |= broken[kind]
        house.supervise(spec)
    for topic in topics.values():
        wait_for(
            "it says that version 2 does not start",
            lambda topic=topic: "Version 2 of the spec does not start" in said(house, topic),
            90,
            lambda topic=topic: said(house, topic),
        )
    for kind, topic in topics.items():
        house.produce(topic, numbered(1000, 2000))
        assert house.kill_application(killed[kind])
    for kind, topic in topics.items():
        house.ended(killed[kind], "FAILED")
        published(house, topic, 2000)
        newest = house.running_task(topic)
        assert newest != killed[kind]
        assert [v for task, v, *_ in tasks_of(house, topic) if task == newest] == [1]
        assert "The task of version 1 reads on meanwhile." in said(house, topic)
    for kind, topic in topics.items():
        house.supervise(mended(house, kind, topic))
        house.produce(topic, numbered(2000, 3000))
    for kind, topic in topics.items():
        published(house, topic, 3000)
        wait_for(
            "version 3 has taken over",
            lambda topic=topic: [v for _, v, status, _ in tasks_of(house, topic) if status == "RUNNING"] == [3],
            90,
            lambda topic=topic: (tasks_of(house, topic), house.logs(topic)),
        )
        check_exactly_once(house, topic, range(3000))
        restarted = [status for task, v, status, _ in tasks_of(house, topic) if v == 1 and task != killed[kind]]
        assert restarted == ["SUCCESS"], tasks_of(house, topic)
