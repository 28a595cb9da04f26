"""Another spec, or another task of the same one, while records come: nothing lost, nothing read twice, no pause."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import Endless, published
from tests.support.waiting import wait_for


def spec_of(house: House, kind: str, topic: str, **io_config: Any) -> dict[str, Any]:
    if kind == "share_group":
        return house.spec(topic, **io_config)
    return house.kafka_spec(topic, assignment=kind, **io_config)


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
        "SELECT DISTINCT s.task_id, k.columns::text LIKE '%%half%%' FROM segments_segment s"
        " JOIN segments_segmentschema k ON k.id = s.schema_id"
        " JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s",
        datasource,
    )
    assert len(rows) == len(dict(rows)), "a task wrote with two specs"
    return dict(rows)


KINDS = ["share_group", "consumer_group"]


@pytest.mark.timeout(900)
def test_a_new_spec_under_load(house: House) -> None:
    """A share group and a consumer group, side by side: what one waits for, the other works in.

    Under Spark, since one application hands over to the next. Partitions assigned by number: ``test_upgrade``.
    """
    topics = {kind: house.topic() for kind in KINDS}
    for kind, topic in topics.items():
        house.supervise(spec_of(house, kind, topic))
    first = {kind: house.running_task(topic) for kind, topic in topics.items()}
    streams = {kind: Endless(house, topic) for kind, topic in topics.items()}
    for kind, topic in topics.items():
        published(house, topic, 1_000)
        house.supervise(renewed(house, kind, topic))
    for kind, topic in topics.items():
        wait_for(
            f"the first task has ended, and the second has published ({kind})",
            lambda kind=kind, topic=topic: (
                house.status(first[kind]) == "SUCCESS" and len(publishers(house, topic)) == 2
            ),
            150,
            lambda topic=topic: (tasks_of(house, topic), house.logs(topic)),
        )
        records = streams[kind].finish()
        published(house, topic, records)
        check_exactly_once(house, topic, range(records))
        (old, _, ended, *_), (new, started, *_) = tasks_of(house, topic)
        assert old == first[kind]
        assert started < ended, f"{new} was not up before {old} had ended"
        assert publishers(house, topic) == {old: False, new: True}


def renewed(house: House, kind: str, topic: str) -> dict[str, Any]:
    """The next spec: it makes one more column."""
    spec = spec_of(house, kind, topic)
    half = {"type": "expression", "name": "half", "expression": "n // 2", "language": "sql"}
    spec["dataSchema"]["transformSpec"] = {"transforms": [half]}
    spec["dataSchema"]["dimensionsSpec"] = {
        "dimensions": [{"type": "long", "name": "half"}],
        "useSchemaDiscovery": True,
    }
    return spec
