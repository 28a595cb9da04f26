"""Bounded reads where partitions have nothing in common, and where the login loses its right meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path

from ingestion.client.memory import MemoryControlPlane
from tests.integration.test_bounded_source import Desk, desk, records, settled, transactional, write
from tests.support.guarded_kafka import Guarded, guarded
from tests.support.indexer import record, stored, total
from tests.support.waiting import wait_for

__all__ = ["desk", "guarded"]


def test_one_indexer_reads_partitions_that_have_nothing_in_common(desk: Desk) -> None:
    """Plain, with aborted transactions alone, and compacted to nothing below its end; a fourth one is empty."""
    config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
    topic = desk.broker.topic(partitions=4, config={**config, "delete.retention.ms": "0"})
    producer, aborting = desk.broker.producer, transactional(desk)
    for n in range(20):
        producer.produce(topic, record(n), key=b"%d" % n, partition=0)
        producer.produce(topic, record(n), key=b"same", partition=2)
        assert producer.flush(30) == 0
    for n in range(3):  # two records and a marker each
        aborting.begin_transaction()
        for key in (b"a", b"b"):
            aborting.produce(topic, record(n), key=key, partition=1)
        assert aborting.flush(30) == 0
        aborting.abort_transaction()
    given = desk.given(topic, (0, 0, 20), (1, 0, 9), (2, 0, 15))

    def all_read() -> int:
        plane = desk.read(given, MemoryControlPlane(given))
        assert [settled(plane, p) for p in range(4)] == [[(0, 20)], [(0, 9)], [(0, 15)], []]
        assert set(stored(plane, desk.folder)) == set(range(20))
        producer.produce(topic, record(99), key=b"same", partition=2)  # rolls the segment
        assert producer.flush(30) == 0
        return total(plane).polled

    wait_for("the cleaner has removed all of the third below its end", lambda: all_read() == 20, 60)


def test_a_login_that_loses_its_right_meanwhile(guarded: Guarded, tmp_path: Path) -> None:
    """What it may not read is neither read nor settled; when it may again the read goes on, and ends."""
    desk, topic = Desk(guarded, tmp_path), guarded.topic(partitions=1)
    guarded.give("TOPIC", topic, "DESCRIBE", "READ")
    guarded.produce(topic, records(50))
    producer = transactional(desk)
    write(producer, topic, records(40, 50))
    given = desk.given(topic, (0, 10, 90), consumer_properties=guarded.client)
    plane = MemoryControlPlane(given)
    reading = threading.Thread(target=desk.read, args=(given, plane), daemon=True)
    reading.start()
    wait_for(
        "all that is committed is published", lambda: settled(plane) == [(10, 50)], 60, lambda: desk.control.status
    )
    guarded.take("TOPIC", topic, "READ")
    wait_for("it says what is missing", lambda: desk.control.status.state == "refused", 60, lambda: desk.control.status)
    assert "lacks the right READ" in desk.control.status.message
    producer.commit_transaction()
    assert reading.is_alive() and settled(plane) == [(10, 50)]
    guarded.give("TOPIC", topic, "READ")
    reading.join(60)
    assert not reading.is_alive()
    assert stored(plane, tmp_path) == list(range(10, 90))
    assert settled(plane) == [(10, 90)]
