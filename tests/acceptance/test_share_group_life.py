"""What share-group ingestion meets in its life: many indexers, poison, new topics, transactions, restarts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.house import House
from tests.support.invariants import check_adds_up, check_exactly_once, stored_numbers
from tests.support.quick_kafka import Kafka
from tests.support.records import Endless, numbered, published
from tests.support.waiting import PATIENCE, wait_for
from tests.support.workers import Workers


def reading(house: House, task: str) -> int:
    """How many indexers of a task read."""
    rows = house.sql("SELECT count(*) FROM tasks_indexer WHERE task_id = %s AND state = 'reading'", task)
    return int(rows[0][0])


@pytest.mark.timeout(900)
def test_twenty_indexers_on_four_partitions(house: House) -> None:
    """All join, records reach more than four of them, and none pauses while others come and go.

    Under Spark, whose driver adds indexers to an application and takes them away.
    """
    topic = house.topic(partitions=4)
    supervisor = house.supervise(house.spec(topic, taskCount=6, consumersPerIndexer=1, lock_ms=60_000))
    task = house.running_task(topic)
    stream = Endless(house, topic)
    published(house, topic, 2_000)
    house.api("POST", f"/api/v1/supervisors/{supervisor}/scale/", {"taskCount": 20})
    gaps = _longest_gap(house, topic, lambda: reading(house, task) >= 20, 150)
    house.api("POST", f"/api/v1/supervisors/{supervisor}/scale/", {"taskCount": 8})
    gaps = max(gaps, _longest_gap(house, topic, lambda: reading(house, task) <= 8, 90))
    records = stream.finish()
    published(house, topic, records)
    check_exactly_once(house, topic, range(records))
    assert house.running_task(topic) == task, "the application was replaced"
    shares = house.sql(
        "SELECT number, published FROM publishing_indexerfence WHERE task_id = %s AND published > 0", task
    )
    assert len(shares) > 4, shares
    # A pause of the group would last as long as the lock.
    assert gaps < 30, f"nothing was published for {gaps:.1f} s while indexers came and went"


def _longest_gap(house: House, datasource: str, done: Any, seconds: float) -> float:
    """The longest time without a new published row until ``done``; fails after ``seconds``."""
    longest, last, since, end = 0.0, -1, time.monotonic(), time.monotonic() + PATIENCE * seconds
    while not done():
        assert time.monotonic() < end, house.logs(datasource)
        count = house.sql(
            "SELECT sum(published) FROM publishing_indexerfence f"
            " JOIN datasources_datasource d ON d.id = f.datasource_id WHERE d.name = %s",
            datasource,
        )[0][0]
        now = time.monotonic()
        if count != last:
            last, since = count, now
        longest = max(longest, now - since)
    return longest


def test_one_malformed_record_in_a_thousand(house: House, make_workers: Callable[..., Workers]) -> None:
    """Row 19 of the failure matrix: each is counted, saved whole with offset and error, quarantined and rejected.

    The others are published.
    """
    topic = house.topic()
    bad = [f'{{"n": {n}, "time": "2025-06-01", broken <script>'.encode() for n in range(20)]
    good = list(numbered(0, 20_000))
    for index, payload in enumerate(bad):
        house.produce(topic, [*good[index * 1000 : (index + 1) * 1000], payload])
    make_workers(house.spec(topic)).start(0)
    published(house, topic, 20_000)
    wait_for("all bad records are counted", lambda: house.totals(topic)["unparseable"] == 20, 60)
    totals = check_exactly_once(house, topic, range(20_000))
    assert totals["quarantined"] == 20
    kept = house.api("GET", f"/api/v1/datasources/{topic}/quarantine/?limit=100")["results"]
    assert sorted(k["payload_text"] for k in kept) == sorted(p.decode() for p in bad)
    assert all(k["error"] and k["offset"] >= 0 and k["reason"] == "unparseable" for k in kept)
    one = kept[0]
    fate = house.api("GET", f"/api/v1/records/?topic={topic}&partition={one['partition']}&offset={one['offset']}")
    assert fate["fates"][0]["outcome"] == "unparseable"


def test_a_topic_made_again(house: House, make_workers: Callable[..., Workers]) -> None:
    """Row 10 of the failure matrix: same name, new id, offsets from 0; its records are ingested, an event says so."""
    topic = house.topic(partitions=2)
    house.produce(topic, numbered(0, 5_000))
    make_workers(house.spec(topic, taskCount=1)).start(0)
    published(house, topic, 5_000)
    house.admin.delete_topics([topic])[topic].result(30)
    wait_for("the topic is gone", lambda: topic not in house.admin.list_topics(timeout=10).topics, 30)
    house.make_topic(topic, 2)
    house.produce(topic, numbered(5_000, 12_000))
    published(house, topic, 12_000)
    check_exactly_once(house, topic, range(12_000))
    events = house.api("GET", f"/api/v1/datasources/{topic}/events/")["results"]
    assert [e["kind"] for e in events] == ["topic_recreated"]


def test_transactions_some_aborted(house: House, make_workers: Callable[..., Workers]) -> None:
    """Row 12 of the failure matrix: only committed records appear; the rest does not leave many settled ranges."""
    topic = house.topic(partitions=2)
    producer = Producer({"bootstrap.servers": house.bootstrap, "transactional.id": f"tx-{topic}"})
    producer.init_transactions(30)
    committed: set[int] = set()
    for transaction in range(60):
        producer.begin_transaction()
        numbers = range(transaction * 50, transaction * 50 + 50)
        for payload in numbered(numbers.start, numbers.stop):
            producer.produce(topic, value=payload)
        assert producer.flush(30) == 0  # so that what is aborted stands in the log
        if transaction % 3 == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
            committed |= set(numbers)
    make_workers(house.spec(topic, taskCount=1, lock_ms=1000, delivery_limit=2)).start(0)
    published(house, topic, len(committed))
    check_exactly_once(house, topic, committed)

    def ranges() -> int:
        return int(
            house.sql(
                "SELECT count(*) FROM publishing_settledrange r JOIN publishing_progresskey k"
                " ON r.span && int8range(k.id << 44, (k.id + 1) << 44) JOIN sources_source s ON s.id = k.source_id"
                " WHERE s.topic = %s",
                topic,
            )[0][0]
        )

    wait_for("the settled ranges are few", lambda: ranges() <= 4, 90, ranges)
    check_exactly_once(house, topic, committed)


REASONS: dict[str, dict[str, Any]] = {
    "topic_empty": {},
    "starts_at_latest": {"useEarliestOffset": False},
    "all_outside_window": {"earlyMessageRejectionPeriod": "PT1H"},
    "all_filter_drops": {"filter": {"type": "selector", "dimension": "category", "value": "none"}},
}


@pytest.mark.parametrize("code", REASONS)
def test_a_task_with_nothing_to_show_says_why(house: House, make_workers: Callable[..., Workers], code: str) -> None:
    topic = house.topic(partitions=1)
    spec = house.spec(topic, taskCount=1)
    if "filter" in REASONS[code]:
        spec["dataSchema"]["transformSpec"] = REASONS[code]
    else:
        spec["ioConfig"] |= REASONS[code]
    if code == "all_outside_window":
        future = {"time": "2999-01-01T00:00:00Z", "n": 1, "value": 3}
        house.produce(topic, [json.dumps(future).encode()] * 10)
    elif code != "topic_empty":
        house.produce(topic, numbered(0, 10))
    workers = make_workers(spec)
    workers.start(0)
    wait_for(f"the reason {code}", lambda: code in reasons(house, workers), 90, lambda: reasons(house, workers))
    check_adds_up(house.totals(topic))
    assert not stored_numbers(house, topic)[0]


def reasons(house: House, workers: Workers) -> list[str]:
    return [r["code"] for r in house.api("GET", f"/api/v1/tasks/{workers.id}/")["why_nothing"]]


def test_share_groups_off_on_the_broker(house: House, make_workers: Callable[..., Workers]) -> None:
    """A task with nothing to show says why: a broker that has no share groups."""
    with Kafka(house.home, share_groups=False, name="kafka-without") as kafka:
        topic = house.topic()
        spec = house.spec(topic, lock_ms=30_000)  # within that broker's own bounds
        spec["ioConfig"]["consumerProperties"]["bootstrap.servers"] = kafka.bootstrap
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
        workers = make_workers(spec)
        workers.start(0)

        def said() -> list[str]:
            return reasons(house, workers)

        wait_for("the reason", lambda: "share_groups_off" in said(), 90, said)
