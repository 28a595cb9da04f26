"""A new spec cannot start, and the old one's application is killed: the old one reads on, until the new is mended."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import numbered, published
from tests.support.waiting import wait_for


def mended(house: House, topic: str) -> dict[str, Any]:
    """It reads the topic, and makes one more column than the first."""
    spec = house.spec(topic)
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
    """Row 35 of the failure matrix, of a share group: the next version's Kafka is unreachable.

    Under Spark, since applications come and go by what the supervisor decides.
    """
    topic = house.topic()
    house.produce(topic, numbered(0, 1000))
    house.supervise(house.spec(topic))
    published(house, topic, 1000)
    killed = house.running_task(topic)
    house.supervise(house.spec(topic, consumerProperties={"bootstrap.servers": "127.0.0.1:9"}))
    wait_for(
        "it says that version 2 does not start",
        lambda: "Version 2 of the spec does not start" in said(house, topic),
        90,
        lambda: said(house, topic),
    )
    house.produce(topic, numbered(1000, 2000))
    assert house.kill_application(killed)
    house.ended(killed, "FAILED")
    published(house, topic, 2000)
    newest = house.running_task(topic)
    assert newest != killed
    assert [v for task, v, *_ in tasks_of(house, topic) if task == newest] == [1]
    assert "The task of version 1 continues to read." in said(house, topic)
    house.supervise(mended(house, topic))
    house.produce(topic, numbered(2000, 3000))
    published(house, topic, 3000)
    wait_for(
        "version 3 has taken over",
        lambda: [v for _, v, status, _ in tasks_of(house, topic) if status == "RUNNING"] == [3],
        90,
        lambda: (tasks_of(house, topic), house.logs(topic)),
    )
    check_exactly_once(house, topic, range(3000))
    restarted = [status for task, v, status, _ in tasks_of(house, topic) if v == 1 and task != killed]
    assert restarted == ["SUCCESS"], tasks_of(house, topic)
