"""Stored offsets, with no fault and with every fault: nothing lost, nothing twice."""

from __future__ import annotations

from tests.support.house import House
from tests.support.records import check_exactly_once, numbered, published

RECORDS = 100_000


def test_no_fault(house: House) -> None:
    topic = house.topic()
    house.produce(topic, numbered(0, RECORDS))
    house.supervise(house.kafka_spec(topic, taskCount=2))
    published(house, topic, RECORDS)
    totals = check_exactly_once(house, topic, range(RECORDS))
    assert totals["polled"] == RECORDS
    assert totals["unparseable"] == totals["thrown_away"] == totals["quarantined"] == 0
