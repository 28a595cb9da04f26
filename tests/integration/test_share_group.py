"""The share group's view: what indexers said of their leases, coverage, and drift of its configuration."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from django.test import Client

from controlplane.publishing.models import IndexerFence
from controlplane.publishing.selectors.coverage import CELLS, coverage
from controlplane.supervisors import services, topic_checks
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks.heartbeats import end, heartbeat
from controlplane.tasks.models import Indexer, Status, Task
from ingestion.sources.base import ACCEPT, REJECT, Batch
from ingestion.sources.share_group import ShareGroupSource
from ingestion.sources.topic import configure_group
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.messages.protocol import EndRequest, HeartbeatRequest, IndexerStatus, Leases
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec, parse_task_spec
from tests.support.broker import Broker
from tests.support.django_cast import STARTED, Cast, browsing_as, make_receipt, settle, spec_for
from tests.support.formats import HERE
from tests.support.house import House
from tests.support.html import parsed
from tests.support.records import numbered, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers

ONE = "/api/v1/supervisors/flights/share-group/"


def say(task: Task, **status: Any) -> None:
    heartbeat(task, HeartbeatRequest(indexers=[IndexerStatus(number=0, epoch=1, state="reading", **status)], slots=1))


def test_what_a_heartbeat_says_of_leases_is_shown(cast: Cast, clients: dict[str, Client]) -> None:
    leases = Leases(acquired=10, accepted=8, rejected=2, hold_ms={16_000: 10}, longest_hold_ms=15_900)
    say(cast.task, leases=leases, redelivery_counts={1: 9, 2: 1}, in_flight=3, holding=[(1, 650, 653)])
    found = clients["viewer"].get(ONE).json()
    assert (found["group"], found["topic"], found["state"]) == ("flights-group", "flights-topic", "stable")
    assert found["leases"] == {
        "acquired": 10,
        "accepted": 8,
        "rejected": 2,
        "released": 0,
        "lock_expired": 0,
        "delivery_counts": {"1": 9, "2": 1},
    }
    assert found["hold"] == {"p50_ms": 15_900, "p99_ms": 15_900, "longest_ms": 15_900, "lock_ms": 30_000}
    assert [w["code"] for w in found["warnings"]] == ["long_hold"]
    assert [(m["indexer"], m["consumers"], m["in_flight"]) for m in found["members"]] == [(0, 4, 3), (1, 4, 0)]
    assert found["coverage"][1]["totals"] == {"settled": 600, "in_flight": 3, "waiting": 397}


def test_coverage_says_how_each_offset_ended(cast: Cast) -> None:
    """The cast's partition 0: [0, 500) by receipts, the rest of 1000 settled but for the hole [700, 710)."""
    first, second = coverage(cast.source)
    assert (first.start, first.end, first.width) == (0, 1000, 5)
    assert first.totals == {
        "stored": 497,
        "thrown_away": 2,
        "unparseable": 1,
        "duplicate": 1,
        "settled": 490,
        "hole": 10,
    }
    assert first.holes == [(700, 710)] and not first.complete
    assert [n for n, count in enumerate(first.cells["hole"]) if count] == [140, 141]
    assert second.totals == {"settled": 600, "waiting": 400}
    for one in (first, second):
        assert sum(n for name, n in one.totals.items() if name != "duplicate") == one.end - one.start
        assert all(len(counts) == CELLS for counts in one.cells.values())


def test_what_lies_beyond_the_drawing_is_left_out_and_ends_are_exact(cast: Cast) -> None:
    key = cast.source.keys.create(partition=9)
    settle(key, (1_000_003, 3_000_002))
    make_receipt(
        cast.task,
        key,
        (1_000_003, 3_000_002),
        {"stored": [[1_000_003, 3_000_001, 0]], "gap": [[3_000_001, 3_000_002]]},
        cast.segments[:1],
    )
    last = coverage(cast.source)[-1]
    assert (last.start, last.end) == (1_000_003, 3_000_002)
    assert last.totals == {"stored": 1_999_998, "gap": 1}
    assert last.complete


def test_a_supervisor_with_stored_offsets_has_none(cast: Cast, clients: dict[str, Client]) -> None:
    spec = spec_for("flights")
    spec["type"] = "kafka"
    del spec["ioConfig"]["groupId"]
    cast.supervisor.version = 2
    cast.supervisor.save()
    canonical = parse_supervisor_spec(spec).canonical()
    SpecVersion.objects.create(supervisor=cast.supervisor, version=2, spec=canonical)
    answer = clients["viewer"].get(ONE)
    assert answer.status_code == 400 and "stored offsets" in answer.json()["detail"]
    browser = browsing_as(cast, "viewer")
    assert browser.get("/supervisors/flights/share-group/").status_code == 404
    assert "/share-group/" not in browser.get("/supervisors/flights/").content.decode()


def test_the_page_draws_it_and_says_it(cast: Cast) -> None:
    say(cast.task, leases=Leases(acquired=5, lock_expired=5, hold_ms={40_000: 5}, longest_hold_ms=31_000))
    text = browsing_as(cast, "viewer").get("/supervisors/flights/share-group/").content.decode()
    assert "Partition 0, offsets 0 to 999: 497 stored" in text
    assert 'data-warning="locks_expired"' in text
    assert "Offsets 5 to 6 were removed by retention." in text
    assert 'hx-get="/supervisors/flights/share-group/config/"' in text


def test_what_a_repair_found_is_counted_and_raises_an_alarm(cast: Cast, clients: dict[str, Client]) -> None:
    repair = Task.objects.create(
        id="repair-1",
        kind=Task.Kind.REPAIR,
        datasource=cast.datasource,
        supervisor_id="flights",
        spec=cast.task.spec,
        status="RUNNING",
        created_at=STARTED,
    )
    common = {"datasource": cast.datasource, "source": cast.source, "number": 0}
    IndexerFence.objects.create(task_id="repair-1", polled=9, published=4, unparseable=3, duplicates=2, **common)
    end(repair, EndRequest())
    found = clients["viewer"].get(ONE).json()
    [listed], [event] = found["repairs"], found["repaired"]
    counts = ("polled", "published", "unparseable", "thrown_away", "duplicates")
    assert (listed["id"], listed["status"], [listed[n] for n in counts]) == ("repair-1", "SUCCESS", [9, 4, 3, 0, 2])
    assert (event["kind"], event["alarm"], event["task"]) == ("repaired", True, "repair-1")
    assert "4 stored, 3 quarantined" in event["detail"]
    assert "their deliveries were used up, or another member of the group had taken them" in event["detail"]
    assert [e["kind"] for e in found["gaps"]] == ["gap"]
    page = parsed(browsing_as(cast, "viewer").get("/supervisors/flights/share-group/"))
    assert "9 read again, of which 4 stored" in page.one("li", data_repair="").text
    assert page.one("li", data_repaired="").text.startswith("alarm 9 records")


def test_a_broker_that_is_away_is_said(cast: Cast) -> None:
    text = browsing_as(cast, "viewer").get("/supervisors/flights/share-group/config/").content.decode()
    assert "configuration is not known" in text


# On a real broker


Make = Callable[..., Workers]


@pytest.fixture
def group(cast: Cast, broker: Broker) -> str:
    """A supervisor at rest, whose group was never configured; returns the name of all of it."""
    topic = broker.topic("drift", partitions=1)
    spec = broker.spec(topic, lock_ms=20_000)
    spec["ioConfig"]["groupConfig"]["partitionMaxRecordLocks"] = 3000
    services.submit_supervisor(user=cast.users["owner"], document={**spec, "suspended": True}, team_name="alpha")
    return topic


def configuration(client: Client, name: str, method: str = "GET") -> dict[str, dict[str, Any]]:
    answer = client.generic(method, f"/api/v1/supervisors/{name}/share-group/config/")
    assert answer.status_code == 200, answer.content
    found = answer.json()
    assert found["drifted"] == any(s["drifted"] for s in found["settings"])
    return {setting["name"]: setting for setting in found["settings"]}


def test_drift_is_named_and_mended(broker: Broker, group: str, clients: dict[str, Client]) -> None:
    owner = clients["owner"]
    before = configuration(owner, group)
    lock = before["share.record.lock.duration.ms"]
    assert lock["is_default"] and lock["drifted"] and lock["wanted"] == "20000"
    assert (lock["least"], lock["most"]) == (1000, 60_000)  # the test broker's, and Kafka's default
    locks = before["share.partition.max.record.locks"]
    assert (locks["actual"], locks["wanted"], locks["least"], locks["most"]) == ("2000", "3000", 100, 4000)
    after = configuration(owner, group, "POST")
    assert not any(s["drifted"] for s in after.values())
    entry = ConfigEntry("share.delivery.count.limit", "3", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, f"group-{group}", incremental_configs=[entry])
    for future in broker.admin.incremental_alter_configs([resource]).values():
        future.result(30)
    found = configuration(owner, group)
    assert {n for n, s in found.items() if s["drifted"]} == {"share.delivery.count.limit"}
    assert (found["share.delivery.count.limit"]["actual"], found["share.delivery.count.limit"]["wanted"]) == ("3", "10")
    assert not any(s["drifted"] for s in configuration(owner, group, "POST").values())


def test_drift_is_looked_for_while_a_task_reads_and_said_on_home(cast: Cast, broker: Broker, settings: Any) -> None:
    settings.ADDRESS_POLICY = HERE
    version = SpecVersion.objects.get(supervisor=cast.supervisor)
    at_home = {
        "topic": broker.topic("drift", partitions=1),
        "consumerProperties": {"bootstrap.servers": broker.bootstrap},
    }
    version.spec["spec"]["ioConfig"] |= {**at_home, "groupId": f"group-{at_home['topic']}"}
    SpecVersion.objects.filter(pk=version.pk).update(spec=version.spec)
    Indexer.objects.filter(task=cast.task).update(state="starting")
    assert topic_checks.question_for(Supervisor.objects.get()).group == "", "its task has set nothing yet"
    Indexer.objects.filter(task=cast.task).update(state="reading")
    Task.objects.filter(pk=cast.task.pk).update(status=Status.RUNNING, spec_version=1)
    [answer] = topic_checks.answers([topic_checks.question_for(Supervisor.objects.get())])
    supervisor = Supervisor.objects.get()
    topic_checks.apply_answer(supervisor, answer)
    supervisor.save()
    assert topic_checks.question_for(supervisor).group == "", "it was asked a moment ago"
    owner = browsing_as(cast, "owner")
    drift = parsed(owner.get("/")).one("div", data_problem="group_drift")
    assert "share.delivery.count.limit is 5, and 10 in the spec" in drift.text
    assert [a.attributes["href"] for a in drift.all("a")][-1] == "/supervisors/flights/share-group/"
    assert owner.post("/supervisors/flights/share-group/apply/").status_code == 302
    assert Supervisor.objects.get().group_drift == []


def test_real_leases_are_counted(house: House, make_workers: Make) -> None:
    """An indexer's heartbeats carry them to the stack; a source alone reports them to nobody."""
    topic = house.topic(partitions=2)
    house.produce(topic, [*numbered(0, 500), b"poison"])
    workers = make_workers(house.spec(topic, lock_ms=60_000))
    workers.start(0)
    published(house, topic, 500)

    def leases() -> Leases | None:
        status = workers.status(0)
        return status.leases if status is not None and status.leases.acquired == 501 else None

    seen = wait_for("all are settled with the broker", leases, 60, lambda: workers.status(0))
    assert (seen.accepted, seen.rejected, seen.released, seen.lock_expired) == (500, 1, 0, 0)
    assert sum(seen.hold_ms.values()) == 501
    found = house.api("GET", f"/api/v1/supervisors/{topic}/share-group/")
    assert found["members"] == [], "the workers are nobody's: the supervisor is at rest"
    assert sum(p["totals"]["stored"] for p in found["coverage"] if "stored" in p["totals"]) == 500
    workers.finish(0)


def two_of_a_group(broker: Broker, lock_ms: int) -> tuple[ShareGroupSource, ShareGroupSource]:
    """Two sources of a group that may read as many records; neither is open."""
    topic = broker.topic(partitions=1)
    spec = parse_task_spec(broker.spec(topic, lock_ms=lock_ms, consumersPerIndexer=1)).spec.ioConfig
    assert isinstance(spec, ShareGroupIOConfig)
    properties = {"bootstrap.servers": broker.bootstrap}
    configure_group(properties, spec, HERE)
    broker.produce(topic, numbered(0, 50))
    one, other = (ShareGroupSource(properties, spec, name) for name in ("one", "other"))
    return one, other


def all_accepted(batch: Batch) -> npt.NDArray[np.int64]:
    return np.full(len(batch), ACCEPT, dtype=np.int64)


def test_what_is_acknowledged_after_another_has_accepted_it_had_expired(broker: Broker) -> None:
    """The broker refuses it, or passes over it in silence: nobody says then that the lock had run out."""
    late, source = two_of_a_group(broker, lock_ms=3000)
    late.open()
    try:
        batch = taken(late, 1)
        late.pause()
        source.open()
        again = taken(source, 2)
        source.acknowledge(again, all_accepted(again))
        source.pause()
        wait_for("the other is settled", lambda: source.leases.accepted == 50, 30)
        late.acknowledge(batch, all_accepted(batch))
        seen = wait_for("it is settled", lambda: late.leases if late.leases.acquired == 50 else None, 30)
        assert (seen.accepted, seen.lock_expired) == (0, 50)
    finally:
        source.close()
        late.close()


def test_what_is_acknowledged_too_late_is_taken_back_once(broker: Broker) -> None:
    """Twice too late, the second time with other verdicts, then in time: each delivery has one end."""
    source, _ = two_of_a_group(broker, lock_ms=3000)
    source.open()
    try:
        for delivery, poison in ((1, True), (2, False)):
            batch = taken(source, delivery)
            wait_for("the lock has run out", lambda end=batch.deadline: time.monotonic() > end + 0.5)
            verdicts = all_accepted(batch)
            verdicts[0] = REJECT if poison else ACCEPT
            source.acknowledge(batch, verdicts)
        batch = taken(source, 3)
        source.acknowledge(batch, all_accepted(batch))
        source.pause()  # what was acknowledged is sent all the same
        wait_for("both refusals are heard", lambda: source.ack_failures >= 2, 30)
        seen = wait_for("the third is settled", lambda: source.leases if source.leases.acquired == 150 else None, 30)
        assert (seen.accepted, seen.rejected, seen.released, seen.lock_expired) == (50, 0, 0, 100)
        assert "acknowledging partition 0" in source.problem
    finally:
        source.close()


def taken(source: ShareGroupSource, delivery: int) -> Batch:
    batch = wait_for(f"delivery {delivery}", lambda: source.poll(1.0), 60)
    assert (len(batch), set(batch.delivery_counts.tolist())) == (50, {delivery})
    return batch
