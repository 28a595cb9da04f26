"""Backfills while others act: a second client, a termination, a suspension, a deletion; and partitions of all kinds."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Producer
from django.db import connections
from django.test import Client

from controlplane.common.errors import Conflict
from controlplane.connections.kafka import topic_offsets
from controlplane.lag.topic_lag import record_lag
from controlplane.metrics.snapshot import take_snapshot
from controlplane.retention.datasource_deletion import delete_datasource
from controlplane.supervisors import backfills, services
from controlplane.supervisors.health_queries import health_of_supervisor
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.overview import overview
from controlplane.supervisors.run import iterate, run, run_all
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Goal, Task
from tests.integration.test_backfills import (
    begin_reader,
    begins,
    claimed,
    publish,
    settled,
    skipped,
    stored,
    supervisor,
    the_backfill,
    topic,
)
from tests.integration.test_supervisor_iterations import reads, states, submit, tasks_of
from tests.support.broker import Broker
from tests.support.django_cast import Cast, make_cast, speaking_as
from tests.support.stored_offsets import DRUID
from tests.support.topic_patterns import submitted

__all__ = ["supervisor", "topic"]
pytestmark = pytest.mark.usefixtures("checked_here")
MANY = 6


def at_once(*calls: Callable[[], int]) -> list[int]:
    """What each call answers, in a thread of its own."""

    def answer(call: Callable[[], int]) -> int:
        try:
            return call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(answer, calls))


def test_clients_that_skip_at_once_begin_one_backfill(transactional_db: None, broker: Broker, topic: str) -> None:
    cast = make_cast()
    supervisor = begin_reader(cast, broker, topic)
    address = f"{DRUID}/{supervisor.pk}/resetToLatestAndBackfill"
    clients = [speaking_as(cast, "owner") for _ in range(MANY)]
    answers = at_once(*(lambda client=client: client.post(address).status_code for client in clients))
    assert sorted(answers) == [200, *[409] * (MANY - 1)]
    assert [b.pk for b in supervisor.backfills.all()] == [f"{supervisor.pk}:fill:1"]
    assert stored(supervisor) == {0: 40, 1: 0}


def test_a_termination_and_skips_at_once_leave_no_backfill_alone(
    transactional_db: None, broker: Broker, topic: str
) -> None:
    """Whichever comes first."""
    cast = make_cast()
    supervisor = begin_reader(cast, broker, topic)
    one = f"/api/v1/supervisors/{supervisor.pk}/"
    clients = [speaking_as(cast, "owner") for _ in range(3)]
    ended, *begun = at_once(
        lambda: clients[0].post(f"{one}terminate/").status_code,
        lambda: skipped(clients[1], supervisor).status_code,
        lambda: skipped(clients[2], supervisor).status_code,
    )
    assert ended == 200 and sorted(begun)[1] == 409
    assert not supervisor.backfills.filter(terminated_at=None).exists()
    supervisor.refresh_from_db()
    assert supervisor.terminated_at is not None


def test_the_end_of_a_supervisor_ends_its_backfills_in_order(supervisor: Supervisor, owner: Client, cast: Cast) -> None:
    """What the task holds is still published; one that is completed is terminated as well."""
    body = {"start_offsets": {"0": 10}, "end_offsets": {"0": 12}}
    owner.post(f"/api/v1/supervisors/{supervisor.pk}/backfills/", body, content_type="application/json")
    completed = the_backfill(supervisor)
    iterate()
    [short] = tasks_of(completed)
    publish(begins(completed, short), short, supervisor, 10, 12)
    end_task(short, error="")
    run(completed.pk)
    assert states(completed) == ("COMPLETED", "COMPLETED")
    skipped(owner, supervisor)
    backfill = the_backfill(supervisor, 2)
    iterate()
    [fills] = tasks_of(backfill)
    epoch = begins(backfill, fills)
    assert claimed(epoch, fills, supervisor) == (12, 40)
    services.terminate(user=cast.users["owner"], supervisor=supervisor)
    run_all()
    fills.refresh_from_db()
    assert fills.goal == Goal.FINISH
    publish(epoch, fills, supervisor, 12, 20)
    end_task(fills, error="")
    run_all()
    assert [states(each)[1] for each in (backfill, completed)] == ["TERMINATED", "TERMINATED"]
    assert [(s.is_gap, s.progress.left) for s in backfills.backfill_statuses(supervisor)] == [(True, 20), (False, 0)]
    assert settled(supervisor) == [(0, 20)]
    health = health_of_supervisor(cast.users["owner"], Supervisor.objects.get(pk=backfill.pk))
    assert health.action == f"Fill them again on the page Backfills of {supervisor.pk}."
    answer = owner.post(f"/api/v1/supervisors/{backfill.pk}/resume/")
    assert (answer.status_code, "Begin another backfill." in answer.json()["detail"]) == (409, True)


def test_the_end_of_a_pattern_ends_the_backfills_of_its_topics(
    cast: Cast, broker: Broker, stem: str, owner: Client
) -> None:
    """Which are counted together, as all topics of the pattern have one owner."""
    topics = [broker.make_topic(f"{stem}-{last}", partitions=1) for last in "ab"]
    pattern = submitted(cast, broker, stem, useEarliestOffset=False)
    iterate()
    iterate()
    assert "for the supervisor of each topic" in skipped(owner, pattern).json()["detail"]
    children = list(pattern.children.order_by("pk"))
    for child, name in zip(children, topics, strict=True):
        broker.produce(name, [b"{}"] * 5)
        assert skipped(owner, child).json()["left"] == 5
    filled = Supervisor.objects.filter(fills__in=children).order_by("pk")
    assert [b.pk for b in filled] == [f"{pattern.pk}:fill:1", f"{pattern.pk}:fill:2"]
    assert [b.owner for b in filled] == [pattern.pk] * 2
    services.terminate(user=cast.users["owner"], supervisor=pattern)
    for _ in range(3):
        run_all()
        for task in Task.objects.active().filter(supervisor_id__startswith=f"{pattern.pk}:"):
            end_task(task, error="")
    assert [states(each)[1] for each in (*filled, *children)] == ["TERMINATED"] * 4


def test_a_suspended_supervisor_is_filled_and_stays_suspended(
    supervisor: Supervisor, owner: Client, cast: Cast
) -> None:
    one = f"/api/v1/supervisors/{supervisor.pk}/"
    assert owner.post(f"{one}suspend/").status_code == 200
    supervisor.refresh_from_db()
    [task] = tasks_of(supervisor)
    assert skipped(owner, supervisor).status_code == 200
    end_task(task, error="")
    iterate()
    run_all()
    backfill = the_backfill(supervisor)
    [fills] = tasks_of(backfill)
    assert (backfill.suspended, states(supervisor)[1], len(tasks_of(supervisor))) == (False, "SUSPENDED", 1)
    publish(begins(backfill, fills), fills, supervisor, 10, 40)
    assert owner.post(f"{one}resume/").status_code == 200
    iterate()
    run_all()
    resumed = Task.objects.filter(supervisor_id=supervisor.pk).latest("created_at")
    assert claimed(begins(supervisor, resumed), resumed, supervisor) == (40, None)


def test_a_datasource_is_not_deleted_under_a_backfill(supervisor: Supervisor, owner: Client, cast: Cast) -> None:
    skipped(owner, supervisor)
    backfill, user, datasource = the_backfill(supervisor), cast.users["owner"], supervisor.datasource
    iterate()
    [fills] = tasks_of(backfill)
    with pytest.raises(Conflict, match=f"supervisor {backfill.pk}, "):
        delete_datasource(user=user, datasource=datasource, name=datasource.name)
    services.terminate(user=user, supervisor=supervisor)
    with pytest.raises(Conflict, match=f"task {fills.pk}"):
        delete_datasource(user=user, datasource=datasource, name=datasource.name)
    for task in Task.objects.active().filter(datasource=datasource):
        end_task(task, error="")
    delete_datasource(user=user, datasource=datasource, name=datasource.name)
    run_all()
    assert skipped(owner, supervisor).status_code == 409
    assert not Task.objects.active().filter(datasource=datasource).exists()


def test_what_it_has_still_to_read_is_counted_once(supervisor: Supervisor, owner: Client, cast: Cast) -> None:
    """On home and in metrics, the lag of its supervisor has it; nor has a completed one the lag of the topic."""
    skipped(owner, supervisor)
    backfill, user = the_backfill(supervisor), cast.users["owner"]
    iterate()
    [fills] = tasks_of(backfill)
    reads(fills)
    record(supervisor)
    assert overview(user).behind == 30
    lags = take_snapshot()["headgate_supervisor_lag_records"]
    assert [(labels[-1], lag) for labels, lag in lags] == [(supervisor.pk, 30)]
    assert health_of_supervisor(user, backfill).behind == 30
    owner.post(f"/api/v1/supervisors/{backfill.pk}/suspend/")
    end_task(fills, error="")
    suspended = Supervisor.objects.get(pk=backfill.pk)
    assert "Of its offsets, 30 are not settled." in health_of_supervisor(user, suspended).cause
    services.resume(user=user, supervisor=suspended)
    run(backfill.pk)
    publish(begins(backfill, tasks_of(backfill)[0]), tasks_of(backfill)[0], supervisor, 10, 40)
    for task in tasks_of(backfill):
        end_task(task, error="")
    run(backfill.pk)
    assert states(backfill)[1] == "COMPLETED"
    assert health_of_supervisor(user, backfill).behind is None


def record(supervisor: Supervisor) -> None:
    """What the watch over tasks does."""
    io_config = supervisor.io_config
    seen = topic_offsets(io_config.consumerProperties, io_config.topic)
    assert seen is not None
    record_lag(supervisor.datasource, io_config, supervisor.owner, seen.for_isolation(io_config.isolation))


def test_partitions_of_all_kinds_are_skipped(cast: Cast, broker: Broker, owner: Client) -> None:
    """Read to its end, never read, empty, without a single committed record, and with an open transaction behind."""
    topic = broker.topic(partitions=5)
    supervisor = submit(cast, broker, broker.bootstrap, topic)
    for partition in (0, 1, 4):
        broker.produce(topic, [b"{}"] * 10, partition=partition)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"{}", partition=3)
    producer.flush(30)
    producer.abort_transaction()
    producer.begin_transaction()
    producer.produce(topic, b"{}", partition=4)
    producer.flush(30)
    iterate()
    [task] = tasks_of(supervisor)
    epoch = begins(supervisor, task)
    claimed(epoch, task, supervisor, first_run=True, starts=dict.fromkeys(range(5), 0))
    publish(epoch, task, supervisor, 0, 10)
    plan = skipped(owner, supervisor).json()
    assert [(p["partition"], p["start"], p["end"]) for p in plan["partitions"]] == [(1, 0, 10), (3, 0, 2), (4, 0, 10)]
    assert stored(supervisor) == {0: 10, 1: 10, 2: 0, 3: 2, 4: 10}
    assert skipped(owner, supervisor).status_code == 409
    producer.abort_transaction()
    again = skipped(owner, supervisor).json()
    assert [(p["partition"], p["start"], p["end"]) for p in again["partitions"]] == [(4, 10, 12)]


def test_it_gets_as_many_indexers_as_the_autoscaler_has_decided(
    cast: Cast, broker: Broker, topic: str, owner: Client
) -> None:
    scaler = {"enableTaskAutoScaler": True, "taskCountMin": 1, "taskCountMax": 4}
    supervisor = submit(cast, broker, broker.bootstrap, topic, "share_group", autoScalerConfig=scaler)
    iterate()
    [task] = tasks_of(supervisor)
    begins(supervisor, task)
    Supervisor.objects.filter(pk=supervisor.pk).update(decided_task_count=3)
    body = {"start_position": "earliest", "end_position": "latest", "dry_run": True}
    answer = owner.post(f"/api/v1/supervisors/{supervisor.pk}/backfills/", body, content_type="application/json")
    assert answer.json()["task_count"] == 3
