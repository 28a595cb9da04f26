"""A repair process is at work when its topic is deleted: it ends, and says why."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Producer

from tests.support.house import House
from tests.support.records import numbered, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers

RECORDS, PARTITIONS = 5, 2
_TOO_OLD_TO_BE_DELIVERED = """
    UPDATE publishing_settledrange SET settled_at = settled_at - interval '10 minutes' WHERE lower(span) >> 44 IN (
        SELECT k.id FROM publishing_progresskey k JOIN sources_source s ON s.id = k.source_id WHERE s.topic = %s
    ) RETURNING 1
"""
_REPAIR = """
    SELECT t.id, t.status, t.error FROM tasks_task t JOIN datasources_datasource d ON d.id = t.datasource_id
    WHERE d.name = %s AND t.kind = 'repair' ORDER BY t.created_at LIMIT 1
"""


def produce_in_transactions(house: House, topic: str) -> None:
    """Two, so that the first one's marker is a hole between records, in each partition."""
    producer = Producer({"bootstrap.servers": house.bootstrap, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(60)
    for first in (0, RECORDS):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            for payload in numbered(first, first + RECORDS):
                producer.produce(topic, payload, partition=partition)
        producer.commit_transaction(60)


def test_a_repair_ends_when_its_topic_is_deleted(house: House, make_workers: Callable[..., Workers]) -> None:
    topic = house.topic(partitions=PARTITIONS)
    held = house.home.path / f"{topic}.held"
    house.fail_at(f"{topic}/repair", decoded=f"pause:{held}")
    produce_in_transactions(house, topic)
    workers = make_workers(house.spec(topic, lock_ms=10_000))
    workers.start(0)
    published(house, topic, 2 * RECORDS * PARTITIONS)
    assert house.sql(_TOO_OLD_TO_BE_DELIVERED, topic)
    wait_for("a repair has read of one partition", held.exists, 60, lambda: house.logs(topic))
    [(repair, *_)] = house.sql(_REPAIR, topic)
    house.admin.delete_topics([topic])[topic].result(30)
    held.unlink()
    house.ended(repair, "FAILED")
    assert f"Topic '{topic}' was deleted" in house.sql(_REPAIR, topic)[0][2]
