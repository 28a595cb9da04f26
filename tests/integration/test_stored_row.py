"""From a record's place in Kafka to the row that it became: its own, one among like ones, and a row of a rollup."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support.house import House
from tests.support.waiting import wait_for
from tests.support.workers import Workers

TIME = "2026-01-01T10:00:00Z"


def cells(answer: dict[str, Any], name: str) -> list[Any]:
    place = [c["name"] for c in answer["rows"]["columns"]].index(name)
    return [row[place] for row in answer["rows"]["rows"]]


def stored(house: House, topic: str, count: int) -> None:
    def outcomes() -> set[str]:
        at = [f"/api/v1/records/?topic={topic}&partition=0&offset={n}" for n in range(count)]
        return {fate["outcome"] for place in at for fate in house.api("GET", place, expect=200)["fates"]}

    wait_for("a reader is known", lambda: house.sql("SELECT 1 FROM sources_source WHERE topic = %s", topic), 60)
    wait_for(f"{count} are stored", lambda: outcomes() == {"stored"}, 60)


def row_of(house: House, topic: str, offset: int) -> dict[str, Any]:
    answer = house.api("GET", f"/api/v1/records/rows/?topic={topic}&partition=0&offset={offset}", expect=200)
    [found] = answer["results"]
    return dict(found)


def test_a_record_leads_to_its_row(house: House, make_workers: Callable[..., Workers]) -> None:
    topic = house.topic("row", 1)
    lines: list[dict[str, Any]] = [{"time": TIME, "n": n, "word": f"w{n}", "tags": ["x"]} for n in range(3)]
    lines += [{"time": TIME, "n": 7, "word": "twin"}] * 2
    house.produce(topic, [json.dumps(line).encode() for line in lines])
    make_workers(house.spec(topic)).start(0)
    stored(house, topic, 5)
    own = row_of(house, topic, 1)
    assert (cells(own, "n"), cells(own, "word")) == ([1], ["w1"])
    assert (own["made"]["word"], own["rollup"], own["problem"]) == ("w1", False, "")
    assert cells(row_of(house, topic, 3), "word") == ["twin", "twin"]
    nothing = house.api("GET", f"/api/v1/records/rows/?topic={topic}&partition=0&offset=99", expect=200)
    assert nothing == {"results": []}


def test_of_a_rollup_it_is_the_row_that_it_was_added_to(house: House, make_workers: Callable[..., Workers]) -> None:
    topic = house.topic("row", 1)
    house.produce(topic, [json.dumps({"time": TIME, "n": n, "word": "abc"[n % 3]}).encode() for n in range(9)])
    spec = house.spec(topic)
    spec["dataSchema"] |= {
        "dimensionsSpec": {"dimensions": ["word"]},
        "metricsSpec": [{"type": "count", "name": "count"}, {"type": "longSum", "name": "n", "fieldName": "n"}],
        "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "HOUR", "rollup": True},
    }
    make_workers(spec).start(0)
    stored(house, topic, 9)
    found = row_of(house, topic, 4)
    assert found["rollup"] is True
    assert found["made"]["n"] == 4
    assert set(cells(found, "word")) == {"b"}
    assert sum(cells(found, "count")) == 3
