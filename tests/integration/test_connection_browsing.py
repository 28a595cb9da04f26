"""What a connection's cluster holds, on a real Kafka: topics, records, groups, over REST and on the pages."""

from __future__ import annotations

import base64
import json
import re
import uuid
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from django.test import Client

from controlplane.connections import browsing
from controlplane.connections.models import Connection
from controlplane.loading.models import Draft
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as, spec_for
from tests.support.waiting import wait_for

BINARY = bytes(range(256))


@pytest.fixture
def cluster(cast: Cast, broker: Broker) -> Connection:
    """A connection of team alpha's to the broker."""
    return Connection.objects.create(
        team=cast.alpha, name="local", kind="kafka", properties={"bootstrap.servers": broker.kafka.bootstrap}
    )


@pytest.fixture
def topic(broker: Broker) -> str:
    """Two partitions with three and one records; the last in time is an odd one."""
    name, admin = f"browse-{uuid.uuid4().hex[:8]}", AdminClient({"bootstrap.servers": broker.kafka.bootstrap})
    # Their timestamps are of 1970: a broker that looks for expired records just now would delete them.
    admin.create_topics([NewTopic(name, 2, config={"retention.ms": "-1"})])[name].result(30)
    producer = Producer({"bootstrap.servers": broker.kafka.bootstrap})
    for number in range(3):
        producer.produce(
            name, json.dumps({"n": number}).encode(), key=f"k{number}".encode(), partition=0, timestamp=1000 + number
        )
    producer.produce(name, BINARY, partition=1, timestamp=5000, headers=[("trace", b"<b>"), ("none", None)])
    assert producer.flush(30) == 0
    return name


def test_topics_are_listed_and_searched_page_by_page(cluster: Connection, topic: str) -> None:
    listing = browsing.list_topics(cluster, search=topic.upper())
    assert [(r.name, r.partitions, r.records, r.problem) for r in listing.rows] == [(topic, 2, 4, "")]
    assert (listing.total, listing.next) == (1, "")
    everything = browsing.list_topics(cluster, limit=200)
    names: list[str] = []
    after = ""
    while True:
        page = browsing.list_topics(cluster, after=after, limit=1)
        names += [row.name for row in page.rows]
        after = page.next
        if not after or len(names) > 3:
            break
    assert names == [row.name for row in everything.rows][: len(names)]
    assert not any(row.name.startswith("__") for row in everything.rows)


def test_the_page_sorts_all_topics_by_what_is_asked_of_the_whole_list(
    cluster: Connection, topic: str, cast: Cast, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"sorted-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.kafka.bootstrap})
    names = {f"{prefix}-a": 1, f"{prefix}-b": 3, f"{prefix}-c": 2}
    for future in admin.create_topics([NewTopic(name, partitions) for name, partitions in names.items()]).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": broker.kafka.bootstrap})
    for name, count in ((f"{prefix}-a", 5), (f"{prefix}-c", 7)):
        for _ in range(count):
            producer.produce(name, b"x", partition=0)
    assert producer.flush(30) == 0
    client, address = browsing_as(cast, "owner"), "/connections/alpha/local/topics/"

    def shown(sort: str, **more: str) -> list[str]:
        text = client.get(address, {"search": prefix, "sort": sort, **more}).content.decode()
        return [name.removeprefix(f"{prefix}-") for name in re.findall(r'data-topic="([^"]+)"', text)]

    assert shown("name") == ["a", "b", "c"]
    assert shown("-partitions") == ["b", "c", "a"]
    assert shown("-records") == ["c", "a", "b"]
    monkeypatch.setattr(browsing, "PAGE", 2)
    assert shown("-records") == ["c", "a"]
    assert shown("-records", page="2") == ["b"]
    monkeypatch.setattr(browsing, "MAX_PARTITIONS", 5)
    answer = client.get(address, {"search": prefix, "sort": "-records"}).content.decode()
    assert "can&#x27;t be sorted by records" in answer
    assert 'aria-sort="ascending"' in answer


def test_a_rate_is_told_at_the_second_look(cluster: Connection, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert browsing.list_topics(cluster, search=topic).rows[0].per_second is None
    monkeypatch.setattr(browsing, "RATE_S", (0.0, 600.0))
    assert browsing.list_topics(cluster, search=topic).rows[0].per_second == 0.0


def test_a_topic_in_full(cluster: Connection, topic: str) -> None:
    found = browsing.get_topic(cluster, topic)
    assert [(p.number, p.start, p.end, p.records) for p in found.partitions] == [(0, 0, 3, 3), (1, 0, 1, 1)]
    assert all(p.leader is not None and p.leader in p.replicas for p in found.partitions)
    assert "retention.ms" in {setting.name for setting in found.settings}


@pytest.mark.usefixtures("cold_processes")
def test_its_newest_records_come_first_and_whole_within_bounds(
    cluster: Connection, topic: str, clients: dict[str, Client]
) -> None:
    address = f"/api/v1/connections/alpha/local/topics/{topic}/records/"

    def all_of_them() -> Any:  # it tells what Kafka gives in time
        told = clients["operator"].get(address).json()["records"]
        return told if len(told) == 4 else None

    said = wait_for("Kafka gives all four", all_of_them, 30)
    assert [(r["partition"], r["offset"], r["timestamp_ms"]) for r in said] == [
        (1, 0, 5000),
        (0, 2, 1002),
        (0, 1, 1001),
        (0, 0, 1000),
    ]
    assert base64.b64decode(said[0]["payload"]["base64"]) == BINARY and said[0]["payload"]["size_bytes"] == 256
    assert [(h["name"], h["value"]) for h in said[0]["headers"]] == [
        ("trace", {"base64": base64.b64encode(b"<b>").decode(), "size_bytes": 3}),
        ("none", None),
    ]
    assert base64.b64decode(said[1]["key"]["base64"]) == b"k2"
    first = clients["owner"].get(address, {"rows": "1", "earliest": "true"}).json()["records"]
    assert len(first) == 1 and first[0]["offset"] == 0
    assert clients["viewer"].get(address).status_code == 403
    assert clients["outsider"].get(address).status_code == 404
    assert clients["owner"].get(address, {"rows": "51"}).status_code == 400


def test_what_there_is_not(cluster: Connection, broker: Broker, clients: dict[str, Client]) -> None:
    start = "/api/v1/connections/alpha/local/"
    for path in ("topics/no-such-topic/", "topics/no-such-topic/records/", "groups/no-such-group/"):
        assert clients["owner"].get(start + path).status_code == 404, path
    Connection.objects.update(kind="kafka", properties={"bootstrap.servers": "127.0.0.1:1"})
    away = clients["owner"].get(f"{start}topics/")
    assert away.status_code == 503 and "refuses the connection" in away.json()["detail"]


def test_groups_with_their_lag(cluster: Connection, topic: str, broker: Broker) -> None:
    group = f"group/{uuid.uuid4().hex[:8]}"
    consumer = Consumer({"bootstrap.servers": broker.kafka.bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(topic, 0, 1), TopicPartition(topic, 1, 1)], asynchronous=False)
    consumer.close()
    assert [row.name for row in browsing.list_groups(cluster, search=group).rows] == [group]
    found = browsing.get_group(cluster, group)
    assert [(o.topic, o.partition, o.offset, o.end, o.lag) for o in found.offsets] == [
        (topic, 0, 1, 3, 2),
        (topic, 1, 1, 1, 0),
    ]
    assert (found.lag, found.members) == (2, [])


def test_offsets_of_a_group_and_partitions_of_a_topic_are_sorted_in_the_address(
    cluster: Connection, topic: str, broker: Broker, cast: Cast
) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"
    consumer = Consumer({"bootstrap.servers": broker.kafka.bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(topic, 0, 1), TopicPartition(topic, 1, 1)], asynchronous=False)
    consumer.close()
    client, start = browsing_as(cast, "viewer"), "/connections/alpha/local"

    def column(address: str, name: str, **query: str) -> list[str]:
        text = client.get(f"{start}/{address}", query).content.decode()
        cells = re.findall(rf'<t[dh](?: scope="row")? data-col="{name}"[^>]*>(.*?)</t[dh]>', text, re.DOTALL)
        return [re.sub(r"<[^>]+>", "", cell) for cell in cells]

    assert column(f"groups/{group}/", "lag") == ["2", "0"]
    assert column(f"groups/{group}/", "lag", sort="lag") == ["0", "2"]
    assert column(f"groups/{group}/", "partition", search=topic[3:]) == ["0", "1"]
    assert column(f"groups/{group}/", "partition", search="no topic like it") == []
    assert column(f"topics/{topic}/", "records") == ["3", "1"]
    assert column(f"topics/{topic}/", "records", sort="records") == ["1", "3"]
    for address in (f"groups/{group}/", f"topics/{topic}/"):
        assert client.get(f"{start}/{address}", {"sort": "nothing"}).status_code == 400


def test_the_pages_show_them_as_text(cluster: Connection, topic: str, cast: Cast) -> None:
    client, start = browsing_as(cast, "operator"), "/connections/alpha/local/"
    listed = client.get(f"{start}topics/", {"search": topic}).content.decode()
    assert f'data-topic="{topic}"' in listed
    page = client.get(f"{start}topics/{topic}/").content.decode()
    assert "broker" in page and "retention.ms" in page
    owner = browsing_as(cast, "owner").get("/supervisors/-/new/", {"connection": "local", "topic": topic})
    assert "&quot;connection&quot;: &quot;local&quot;" in owner.content.decode()
    assert f"&quot;topic&quot;: &quot;{topic}&quot;" in owner.content.decode()

    def all_of_them() -> str:  # it shows what Kafka gives in time
        page = str(client.get(f"{start}topics/{topic}/records/").content.decode())
        return page if "in 4 records of the topic" in page and 'data-place="0:0"' in page else ""

    records = wait_for("Kafka gives all four", all_of_them, 30)
    # Three keys of 2 bytes with payloads of 8; a payload of 256 with headers of 5 + 3 and 4 bytes.
    assert "74 B per record on average here, so about 298 B in 4 records of the topic" in records
    assert 'data-place="1:0"' in records and "&lt;b&gt;" in records and "<b>" not in records
    first = {"form": "json", "from": "first"}

    def indented() -> bool:
        return "&quot;n&quot;: 0" in client.get(f"{start}topics/{topic}/records/", first).content.decode()

    wait_for("the first records are indented", indented, 30)
    assert (
        "No groups match these filters."
        in client.get(f"{start}groups/", {"search": "nothing-like-it"}).content.decode()
    )
    assert browsing_as(cast, "viewer").get(f"{start}topics/{topic}/records/").status_code == 403


def test_a_spec_that_names_it_is_checked_and_sampled_there(
    cluster: Connection, topic: str, clients: dict[str, Client]
) -> None:
    spec = spec_for("flights", connection="local", topic=topic)
    del spec["ioConfig"]["consumerProperties"]
    answer = clients["operator"].post("/api/v1/sampler/", json.dumps(spec), content_type="application/json")
    assert answer.status_code == 200, answer.content
    assert len(answer.json()["records"]) == 4


def test_a_page_of_a_cluster_that_is_away_says_why(cast: Cast) -> None:
    Connection.objects.create(
        team=cast.alpha, name="away", kind="kafka", properties={"bootstrap.servers": "127.0.0.1:1"}
    )
    client: Any = browsing_as(cast, "owner")
    for path in ("topics/", "topics/t/", "topics/t/records/", "groups/", "groups/g/"):
        page = client.get(f"/connections/alpha/away/{path}")
        assert page.status_code == 200 and "refuses the connection" in page.content.decode(), path
        assert "has no readable records" not in page.content.decode(), "nobody knows"


def test_the_wizard_reaches_every_topic_of_its_connection(
    cast: Cast, cluster: Connection, topic: str, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"many-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.kafka.bootstrap})
    names = [f"{prefix}-{n}" for n in range(5)]
    for future in admin.create_topics([NewTopic(name, 1) for name in names]).values():
        future.result(30)
    monkeypatch.setattr(browsing, "PAGE", 2)
    owner = browsing_as(cast, "owner")
    address = owner.post("/load/", {"connection": "local"})["Location"].replace("/connection/", "/topic/")

    def shown(**query: str) -> list[str]:
        return re.findall(r'data-topic="([^"]+)"', owner.get(address, {"search": prefix, **query}).content.decode())

    assert [name for number in "123" for name in shown(page=number)] == names
    assert shown(sort="-name") == names[:-3:-1]
    assert "No topics match these filters." in owner.get(address, {"search": f"{prefix}-none"}).content.decode()
    assert "can&#x27;t be sorted by" in owner.get(address, {"sort": "rate"}).content.decode()
    asked = f"{address}?search={prefix}&page=3"
    assert owner.post(asked, {"guess": json.dumps({"topic": names[4]})})["Location"] == address
    assert Draft.objects.get().document["spec"]["ioConfig"]["topic"] == names[4]


def test_the_wizard_offers_the_topics_of_its_connection(cast: Cast, cluster: Connection, topic: str) -> None:
    owner = browsing_as(cast, "owner")
    begun = owner.post("/load/", {"connection": "local"})
    address = begun["Location"].replace("/connection/", "/topic/")
    assert f'data-topic="{topic}"' in owner.get(address).content.decode()
    assert owner.post(address, {"guess": json.dumps({"topic": topic})}).status_code == 302
    draft = Draft.objects.get()
    assert draft.document["spec"]["ioConfig"]["topic"] == draft.document["spec"]["dataSchema"]["dataSource"] == topic
    assert '"n": 2' in owner.get(address).content.decode().replace("&quot;", '"')  # its records take the list's place
    assert owner.post(address, {"guess": json.dumps({"topic": "a\0b"})}).status_code == 400
    assert owner.post(address, {"guess": json.dumps({"topic": ""})}).status_code == 400
    assert Draft.objects.get().document == draft.document
