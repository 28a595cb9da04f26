"""Older brokers that people have: a task reads from the oldest and survives kills. Other tests run on the newest."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator

import pytest

from controlplane.embedded.home import temporary_home
from controlplane.embedded.kafka_jars import OLDER
from tests.support.broker import BROKER, Broker
from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.kills import survive_kills
from tests.support.lanes import WITH_STORED_OFFSETS, lane_spec
from tests.support.quick_kafka import Kafka
from tests.support.records import numbered, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers

RECORDS = 3_000
KILLS = 4
Make = Callable[..., Workers]
VERSIONS = OLDER[::-1]
only_the_oldest = pytest.mark.parametrize("version", VERSIONS[:1], indirect=True, scope="module")


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """By itself: pytest would take a parameter of ``house`` for the whole stack's, and start that again for each."""
    return str(request.param)


@pytest.fixture(scope="module")
def house(house: House, version: str) -> Iterator[House]:
    """The stack of all tests, and an older Kafka for its specs."""
    with temporary_home() as home, Kafka(home, BROKER, version=version) as older:
        same_stack = copy.copy(house)
        Broker.__init__(same_stack, older)
        yield same_stack
        house.let_go()  # nobody asks for topics of a broker that is gone


@only_the_oldest
def test_a_share_group_survives_kills(house: House, make_workers: Make) -> None:
    """Deliveries, locks and acknowledgements are the broker's, which has had code of its own for them."""
    datasource, records, _ = survive_kills(house, make_workers, random.Random(4), KILLS)
    assert check_exactly_once(house, datasource, range(records))["redelivered"] > 0


@only_the_oldest
def test_stored_offsets_survive_a_kill(house: House, make_workers: Make) -> None:
    topic = house.topic(partitions=2)
    house.produce(topic, numbered(0, RECORDS))
    for lane in WITH_STORED_OFFSETS:
        name = f"{topic}-{lane}"
        held = house.home.path / f"{name}.held"
        house.fail_at(name, committed=f"hold:{held}")
        workers = make_workers(lane_spec(house, lane, topic, name))
        workers.start(0)
        wait_for("it has published", held.exists, 60, lambda workers=workers: workers.status(0))
        workers.kill(0)
        house.fail_at(name)
        workers.start(0)
        published(house, name, RECORDS)
        workers.finish(0)
        check_exactly_once(house, name, range(RECORDS))


def test_the_group_has_the_settings_that_its_broker_knows(house: House) -> None:
    """Kafka 4.2 has one limit of deliveries for all groups: the default asks for nothing there, another is refused."""
    limits = {"4.2.2": None, "4.3.1": "7"}
    topic = house.topic()
    spec = house.spec(topic, groupConfig={"deliveryCountLimit": 10, "recordLockDurationMs": 20_000})
    house.api("POST", "/druid/indexer/v1/supervisor", {**spec, "suspended": True})
    config = house.api("POST", f"/api/v1/supervisors/{topic}/share-group/config/")
    assert not config["drifted"], config
    assert ("share.delivery.count.limit" in {s["name"] for s in config["settings"]}) == bool(
        limits[house.kafka.version]
    )
    spec["ioConfig"]["groupConfig"]["deliveryCountLimit"] = 7
    house.api("POST", "/druid/indexer/v1/supervisor", {**spec, "suspended": True})
    if limits[house.kafka.version] is None:
        with pytest.raises(AssertionError, match=r"Unknown group config name: share\.delivery\.count\.limit"):
            house.api("POST", f"/api/v1/supervisors/{topic}/share-group/config/")
    else:
        config = house.api("POST", f"/api/v1/supervisors/{topic}/share-group/config/")
        assert {s["name"]: s["actual"] for s in config["settings"]}["share.delivery.count.limit"] == "7"
