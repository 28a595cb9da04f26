"""Imports of dead-letter topics from a real broker: each record once, and only those that have no other end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from controlplane.connections import kafka
from controlplane.connections.secrets import seal
from controlplane.datasources.masking import set_masks
from controlplane.datasources.models import Datasource
from controlplane.publishing.fence import adopt_source, take_epoch
from controlplane.publishing.publish import publish
from controlplane.publishing.selectors.fate import record_fate
from controlplane.publishing.selectors.totals import datasource_totals
from controlplane.quarantine.models import DeadLetterImport, QuarantinedRecord
from controlplane.quarantine.replays import decode_headers
from controlplane.sources.models import Source
from controlplane.supervisors.dead_letter_rounds import run_rounds
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks.models import Task
from controlplane.teams.models import AuditEntry
from ingestion.specs.kafka.secrets import split_secrets
from ingestion.specs.messages.protocol import Outcomes
from ingestion.specs.messages.protocol import QuarantinedRecord as WireRecord
from ingestion.specs.source_traits import SHARE_GROUPS
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as, spec_for
from tests.support.guarded_kafka import Guarded, guarded
from tests.support.html import parsed
from tests.support.publishes import request, start
from tests.support.records import numbered

__all__ = ["guarded"]  # a fixture

ADDRESS = "/api/v1/supervisors/flights/dead-letters/"
ALLOWED = {"errors.deadletterqueue.group.enable": "true"}
NONE = {"imported": 0, "stored": 0, "quarantined": 0, "settled": 0, "waiting": 0}
Headers = list[tuple[str, bytes | None]]


@dataclass
class Scene:
    """Datasource ``flights`` reads ``topic`` by a share group whose dead-letter topic is ``dead``."""

    cast: Cast
    broker: Broker
    topic: str
    dead: str
    source: Source

    @property
    def group(self) -> str:
        return self.source.group

    def headers(self, offset: int, topic: str = "", group: str = "", **more: bytes) -> Headers:
        """Those that Kafka writes (KIP-1191)."""
        named = {
            "topic": (topic or self.topic).encode(),
            "partition": b"0",
            "offset": str(offset).encode(),
            "group": (group or self.group).encode(),
            "delivery.count": b"5",
            **more,
        }
        return [(f"__dlq.errors.{name}", value) for name, value in named.items()]

    def give_up(self, headers: Headers, value: bytes | None = b"{}", key: bytes | None = b"k", topic: str = "") -> None:
        self.broker.producer.produce(topic or self.dead, value, key, partition=0, headers=headers)
        assert self.broker.producer.flush(60) == 0

    def settle(self, epoch: int, stored: list[tuple[int, int]] | None = None, **outcomes: Any) -> None:
        """What an indexer's publish does; ``poison``: what it quarantined."""
        poison = outcomes.pop("poison", None)
        ended = {0: Outcomes(**outcomes)} if outcomes else None
        what = request(epoch, {0: stored} if stored else None, ended, quarantined=poison, topic_id=self.source.topic_id)
        publish(task_id="task-1", number=0, request=what)

    def quarantined(self) -> list[QuarantinedRecord]:
        """In the order in which they came, without the cast's own."""
        return list(QuarantinedRecord.objects.exclude(pk=self.cast.quarantined.pk).order_by("pk"))


def point_at(cast: Cast, bootstrap: dict[str, str], **io_config: Any) -> Supervisor:
    spec = spec_for("flights", consumerProperties=bootstrap, **io_config)
    canonical, hidden = split_secrets(parse_supervisor_spec(spec).canonical())
    SpecVersion.objects.filter(supervisor="flights").update(spec=canonical, secrets=seal(hidden))
    return Supervisor.objects.get(pk="flights")


def read_by(cast: Cast, broker: Broker, topic: str, group: str) -> Source:
    offsets = kafka.topic_offsets({"bootstrap.servers": broker.bootstrap}, topic)
    assert offsets is not None
    return adopt_source(
        datasource=cast.datasource,
        kind=SHARE_GROUPS.kind,
        group=group,
        topic=topic,
        cluster_id=offsets.cluster_id,
        topic_id=offsets.topic_id,
    )


@pytest.fixture
def scene(cast: Cast, broker: Broker) -> Scene:
    topic, dead = broker.topic(partitions=1), broker.topic("dlq.dead", partitions=1, config=ALLOWED)
    broker.produce(topic, numbered(0, 10))
    group = f"group-{topic}"
    point_at(
        cast,
        {"bootstrap.servers": broker.bootstrap},
        topic=topic,
        groupId=group,
        groupConfig={"deadLetterTopic": dead},
    )
    return Scene(cast, broker, topic, dead, read_by(cast, broker, topic, group))


def ask(client: Client, expect: int = 202, **body: Any) -> Any:
    answer = client.post(ADDRESS, body, content_type="application/json")
    assert answer.status_code == expect, answer.content
    return answer.json()


def finish(client: Client) -> Any:
    """The newest import, once no round is left."""
    for _ in range(20):
        run_rounds()
        newest = client.get(ADDRESS).json()["imports"][0]
        if not newest["running"]:
            return newest
    raise AssertionError("the import goes on and on")


def import_all(client: Client, **body: Any) -> Any:
    ask(client, **body)
    return finish(client)


def test_a_record_is_imported_unless_it_has_another_end(scene: Scene, clients: dict[str, Client]) -> None:
    """Stored by a repair, quarantined, thrown away, lost by retention, not settled; and another group's."""
    operator, epoch = clients["operator"], start(scene.source)
    bad = WireRecord.model_construct(
        partition=0, offset=1, timestamp_ms=None, delivery_count=1, reason="unparseable", error="broken", headers=[]
    )
    scene.settle(epoch, [(0, 1)], unparseable=[(1, 2)], thrown_away=[(3, 4)], gap=[(2, 3)], poison=[bad])
    before = datasource_totals(scene.cast.datasource)
    for offset in range(5):
        scene.give_up(scene.headers(offset, message=b"Offset delivery count exceeded the threshold."), b'{"n": 2}')
    scene.give_up(scene.headers(6, group="another"))
    scene.give_up(scene.headers(6, topic="another"))
    counts = {"imported": 1, "stored": 1, "quarantined": 1, "settled": 1, "waiting": 1}
    found = import_all(operator)
    assert (found["counts"], found["problem"], found["topic"]) == (counts, "", scene.dead)
    assert found["stored_records"] == [{"partition": 0, "offset": 0, "origin_partition": 0, "origin_offset": 0}]
    _, imported = scene.quarantined()
    assert (imported.source_id, imported.partition, imported.offset) == (scene.source.pk, 0, 2)
    assert (imported.reason, imported.delivery_count, imported.task_id) == ("dead_letter", 5, "")
    assert imported.error.startswith(
        "Kafka gave this record up after 5 deliveries: Offset delivery count exceeded the threshold."
    )
    assert bytes(imported.payload or b"") == b'{"n": 2}'
    after = datasource_totals(scene.cast.datasource)
    assert after == before, "an import is no reading: no task's counters move"
    [lost] = record_fate(scene.cast.users["viewer"], topic=scene.topic, partition=0, offset=2)
    assert (lost.outcome, lost.quarantined_id) == ("gap", imported.pk)
    scene.settle(epoch, [(4, 5)])
    assert import_all(operator)["counts"] == {**counts, "stored": 2, "waiting": 0}
    assert len(scene.quarantined()) == 2


def test_an_import_goes_on_where_the_last_one_ended(scene: Scene, clients: dict[str, Client]) -> None:
    scene.settle(start(scene.source), gap=[(0, 10)])
    scene.give_up(scene.headers(0))
    scene.give_up(scene.headers(0))  # the broker wrote it twice
    assert import_all(clients["operator"])["counts"] == {**NONE, "imported": 1, "quarantined": 1}
    QuarantinedRecord.objects.filter(source=scene.source).delete()  # purged
    scene.give_up(scene.headers(1))
    assert import_all(clients["operator"])["counts"] == {**NONE, "imported": 2, "quarantined": 1}
    assert [record.offset for record in scene.quarantined()] == [1]


def test_a_second_request_changes_nothing_while_an_import_runs(scene: Scene, clients: dict[str, Client]) -> None:
    scene.settle(start(scene.source), gap=[(0, 10)])
    scene.give_up(scene.headers(0))
    first = ask(clients["operator"])
    scene.give_up(scene.headers(1))
    assert ask(clients["owner"]) == first
    assert finish(clients["operator"])["counts"] == {**NONE, "imported": 1}
    assert AuditEntry.objects.filter(target="quarantine", action="import").count() == 1
    run_rounds()
    assert len(scene.quarantined()) == 1


def test_every_byte_of_headers_key_and_value_is_kept(scene: Scene, clients: dict[str, Client]) -> None:
    """Also of a record whose value is null, and of one whose headers lead nowhere."""
    scene.settle(start(scene.source), gap=[(0, 10)])
    odd: Headers = [("trace", b"\xff\x00"), ("none", None), ("trace", b"")]
    scene.give_up([*odd, *scene.headers(0, message=b"\xff\x00")], b"\xff\x00", b"\x80")
    scene.give_up(scene.headers(1), value=None)
    scene.give_up(odd, value=None, key=None)
    assert import_all(clients["operator"])["counts"] == {**NONE, "imported": 3}
    first, tombstone, foreign = scene.quarantined()
    assert (bytes(first.payload or b""), bytes(first.key or b"")) == (b"\xff\x00", b"\x80")
    assert decode_headers(first.headers)[:3] == odd
    assert (tombstone.payload, tombstone.cut, foreign.payload, foreign.cut) == (None, False, None, False)
    assert foreign.source is not None and (foreign.source.topic, foreign.offset) == (scene.dead, 2)
    assert "Another program gave this record up." in foreign.error
    page = browsing_as(scene.cast, "operator").get(f"/datasources/flights/quarantine/{foreign.pk}/")
    assert page.status_code == 200 and "no value (null)" in page.content.decode()
    listed = browsing_as(scene.cast, "operator").get("/datasources/flights/quarantine/")
    assert listed.status_code == 200


def test_a_record_without_a_copy_is_read_from_its_own_topic(scene: Scene, clients: dict[str, Client]) -> None:
    """Where that has lost it, it is named, and can't be replayed."""
    first, *_ = numbered(0, 1)
    scene.settle(start(scene.source), empty=[(0, 1)], gap=[(5000, 5001)])
    scene.give_up(scene.headers(0), value=None, key=None)
    scene.give_up(scene.headers(5000), value=None, key=None)
    assert import_all(clients["operator"])["counts"] == {**NONE, "imported": 2}
    whole, missing = scene.quarantined()
    assert (bytes(whole.payload or b""), whole.cut) == (first, False)
    assert (missing.payload, missing.cut) == (None, True) and "Kafka copied none" in missing.error
    for mode in ("ingest", "produce"):
        answer = clients["operator"].post(
            "/api/v1/datasources/flights/quarantine/replay/",
            {"mode": mode, "ids": [missing.pk]},
            content_type="application/json",
        )
        assert answer.status_code == 409 and "without a payload" in answer.json()["detail"]
    text = browsing_as(scene.cast, "operator").get(f"/datasources/flights/quarantine/{missing.pk}/").content.decode()
    assert "Its payload is not stored, so it cannot be replayed." in text and 'value="ingest"' not in text


def test_a_topic_of_another_program_is_imported_by_name(scene: Scene, clients: dict[str, Client]) -> None:
    """Of Connect's record the fate is known, since this datasource reads its topic; the others' is not."""
    other = scene.broker.topic("connect-errors", partitions=1)
    scene.settle(start(scene.source), [(0, 1)])
    known = [("topic", scene.topic.encode()), ("partition", b"0"), ("offset", b"0")]
    scene.give_up([(f"__connect.errors.{name}", value) for name, value in known], topic=other)
    strange = [("topic", b"elsewhere"), ("partition", b"0"), ("offset", b"0"), ("exception.message", b"No schema")]
    scene.give_up([(f"__connect.errors.{name}", value) for name, value in strange], topic=other)
    scene.give_up(scene.headers(7, topic="elsewhere", group="a-group-of-java"), topic=other)
    found = import_all(clients["operator"], topic=other)
    assert (found["topic"], found["counts"]) == (other, {**NONE, "stored": 1, "imported": 2})
    connect, java = scene.quarantined()
    assert (connect.offset, java.offset) == (1, 2)
    assert connect.error.startswith("Kafka Connect gave this record up: No schema")
    answer = clients["operator"].post(
        "/api/v1/datasources/flights/quarantine/replay/",
        {"mode": "ingest", "filter": {"topic": other}},
        content_type="application/json",
    )
    assert answer.status_code == 202, answer.content
    task = Task.objects.select_related("replay_source").get(pk=answer.json()["tasks"][0])
    assert task.supervisor_id == "flights" and task.spec["spec"]["ioConfig"]["topic"] == scene.topic
    replayed = take_epoch(task_id=task.pk, datasource=task.datasource, source=task.replay_source, replay=True)
    before = datasource_totals(scene.cast.datasource)
    what = request(replayed.epoch, {0: [(1, 3)]}, topic_id=connect.source.topic_id if connect.source else "")
    publish(task_id=task.pk, number=0, request=what)
    assert {record.state for record in scene.quarantined()} == {"stored"}
    after = datasource_totals(scene.cast.datasource)
    assert (after.polled - before.polled, after.published - before.published) == (2, 2)
    progress = clients["viewer"].get("/api/v1/datasources/flights/progress/").json()
    assert other not in str(progress), "nobody reads it"


def test_a_topic_that_was_created_again_is_another_one(scene: Scene, clients: dict[str, Client]) -> None:
    scene.settle(start(scene.source), gap=[(0, 10)])
    scene.give_up(scene.headers(0))
    import_all(clients["operator"])
    ask(clients["operator"])
    scene.broker.admin.delete_topics([scene.dead])[scene.dead].result(30)
    gone = finish(clients["operator"])
    assert "was deleted" in gone["problem"] and gone["counts"] == {**NONE, "imported": 1}
    assert "There is no topic" in ask(clients["operator"], expect=409)["detail"]
    scene.broker.make_topic(scene.dead, partitions=1)
    scene.give_up(scene.headers(1))
    assert import_all(clients["operator"])["counts"] == {**NONE, "imported": 1}
    assert [record.offset for record in scene.quarantined()] == [0, 1]
    assert len(clients["viewer"].get(ADDRESS).json()["imports"]) == 2


def test_a_record_of_an_earlier_topic_of_the_same_name_keeps_its_place(
    scene: Scene, clients: dict[str, Client]
) -> None:
    """Headers name a topic, and not which one of its name: the time at which it was given up does."""
    scene.settle(start(scene.source), [(0, 1)])
    scene.give_up(scene.headers(0))
    scene.broker.admin.delete_topics([scene.topic])[scene.topic].result(30)
    scene.broker.make_topic(scene.topic, partitions=1)
    newer = read_by(scene.cast, scene.broker, scene.topic, scene.group)
    scene.give_up(scene.headers(0))
    assert newer.pk != scene.source.pk
    assert import_all(clients["operator"])["counts"] == {**NONE, "stored": 1, "waiting": 1}


def test_names_that_are_no_dead_letter_topic_are_refused(scene: Scene, clients: dict[str, Client]) -> None:
    for name, status in ((scene.topic, 400), ("a b", 400), ("..\x00", 400), ("no-such-topic", 409)):
        ask(clients["operator"], expect=status, topic=name)
    ask(clients["viewer"], expect=403)
    assert not DeadLetterImport.objects.exists()


def test_a_login_that_may_not_read_it_is_named(cast: Cast, guarded: Guarded, clients: dict[str, Client]) -> None:
    topic, dead = guarded.topic(partitions=1), guarded.topic("dlq.dead", partitions=1)
    guarded.give("TOPIC", topic, "READ", "DESCRIBE")
    point_at(cast, guarded.properties, topic=topic, groupId="readers", groupConfig={"deadLetterTopic": dead})
    read_by(cast, guarded, topic, "readers")
    guarded.produce(dead, [b"{}"])
    detail = ask(clients["operator"], expect=503)["detail"]
    assert detail.startswith("Nothing was imported:") and dead in detail
    assert not DeadLetterImport.objects.exists()
    guarded.give("TOPIC", dead, "READ", "DESCRIBE")
    ask(clients["operator"])
    guarded.take("TOPIC", dead, "READ")
    assert "can't be read" in finish(clients["operator"])["problem"]
    assert not QuarantinedRecord.objects.filter(reason="dead_letter").exists()


def test_an_import_reads_past_no_mask(scene: Scene, clients: dict[str, Client]) -> None:
    """Into the masked datasource itself an operator may import, and sees no value; into another one not."""
    set_masks(user=scene.cast.users["owner"], datasource=scene.cast.datasource, masks={"password": "admin"})
    scene.settle(start(scene.source), gap=[(0, 10)])
    scene.give_up(scene.headers(0, message=b"secret"), b"secret")
    assert import_all(clients["operator"])["counts"] == {**NONE, "imported": 1}
    shown = clients["operator"].get("/api/v1/datasources/flights/quarantine/", {"reason": "dead_letter"}).json()
    assert [record["masked"] for record in shown["results"]] == ["admin"] and "secret" not in str(shown)
    other = Datasource.objects.create(name="open", team=scene.cast.alpha)
    Supervisor.objects.filter(pk="flights").update(datasource=other)
    assert "masked columns" in ask(clients["operator"], expect=403)["detail"]


def test_the_page_shows_the_numbers_and_where_stored_records_are(scene: Scene, clients: dict[str, Client]) -> None:
    scene.settle(start(scene.source), [(0, 1)], gap=[(1, 2)])
    scene.give_up(scene.headers(0))
    scene.give_up(scene.headers(1))
    browser = browsing_as(scene.cast, "operator")
    browser.post("/supervisors/flights/share-group/apply/")
    part = parsed(browser.get("/supervisors/flights/share-group/config/"))
    assert part.one("p", data_dead_letters=scene.dead).text == (
        f"{scene.dead} holds 2 records of all its groups. Kafka writes a record there for each record that this "
        "group's readers reject, and for each that has used up its deliveries."
    )
    assert part.one("form", action="/supervisors/flights/dead-letters/import/")
    answer = browser.post("/supervisors/flights/dead-letters/import/", {"topic": scene.dead})
    assert answer["Location"] == "/supervisors/flights/share-group/"
    finish(clients["operator"])
    panel = parsed(browser.get("/supervisors/flights/share-group/")).one("div", data_import=scene.dead)
    facts = {fact.one("dt").text: fact.one("dd").text for fact in panel.one("dl").all("div")}
    assert facts == {
        "Read": "2",
        "Imported": "1",
        "Already stored": "1",
        "Already quarantined": "0",
        "Settled without a row": "0",
        "Not settled yet": "0",
    }
    [link] = panel.all("a")
    assert browser.get(link.attributes["href"]).status_code == 200
