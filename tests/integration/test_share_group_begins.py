"""Share groups that begin at a time: the broker begins there, and what it leaves out in front is repaired."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka.admin import NewPartitions
from django.test import Client

from controlplane.connections.kafka import topic_offsets
from controlplane.connections.share_group_config import share_group_config
from controlplane.lag.models import LagSample
from controlplane.publishing import fence
from controlplane.publishing.models import SettledRange
from controlplane.sources.models import Source
from controlplane.supervisors.known_gaps import known_gaps
from controlplane.supervisors.lag import observe_waiting
from controlplane.supervisors.run import iterate
from controlplane.tasks.models import Task
from ingestion.sources.share_group import ShareGroupSource
from ingestion.sources.topic import configure_group
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.integration.test_repairs import busy, repaired
from tests.integration.test_supervisor_iterations import submit
from tests.support.broker import Broker
from tests.support.django_cast import Cast
from tests.support.formats import HERE
from tests.support.waiting import wait_for

__all__ = ["busy"]  # a fixture


def produce(broker: Broker, topic: str, now: datetime, *hours_ago: float) -> None:
    """To partition 0, a record of each of these times, with its number as payload."""
    for number, hours in enumerate(hours_ago):
        time_ms = int((now - timedelta(hours=hours)).timestamp() * 1000)
        broker.producer.produce(topic, value=str(number).encode(), partition=0, timestamp=time_ms)
        assert broker.producer.flush(60) == 0


def io_config_of(broker: Broker, topic: str, start: str) -> ShareGroupIOConfig:
    document = broker.spec(topic, startPosition=start, consumersPerIndexer=1)
    io_config = parse_task_spec({**document, "type": "index_kafka_share_group"}).spec.ioConfig
    assert isinstance(io_config, ShareGroupIOConfig)
    return io_config


def test_a_group_is_given_the_records_of_a_time_and_later(broker: Broker) -> None:
    topic, now = broker.topic(partitions=1), datetime.now(UTC)
    produce(broker, topic, now, 5, 3, 1, 2, 0.5)
    io_config = io_config_of(broker, topic, f"{(now - timedelta(hours=2)).isoformat()}")
    properties = {"bootstrap.servers": broker.bootstrap}
    configure_group(properties, io_config, HERE)
    values = share_group_config(properties, topic, io_config.groupId).values
    assert str(values["share.auto.offset.reset"][0]).startswith("by_duration:PT")
    source = ShareGroupSource(properties, io_config, "client")
    source.open()
    payloads: list[bytes | None] = []

    def has_read() -> bool:
        batch = source.poll(0.5)
        payloads.extend([] if batch is None else batch.payloads)
        return len(payloads) >= 3

    try:
        wait_for("it is given three records", has_read, 60)
    finally:
        source.close()
    assert payloads == [b"2", b"3", b"4"]


def test_the_beginning_is_kept_and_everything_from_there_on_is_lag(
    cast: Cast, broker: Broker, clients: dict[str, Client]
) -> None:
    topic, now = broker.topic(partitions=2), datetime.now(UTC)
    produce(broker, topic, now, 5, 3, 1, 2, 0.5)
    submit(cast, broker, broker.bootstrap, topic, "share_group", startPosition="PT2H")
    iterate()
    source = Source.objects.get(topic=topic)
    assert dict(source.keys.values_list("partition", "begin_offset")) == {0: 2, 1: 0}
    observe_waiting()
    lag = clients["viewer"].get(f"/api/v1/supervisors/{topic}/lag/").json()
    assert [p["lag"] for p in lag["partitions"]] == [3, 0]
    [task] = Task.objects.filter(supervisor_id=topic)
    assert task.io_config.start.instant is not None
    told = clients["viewer"].get(f"/api/v1/records/?topic={topic}&partition=0&offset=1").json()
    assert "begins at offset 2" in str(told)


def lags(client: Client, topic: str) -> list[int]:
    LagSample.objects.all().delete()  # the next one may come before five seconds are over
    observe_waiting()
    return [p["lag"] for p in client.get(f"/api/v1/supervisors/{topic}/lag/").json()["partitions"]]


def test_partitions_that_come_later_are_read_from_their_start(
    cast: Cast, broker: Broker, clients: dict[str, Client]
) -> None:
    topic, now = broker.topic(partitions=1), datetime.now(UTC)
    produce(broker, topic, now, 5, 1)
    submit(cast, broker, broker.bootstrap, topic, "share_group", startPosition="PT2H")
    iterate()
    broker.admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    wait_for("there are two", lambda: len(broker.producer.list_topics(topic, 10).topics[topic].partitions) == 2, 30)
    old_ms = int((now - timedelta(hours=9)).timestamp() * 1000)
    broker.producer.produce(topic, value=b"{}", partition=1, timestamp=old_ms)
    assert broker.producer.flush(60) == 0
    assert lags(clients["viewer"], topic) == [1, 1]


def test_a_topic_that_is_made_again_is_read_from_its_start(
    cast: Cast, broker: Broker, clients: dict[str, Client]
) -> None:
    topic, now = broker.topic(partitions=1), datetime.now(UTC)
    produce(broker, topic, now, 5, 1)
    supervisor = submit(cast, broker, broker.bootstrap, topic, "share_group", startPosition="PT2H")
    iterate()
    old = Source.objects.get(topic=topic)
    broker.admin.delete_topics([topic])[topic].result(30)
    wait_for("it is gone", lambda: topic not in broker.admin.list_topics(timeout=10).topics, 30)
    broker.make_topic(topic, partitions=1)
    produce(broker, topic, now, 5, 4, 3)
    log = topic_offsets({"bootstrap.servers": broker.bootstrap}, topic)
    assert log is not None
    fence.adopt_source(
        datasource=supervisor.datasource,
        kind=old.kind,
        group=old.group,
        topic=topic,
        cluster_id=old.cluster_id,
        topic_id=log.topic_id,
    )
    assert lags(clients["viewer"], topic) == [3]


@pytest.mark.parametrize(("begin", "holes"), [(120, [(120, 150)]), (140, [(140, 150)]), (150, []), (None, [])])
def test_what_was_left_out_at_the_beginning_is_read_again(
    busy: Cast, begin: int | None, holes: list[tuple[int, int]]
) -> None:
    """Nothing before it; and nothing in front of the first settled range where the beginning is not known."""
    io_config = busy.task.spec["spec"]["ioConfig"]
    io_config.pop("useEarliestOffset", None)
    io_config["startPosition"] = "2026-01-31T12:00:00Z"
    busy.task.save()
    busy.source.keys.filter(pk=busy.keys[0].pk).update(begin_offset=begin)
    assert SettledRange.objects.exists()
    assert repaired() == [*holes, (200, 220)]


def test_what_lies_before_the_beginning_is_no_hole(busy: Cast) -> None:
    """Somebody else has read [150, 200) apart; the group begins at 210."""
    io_config = busy.task.spec["spec"]["ioConfig"]
    io_config.pop("useEarliestOffset", None)
    io_config["startPosition"] = "2026-01-31T12:00:00Z"
    busy.task.save()
    busy.source.keys.filter(pk=busy.keys[0].pk).update(begin_offset=210)
    assert [(gap.start, gap.end) for gap in known_gaps(busy.supervisor) if gap.partition == 0] == [(210, 220)]
    assert repaired() == [(210, 220)]
