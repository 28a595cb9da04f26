"""Looking into a real topic for a record: by place, by key and time, up to a bound that is told."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from confluent_kafka import Producer
from django.test import Client

from controlplane.quarantine.models import QuarantinedRecord
from controlplane.records import lookup
from controlplane.sources.models import Source
from controlplane.supervisors.models import SpecVersion
from controlplane.tasks.models import Task
from ingestion.sources.topic import TopicWatch
from ingestion.specs.messages.lookup import LookupAnswer, LookupOrder
from ingestion.task.lookup import answer_to
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as
from tests.support.formats import HERE

SEARCH = "/api/v1/records/search/"
START_MS = 1_700_000_000_000
DAY: dict[str, Any] = {"from": "2023-11-14T00:00:00Z", "to": "2023-11-16T00:00:00Z"}
PARTITIONS, EACH = 3, 100


@pytest.fixture
def topic(broker: Broker) -> str:
    """Record n of each partition has the key ``k<n % 10>`` and was written n seconds after the start."""
    name = broker.topic("lookup", PARTITIONS)
    producer: Producer = broker.producer
    for partition in range(PARTITIONS):
        for n in range(EACH):
            value = f"{partition}:{n}".encode()
            headers = [("trace", b"\xff")] if n == 7 else []
            producer.produce(
                name, value, key=f"k{n % 10}", partition=partition, timestamp=START_MS + 1000 * n, headers=headers
            )
    assert producer.flush(30) == 0
    return name


def ask(broker: Broker, topic: str, **more: Any) -> LookupAnswer:
    order = LookupOrder.model_construct(
        topic=topic, consumer_properties={"bootstrap.servers": broker.bootstrap}, address_policy=HERE, **more
    )
    return LookupAnswer.model_validate_json(answer_to(order).model_dump_json())


def places(answer: LookupAnswer) -> list[tuple[int, int]]:
    return [(r.partition, r.offset) for r in answer.found]


def within(first: int, end: int) -> dict[str, int]:
    """The time of the records ``first`` to ``end - 1``."""
    return {"from_ms": START_MS + 1000 * first, "to_ms": START_MS + 1000 * end}


def at(topic: str, offset: int) -> dict[str, Any]:
    return {"topic": topic, "partition": 0, "offset": offset}


def test_a_record_at_its_place(broker: Broker, topic: str) -> None:
    found = ask(broker, topic, partition=1, offset=7)
    assert places(found) == [(1, 7)]
    [record] = found.found
    assert record.payload is not None
    assert record.key is not None
    assert (record.payload.start, record.key.start) == (b"1:7", b"k7")
    assert record.headers == [("trace", b"\xff")]
    assert record.timestamp_ms == START_MS + 7000
    assert found.scanned == 1
    assert found.topic_id == TopicWatch({"bootstrap.servers": broker.bootstrap}, topic, HERE).topic_id()


@pytest.mark.parametrize(("partition", "offset"), [(0, EACH), (PARTITIONS, 0)])
def test_nothing_is_beyond_the_end(broker: Broker, topic: str, partition: int, offset: int) -> None:
    found = ask(broker, topic, partition=partition, offset=offset)
    assert (found.failure, found.found, found.looked) == ("", [], [])


def test_a_key_within_a_time(broker: Broker, topic: str) -> None:
    found = ask(broker, topic, key=b"k3", **within(10, 30))
    assert places(found) == [(p, n) for n in (13, 23) for p in range(PARTITIONS)]
    assert [(part.start, part.upto, part.end) for part in found.looked] == [(10, 30, 30)] * PARTITIONS
    assert found.stopped_by == ""
    alone = ask(broker, topic, key=b"k3", partition=2, **within(10, 30))
    assert places(alone) == [(2, 13), (2, 23)]
    assert alone.scanned == 20
    assert ask(broker, topic, key=b"none", **within(0, EACH)).found == []


def test_a_time_that_nothing_was_written_in(broker: Broker, topic: str) -> None:
    for time in (within(EACH, EACH + 50), {"from_ms": 0, "to_ms": 1}):
        assert ask(broker, topic, key=b"k3", **time).looked == []


def test_a_bound_says_what_was_not_looked_at(broker: Broker, topic: str) -> None:
    found = ask(broker, topic, key=b"k3", most_scanned=10, **within(0, EACH))
    assert (found.stopped_by, found.scanned) == ("records", 10)
    assert sum(part.unseen for part in found.looked) == PARTITIONS * EACH - 10


def test_a_topic_that_is_not_there(broker: Broker) -> None:
    assert "there is no topic 'nowhere'" in ask(broker, "nowhere", partition=0, offset=0).failure


def test_a_broker_that_may_not_be_asked(broker: Broker, topic: str) -> None:
    order = LookupOrder(topic=topic, consumer_properties={"bootstrap.servers": "127.0.0.1:1"}, partition=0, offset=0)
    assert answer_to(order).failure


@pytest.fixture
def read(cast: Cast, broker: Broker, topic: str, settings: Any) -> Cast:
    """The cast's supervisor reads the topic."""
    settings.ADDRESS_POLICY = HERE
    identity = TopicWatch({"bootstrap.servers": broker.bootstrap}, topic, HERE).identity()
    assert identity is not None
    Source.objects.filter(pk=cast.source.pk).update(topic=topic, topic_id=identity.topic_id)
    version = SpecVersion.objects.get(supervisor=cast.supervisor, version=cast.supervisor.version)
    version.spec["spec"]["ioConfig"] |= {"topic": topic, "consumerProperties": {"bootstrap.servers": broker.bootstrap}}
    SpecVersion.objects.filter(pk=version.pk).update(spec=version.spec)
    QuarantinedRecord.objects.filter(pk=cast.quarantined.pk).update(key=b"k7", timestamp_ms=START_MS + 7000)
    return cast


@pytest.mark.usefixtures("cold_processes")
def test_rest_tells_what_kafka_holds_and_what_is_in_quarantine(
    read: Cast, topic: str, clients: dict[str, Client]
) -> None:
    query: dict[str, Any] = {"topic": topic, "key": "k7", **DAY}
    body = clients["operator"].get(SEARCH, query).json()
    assert body["problem"] == ""
    assert len(body["kafka"]["found"]) == PARTITIONS * EACH // 10
    assert body["kafka"]["same_topic"] is True
    first = body["kafka"]["found"][0]
    assert base64.b64decode(first["payload_base64"]) == b"0:7"
    assert first["headers"] == [{"name": "trace", "value_base64": base64.b64encode(b"\xff").decode()}]
    assert [q["id"] for q in body["quarantined"]] == [read.quarantined.pk]
    same = clients["operator"].get(SEARCH, {"topic": topic, "key_base64": "azc=", **DAY}).json()
    assert len(same["kafka"]["found"]) == len(body["kafka"]["found"])


def test_a_viewer_sees_the_quarantine_alone(read: Cast, topic: str, clients: dict[str, Client]) -> None:
    body = clients["viewer"].get(SEARCH, {"topic": topic, "key": "k7", **DAY}).json()
    assert body["kafka"] is None
    assert "operator" in body["problem"]
    assert [q["id"] for q in body["quarantined"]] == [read.quarantined.pk]
    assert clients["outsider"].get(SEARCH, {"topic": topic, "key": "k7", **DAY}).status_code == 404


def test_a_topic_that_was_made_again_is_told(read: Cast, topic: str, clients: dict[str, Client]) -> None:
    Source.objects.filter(pk=read.source.pk).update(topic_id="an-older-one")
    body = clients["operator"].get(SEARCH, at(topic, 5)).json()
    assert body["kafka"]["same_topic"] is False


def test_the_page_leads_from_a_key_to_what_became_of_the_record(read: Cast, topic: str) -> None:
    operator = browsing_as(read, "operator")
    times: dict[str, Any] = {"from": "2023-11-14T00:00", "to": "2023-11-16T00:00"}
    page = operator.get("/records/", {"topic": topic, "key": "0x6b37", **times}).content.decode()
    assert page.count("data-place=") == PARTITIONS * EACH // 10
    assert 'data-quarantined="0:7"' in page
    assert f"topic={topic}&amp;partition=2&amp;offset=97" in page
    place = at(topic, 7)
    plain = operator.get("/records/", place).content.decode()
    assert "View record in Kafka" in plain
    assert "data-place" not in plain
    assert "0:7" in operator.get("/records/", {**place, "look": "1"}).content.decode()
    viewer = browsing_as(read, "viewer")
    assert "View record in Kafka" not in viewer.get("/records/", place).content.decode()
    refused = viewer.get("/records/", {**place, "look": "1"}).content.decode()
    assert "data-not-looked" in refused


@pytest.mark.parametrize(
    "query",
    [
        {"key": "k"},
        {"key": "k", "from": "2023-11-16T00:00:00Z", "to": "2023-11-14T00:00:00Z"},
        {"key": "k", "offset": 1, "partition": 0, **DAY},
        {"partition": 0},
        {"key_base64": "!", **DAY},
        {"partition": 0, "offset": -1},
    ],
)
def test_a_question_that_makes_no_sense(cast: Cast, clients: dict[str, Client], query: dict[str, Any]) -> None:
    assert clients["operator"].get(SEARCH, {"topic": "flights-topic", **query}).status_code == 400
    page = browsing_as(cast, "operator").get(
        "/records/",
        {"topic": "flights-topic", **query},
    )
    assert page.status_code == 400


def test_nobody_reads_it_now(cast: Cast, clients: dict[str, Client]) -> None:
    cast.supervisor.delete()
    Task.objects.all().delete()
    body = clients["operator"].get(SEARCH, at("flights-topic", 1)).json()
    assert "there is no spec to decode" in body["problem"]
    assert lookup.may_look_up(cast.users["operator"], [cast.source])
