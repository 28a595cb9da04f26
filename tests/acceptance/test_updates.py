"""Another spec, or another task of the same one, while records come: nothing lost, nothing read twice, no pause."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.house import House, wait_for
from tests.support.invariants import check_exactly_once
from tests.support.records import Endless, published


def spec_of(house: House, kind: str, topic: str, **io_config: Any) -> dict[str, Any]:
    if kind == "share_group":
        return house.spec(topic, **io_config)
    return house.kafka_spec(topic, assignment=kind, startDelay="PT0S", **io_config)


def tasks_of(house: House, datasource: str) -> list[tuple[Any, ...]]:
    """(id, started, ended) of the datasource's tasks, repairs aside, oldest first."""
    return house.sql(
        "SELECT t.id, t.started_at, t.ended_at, t.status, t.error FROM tasks_task t"
        " JOIN datasources_datasource d ON d.id = t.datasource_id"
        " WHERE d.name = %s AND t.kind <> 'repair' ORDER BY t.created_at",
        datasource,
    )


def publishers(house: House, datasource: str) -> dict[str, bool]:
    """Who has published segments, and whether they have the column that the new spec makes."""
    rows = house.sql(
        "SELECT DISTINCT s.task_id, s.columns::text LIKE '%%half%%' FROM segments_segment s"
        " JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s",
        datasource,
    )
    assert len(rows) == len(dict(rows)), "a task wrote with two specs"
    return dict(rows)


@pytest.mark.parametrize("kind", ["share_group", "offset_range", "consumer_group"])
def test_a_new_spec_under_load(house: House, kind: str) -> None:
    topic = house.topic()
    house.supervise(spec_of(house, kind, topic, taskCount=2))
    first = house.running_task(topic)
    stream = Endless(house, topic)
    published(house, topic, 1_000)
    renewed = spec_of(house, kind, topic, taskCount=2)
    renewed["dataSchema"]["transformSpec"] = {
        "transforms": [{"type": "expression", "name": "half", "expression": "n // 2", "language": "sql"}]
    }
    house.supervise(renewed)
    wait_for(
        "the first task has ended, and the second has published",
        lambda: house.status(first) == "SUCCESS" and len(publishers(house, topic)) == 2,
        120,
        lambda: (tasks_of(house, topic), house.logs(topic)),
    )
    records = stream.finish()
    published(house, topic, records)
    check_exactly_once(house, topic, range(records))
    (old, _, ended, *_), (new, started, *_) = tasks_of(house, topic)
    assert old == first
    assert started < ended, f"{new} was not up before {old} had ended"
    assert publishers(house, topic) == {old: False, new: True}


def test_tasks_take_turns(house: House) -> None:
    """taskDuration: the next task is up before the last one stops, and goes on where it ends."""
    topic = house.topic()
    house.supervise(spec_of(house, "offset_range", topic, taskDuration="PT8S"))
    house.running_task(topic)
    stream = Endless(house, topic)
    wait_for(
        "three tasks have published",
        lambda: len(publishers(house, topic)) == 3,
        150,
        lambda: (tasks_of(house, topic), house.logs(topic)),
    )
    records = stream.finish()
    published(house, topic, records)
    check_exactly_once(house, topic, range(records))
    ended = [t for t in tasks_of(house, topic) if t[2] is not None]
    assert len(ended) >= 2
    assert {t[3] for t in ended} == {"SUCCESS"}, ended
