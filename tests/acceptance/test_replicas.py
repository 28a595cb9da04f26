"""Two replicas under Spark: the one that publishes is killed, and the other one publishes on."""

from __future__ import annotations

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import Endless, published
from tests.support.waiting import wait_for

_READING = """
    SELECT t.id FROM tasks_task t JOIN tasks_indexer i ON i.task_id = t.id
    WHERE t.supervisor_id = %s AND t.status = 'RUNNING' AND i.state = 'reading'
"""
_PUBLISHED_BY = "SELECT task_id, published FROM segments_indexerfence WHERE task_id = ANY(%s) ORDER BY published DESC"


def test_the_application_that_publishes_is_killed(house: House) -> None:
    """Under Spark, since a whole application dies."""
    topic = house.topic()
    supervisor = house.supervise(house.kafka_spec(topic, replicas=2))
    both = wait_for(
        "two replicas read",
        lambda: (
            {row[0] for row in house.sql(_READING, supervisor)} if len(house.sql(_READING, supervisor)) == 2 else None
        ),
        180,
        lambda: house.logs(topic),
    )
    stream = Endless(house, topic)
    published(house, topic, 1000)
    leader = house.sql(_PUBLISHED_BY, list(both))[0][0]
    [other] = both - {leader}
    assert house.kill_application(leader)
    before = dict(house.sql(_PUBLISHED_BY, [other])).get(other, 0)
    wait_for(
        "the other one publishes",
        lambda: dict(house.sql(_PUBLISHED_BY, [other])).get(other, 0) > before + 1000,
        60,
        lambda: house.logs(topic),
    )
    records = stream.finish()
    published(house, topic, records)
    totals = check_exactly_once(house, topic, range(records))
    assert totals["redundant"] > 0
    wait_for(
        "the dead one is replaced",
        lambda: len(house.sql(_READING, supervisor)) == 2,
        120,
        lambda: (house.sql(_READING, supervisor), house.logs(topic)),
    )
    house.ended(leader, "FAILED")
    assert house.status(other) == "RUNNING"
    house.api("POST", f"/druid/indexer/v1/supervisor/{supervisor}/terminate")
