"""Until when a datasource is complete, held against a real Kafka: nothing that it held before is missing, ever."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from django.test import Client
from django.utils import timezone

from controlplane.publishing.completeness import CLOCK_MARGIN
from controlplane.sources.models import Source
from controlplane.supervisors import services
from controlplane.supervisors.lag import observe_waiting
from controlplane.supervisors.models import Supervisor
from ingestion.specs.source_traits import STORED_OFFSETS
from tests.integration.test_supervisor_iterations import submit
from tests.integration.test_waiting_lag import source_of
from tests.support.broker import Broker
from tests.support.django_cast import Cast, settle
from tests.support.house import House
from tests.support.records import Endless
from tests.support.waiting import wait_for
from tests.support.workers import Workers

PARTITIONS = 3
_UNTIL = "SELECT max(complete_until) FROM sources_source WHERE topic = %s"
_SETTLED = """
    SELECT k.partition, lower(r.span) - (k.id << 44), upper(r.span) - (k.id << 44)
    FROM sources_source s JOIN publishing_progresskey k ON k.source_id = s.id
    JOIN publishing_settledrange r ON r.span <@ int8range(k.id << 44, (k.id + 1) << 44) WHERE s.topic = %s
"""
Settled = list[tuple[int, int, int]]


def held(broker: Broker, topic: str) -> list[tuple[int, int, int]]:
    """Partition, offset and Kafka's timestamp of every record."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "truth", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
    found, ended = [], 0
    while ended < PARTITIONS:
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            ended += 1
        else:
            found.append((message.partition() or 0, message.offset() or 0, message.timestamp()[1]))
    consumer.close()
    return found


def missing(records: list[tuple[int, int, int]], until: datetime, settled: Settled) -> list[tuple[int, int, int]]:
    """Those that Kafka held before a time and that had not ended."""
    before = [r for r in records if r[2] < until.timestamp() * 1000]
    return [r for r in before if not any(p == r[0] and low <= r[1] < high for p, low, high in settled)]


@pytest.mark.timeout(300)
def test_at_no_moment_is_a_record_missing_that_kafka_held_before(
    house: House, make_workers: Callable[..., Workers]
) -> None:
    """A share group whose indexers are killed while records come: what they held is open, and delivered again.

    The stack's beat looks while indexers publish; in one process a look comes before or after a publish.
    """
    topic = house.topic(partitions=PARTITIONS, config={"message.timestamp.type": "LogAppendTime"})
    workers = make_workers(house.spec(topic, taskCount=2), 2)
    samples: list[tuple[datetime, Settled]] = []

    def sampled() -> datetime | None:
        [[(until,)], settled] = house.sql_at_once(topic, _UNTIL, _SETTLED)
        if until is not None:
            samples.append((until, settled))
        return until

    workers.start(0, 1)
    stream = Endless(house, topic)
    first = wait_for("it is complete until some time", sampled, 90, lambda: house.logs(topic))
    workers.kill(0, 1)
    killed = timezone.now()
    workers.start(0, 1)
    wait_for("it goes on", lambda: (sampled() or first) > killed, 90, lambda: house.logs(topic))
    stream.finish()
    finished = timezone.now()
    wait_for("it is complete", lambda: (sampled() or first) > finished, 90, lambda: house.logs(topic))

    records = held(house, topic)
    for until, settled in dict(reversed(samples)).items():  # as it was first said
        assert missing(records, until, settled) == []
    assert any(missing(records, finished, settled) for _, settled in samples), "a later time would have been wrong"
    assert len({until for until, _ in samples}) >= 3
    answer = house.api("GET", f"/api/v1/datasources/{workers.datasource}/completeness/")
    assert datetime.fromisoformat(answer["complete_until"]) > finished


@pytest.fixture
def topic(broker: Broker) -> str:
    topic = broker.topic(partitions=PARTITIONS)
    broker.produce(topic, [b"{}"] * 10, partition=0)
    return topic


@pytest.fixture
def supervisor(cast: Cast, broker: Broker, topic: str) -> Supervisor:
    return submit(cast, broker, broker.bootstrap, topic)


@pytest.fixture
def source(supervisor: Supervisor, broker: Broker, topic: str) -> Source:
    """Nothing of it is settled; a task has begun on partition 0 alone."""
    source = source_of(supervisor, broker, topic, STORED_OFFSETS.kind, supervisor.pk)
    source.keys.create(partition=0, next_offset=0)
    return source


def test_each_look_proves_what_is_settled_of_those_before(
    source: Source, supervisor: Supervisor, broker: Broker, topic: str, clients: dict[str, Client]
) -> None:
    key = source.keys.get(partition=0)
    observe_waiting()
    assert known(source) is None, "ten records wait"
    looked = timezone.now()
    broker.produce(topic, [b"{}"] * 5, partition=0)
    settle(key, (0, 10))
    source.keys.filter(pk=key.pk).update(next_offset=10)
    observe_waiting()
    first = known(source)
    assert first is not None and first < looked, "what came after the first look is not settled"
    settle(key, (10, 15))
    source.keys.filter(pk=key.pk).update(next_offset=15)
    again = timezone.now()
    observe_waiting()
    second = known(source)
    assert second is not None and second > first
    assert again - second <= CLOCK_MARGIN
    answer = clients["viewer"].get(f"/api/v1/datasources/{supervisor.datasource.name}/completeness/").json()
    assert datetime.fromisoformat(answer["complete_until"]) == second
    assert [(r["supervisor"], r["topic"], r["problem"]) for r in answer["readers"]] == [(supervisor.pk, topic, "")]


def known(source: Source) -> datetime | None:
    source.refresh_from_db()
    return source.complete_until


def test_the_reader_furthest_behind_counts(cast: Cast, clients: dict[str, Client]) -> None:
    one = "/api/v1/datasources/flights/completeness/"
    assert clients["viewer"].get(one).json()["complete_until"] is None
    now = timezone.now()
    Source.objects.filter(pk=cast.source.pk).update(complete_until=now, looked_at=now)
    answer = clients["viewer"].get(one).json()
    assert (datetime.fromisoformat(answer["complete_until"]), answer["reason"]) == (now, "")
    document: Any = {**cast.supervisor.versions.get().spec}
    document["spec"]["ioConfig"] |= {"topic": "another", "groupId": "another"}
    services.submit_supervisor(user=cast.users["owner"], document={**document, "id": "second"}, team_name="alpha")
    answer = clients["viewer"].get(one).json()
    assert (answer["complete_until"], answer["reason"]) == (None, "second: It has not read any record yet.")
    services.terminate(user=cast.users["owner"], supervisor=Supervisor.objects.get(pk="second"))
    services.suspend(user=cast.users["owner"], supervisor=cast.supervisor)
    answer = clients["viewer"].get(one).json()
    assert datetime.fromisoformat(answer["complete_until"]) == now
    assert "suspended" in answer["reason"]
    Supervisor.objects.all().delete()
    assert clients["viewer"].get(one).json()["complete_until"] is None
