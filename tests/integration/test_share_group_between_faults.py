"""Brokers and applications go down in turn: a share group goes on between them, and needs no quiet for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import Endless, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers

PARTITIONS, ROUNDS = 4, 2
_REACHED = """
    SELECT k.partition, max(upper(r.hull)) FROM publishing_receipt r JOIN publishing_progresskey k ON k.id = r.key_id
    JOIN sources_source s ON s.id = k.source_id WHERE s.topic = %s GROUP BY k.partition
"""


@pytest.mark.timeout(900)
def test_every_partition_goes_on_after_every_fault(house: House, make_workers: Callable[..., Workers]) -> None:
    """The broker counts readers that were killed until their sessions end, and begins them anew when it starts."""
    topic = house.topic(partitions=PARTITIONS)
    workers = make_workers(house.spec(topic, taskCount=2), 2)
    workers.start(0, 1)
    stream = Endless(house, topic)

    def reached() -> dict[int, int]:
        return dict(house.sql(_REACHED, topic))

    def goes_on(since: dict[int, int]) -> bool:
        now = reached()
        return len(now) == PARTITIONS and all(offset > since.get(p, 0) for p, offset in now.items())

    wait_for("every partition is read", lambda: goes_on({}), 60, reached)
    for _ in range(ROUNDS):
        workers.kill(0, 1)
        house.kafka.kill()
        house.kafka.restart()
        before = reached()
        workers.start(0, 1)
        wait_for("every partition goes on after both", lambda since=before: goes_on(since), 45, reached)
        workers.kill(0, 1)
        before = reached()
        workers.start(0, 1)
        wait_for("every partition goes on after a kill", lambda since=before: goes_on(since), 45, reached)
    records = stream.finish()
    published(house, topic, records)
    check_exactly_once(house, topic, range(records))
