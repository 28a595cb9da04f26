"""Tasks that can't go on: they fail with their reason, and what they have not published is read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import numbered, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers

FIRST_DAY = range(100)
SECOND_DAY = range(86_400, 86_700)
INTERVAL = "2025-06-02T00-00-00.000Z_2025-06-03T00-00-00.000Z"
# The second day is handed off as soon as it is read, the first one only when its indexer is told to finish.
HANDOFF = {"intermediateHandoffPeriod": "PT1H", "maxTotalRows": 200}


def submitted(house: House, topic: str, **tuning: Any) -> str:
    """A task by hand, with an indexer for each partition; its id."""
    spec = house.kafka_spec(topic, tuning={**HANDOFF, **tuning}, taskCount=2)
    return house.submit({**spec, "type": "index_kafka"})


def failed(house: House, task: str) -> dict[str, Any]:
    """Its status, once it has failed."""

    def status() -> dict[str, Any] | None:
        found: dict[str, Any] = house.api("GET", f"/druid/indexer/v1/task/{task}/status")["status"]
        return found if found["status"] == "FAILED" else None

    return wait_for(f"{task} fails", status, 60)


def gathered(house: House, task: str, records: int) -> None:
    """Wait until an indexer of the task holds so many."""
    held = "SELECT 1 FROM tasks_indexer WHERE task_id = %s AND in_flight = %s"
    wait_for(f"{records} records are in hand", lambda: house.sql(held, task, records), 120)


def stored_offsets(house: House, datasource: str) -> list[int]:
    """Of each partition."""
    rows = house.sql(
        "SELECT k.next_offset FROM segments_progresskey k JOIN segments_source s ON s.id = k.source_id"
        " JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s",
        datasource,
    )
    return [offset for (offset,) in rows]


def test_what_ends_a_task_for_good(house: House, make_workers: Callable[..., Workers]) -> None:
    """Row 26 of the failure matrix: deep storage refuses one of two indexers; the other one's day is kept back too.

    Beside it a task that allows no parse exception: what its other indexer holds is good, and is published.
    """
    refused, strict = house.topic(partitions=2), house.topic(partitions=2)
    for topic in (refused, strict):
        house.produce(topic, numbered(FIRST_DAY.start, FIRST_DAY.stop), partition=0)
    blocked = house.home.segments / refused / INTERVAL
    blocked.parent.mkdir(parents=True)
    blocked.touch()
    refused_task = submitted(house, refused)
    strict_task = submitted(house, strict, maxParseExceptions=0)
    for task in (refused_task, strict_task):
        gathered(house, task, len(FIRST_DAY))
    house.produce(refused, numbered(SECOND_DAY.start, SECOND_DAY.stop), partition=1)
    house.produce(strict, [b"{broken"], partition=1)

    reason = failed(house, refused_task)["errorMsg"]
    assert reason.startswith("The deep storage refuses: can't store ")
    assert reason.endswith(": Not a directory")
    check_exactly_once(house, refused, [])
    assert stored_offsets(house, refused) == [0, 0]
    blocked.unlink()
    make_workers(house.kafka_spec(refused), owner=None).start(0)  # the datasource's next task, without Spark
    published(house, refused, len(FIRST_DAY) + len(SECOND_DAY))
    check_exactly_once(house, refused, [*FIRST_DAY, *SECOND_DAY])

    reason = failed(house, strict_task)["errorMsg"]
    assert reason.startswith("There are 1 parse exceptions, more than tuningConfig.maxParseExceptions (0) allows.")
    assert "at partition 1, offset 0: not JSON" in reason
    totals = check_exactly_once(house, strict, FIRST_DAY)
    assert (totals["unparseable"], totals["quarantined"]) == (0, 0)
