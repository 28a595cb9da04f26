"""Consumer groups: members come, go, sleep and die; each record is stored once."""

from __future__ import annotations

from tests.support.house import House
from tests.support.records import check_exactly_once, numbered, published

RECORDS = 100_000


def test_no_fault(house: House) -> None:
    topic = house.topic()
    house.produce(topic, numbered(0, RECORDS))
    house.supervise(house.kafka_spec(topic, taskCount=2, assignment="consumer_group"))
    published(house, topic, RECORDS)
    check_exactly_once(house, topic, range(RECORDS))
