"""Topics that nobody reads just now: their lag is followed all the same, on a real broker."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.connections.kafka import topic_offsets
from controlplane.lag.models import LagSample
from controlplane.publishing import fence
from controlplane.sources.models import Source
from controlplane.supervisors import services
from controlplane.supervisors.lag import lag_now, observe_waiting
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Status, Task
from ingestion.specs.source_traits import SHARE_GROUPS, STORED_OFFSETS
from tests.integration.test_supervisor_iterations import iterate, reads, submit, tasks_of
from tests.support.broker import Broker
from tests.support.django_cast import Cast, settle
from tests.support.forwarder import Forwarder

WRITTEN = 30  # to each of two partitions


@pytest.fixture
def topic(broker: Broker) -> str:
    topic = broker.topic(partitions=2)
    for partition in range(2):
        broker.produce(topic, [b"{}"] * WRITTEN, partition=partition)
    return topic


def source_of(supervisor: Supervisor, broker: Broker, topic: str, kind: str, group: str) -> Source:
    offsets = topic_offsets({"bootstrap.servers": broker.bootstrap}, topic)
    assert offsets is not None
    return fence.adopt_source(
        datasource=supervisor.datasource,
        kind=kind,
        group=group,
        topic=topic,
        cluster_id="cluster",
        topic_id=offsets.topic_id,
    )


def read_source(supervisor: Supervisor, broker: Broker, topic: str) -> Source:
    """A source whose tasks have published four records of partition 0, and nothing of partition 1."""
    source = source_of(supervisor, broker, topic, STORED_OFFSETS.kind, supervisor.pk)
    settle(source.keys.create(partition=0, next_offset=4), (0, 4))
    source.keys.create(partition=1, next_offset=0)
    return source


def test_a_suspended_supervisors_lag_grows_on(cast: Cast, broker: Broker, topic: str) -> None:
    supervisor = submit(cast, broker, broker.bootstrap, topic)
    source = read_source(supervisor, broker, topic)
    services.suspend(user=cast.users["owner"], supervisor=supervisor)
    observe_waiting()
    supervisor.refresh_from_db()
    now = lag_now(supervisor)
    assert (now.lag, now.problem, [p.lag for p in now.partitions]) == (2 * WRITTEN - 4, "", [WRITTEN - 4, WRITTEN])
    broker.produce(topic, [b"{}"] * 5, partition=1)
    LagSample.objects.all().delete()  # the next one may come before five seconds are over
    observe_waiting()
    fine = LagSample.objects.get(source=source, resolution_s=5)
    assert (fine.lag, fine.partitions) == (2 * WRITTEN + 1, [WRITTEN - 4, WRITTEN + 5])


@pytest.mark.parametrize(("earliest", "lags"), [(True, [4, 6, 5]), (False, [2, 0, 0])])
def test_partitions_that_nothing_was_published_of_count_as_the_series_counts_them(
    cast: Cast, broker: Broker, clients: dict[str, Client], earliest: bool, lags: list[int]
) -> None:
    """Of partition 0 [2, 4) and [6, 8) of 8 are settled; of the others nothing. Without the earliest offset a share
    group begins where it was first given a record."""
    topic = broker.topic(partitions=3)
    for partition, count in enumerate((8, 6, 5)):
        broker.produce(topic, [b"{}"] * count, partition=partition)
    spec = {**broker.spec(topic, useEarliestOffset=earliest), "suspended": True}
    supervisor = services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")
    source = source_of(supervisor, broker, topic, SHARE_GROUPS.kind, f"group-{topic}")
    settle(source.keys.create(partition=0), (2, 4), (6, 8))
    observe_waiting()
    fine = LagSample.objects.get(source=source, resolution_s=5)
    now = clients["viewer"].get(f"/api/v1/supervisors/{topic}/lag/").json()
    assert (fine.lag, fine.partitions) == (sum(lags), lags)
    assert (now["lag"], [p["lag"] for p in now["partitions"]]) == (sum(lags), lags)
    assert [p["end_offset"] for p in now["partitions"]] == [8, 6, 5]
    status = clients["viewer"].get(f"/druid/indexer/v1/supervisor/{topic}/status").json()["payload"]
    assert (status["partitions"], status["aggregateLag"]) == (3, sum(lags))
    assert status["minimumLag"] == {str(p): lag for p, lag in enumerate(lags)}


def test_what_a_running_task_reads_and_what_is_terminated_is_left_alone(cast: Cast, broker: Broker, topic: str) -> None:
    supervisor = submit(cast, broker, broker.bootstrap, topic)
    source = read_source(supervisor, broker, topic)
    iterate()
    [task] = tasks_of(supervisor)
    reads(task)
    observe_waiting()
    assert not LagSample.objects.filter(source=source).exists()
    Task.objects.filter(pk=task.pk).update(status=Status.FAILED)
    Supervisor.objects.filter(pk=supervisor.pk).update(terminated_at=timezone.now())
    observe_waiting()
    assert not LagSample.objects.filter(source=source).exists()
    supervisor.refresh_from_db()
    assert "terminated" in lag_now(supervisor).problem


def test_a_broker_that_is_gone_hides_no_other(cast: Cast, broker: Broker, topic: str) -> None:
    forwarder = Forwarder(broker.bootstrap)
    lost = submit(cast, broker, forwarder.address, topic)
    lost_source = read_source(lost, broker, topic)
    other_topic = broker.topic(partitions=2)
    broker.produce(other_topic, [b"{}"] * 6, partition=1)
    well = submit(cast, broker, broker.bootstrap, other_topic)
    read_source(well, broker, other_topic)
    forwarder.close()
    observe_waiting()
    assert not LagSample.objects.filter(source=lost_source).exists()
    assert lag_now(well).lag == 6
