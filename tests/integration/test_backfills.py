"""Backfills: a reader skips to the end, and another reads what it left; asked for over REST and at Druid's address."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import TopicPartition
from django.test import Client

from controlplane.connections import positions
from controlplane.connections.kafka import topic_offsets
from controlplane.lag.models import LagSample
from controlplane.lag.topic_lag import record_lag
from controlplane.publishing import claims, fence
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.sources.models import Source, SourceEvent
from controlplane.sources.spec_sources import source_key
from controlplane.supervisors import services
from controlplane.supervisors.completeness import completeness
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.run import iterate, run
from controlplane.tasks import capacity
from controlplane.tasks.bounded_reads import observe
from controlplane.tasks.models import Goal, Task
from controlplane.teams.models import AuditEntry
from ingestion.specs.messages.protocol import Advance, ClaimRequest
from tests.integration.test_supervisor_iterations import reads, states, submit, tasks_of
from tests.support.broker import Broker
from tests.support.django_cast import Cast
from tests.support.publishes import request, send, settled_offsets
from tests.support.records import numbered
from tests.support.stored_offsets import DRUID, post

pytestmark = pytest.mark.usefixtures("checked_here")


@pytest.fixture
def topic(broker: Broker) -> str:
    topic = broker.topic(partitions=2)
    broker.produce(topic, numbered(0, 40), partition=0)
    return topic


@pytest.fixture
def supervisor(cast: Cast, broker: Broker, topic: str) -> Supervisor:
    return begin_reader(cast, broker, topic)


def begin_reader(cast: Cast, broker: Broker, topic: str) -> Supervisor:
    """Its task has published the offsets 0 to 9 of partition 0, and reads on."""
    make_receipt_partitions()
    supervisor = submit(cast, broker, broker.bootstrap, topic)
    iterate()
    [task] = tasks_of(supervisor)
    reads(task)
    epoch = begins(supervisor, task)
    assert claimed(epoch, task, supervisor, first_run=True, starts={0: 0, 1: 0}) == (0, None)
    publish(epoch, task, supervisor, 0, 10)
    return supervisor


def topic_id(supervisor: Supervisor, broker: Broker | None = None) -> str:
    source = Source.objects.filter(topic=supervisor.io_config.topic).first()
    if source is not None:
        return source.topic_id
    found = topic_offsets(supervisor.io_config.consumerProperties, supervisor.io_config.topic)
    assert found is not None
    return found.topic_id


def begins(supervisor: Supervisor, task: Task) -> int:
    """An indexer of one of its tasks starts."""
    cluster = topic_offsets(supervisor.io_config.consumerProperties, supervisor.io_config.topic)
    assert cluster is not None
    source = fence.adopt_source(
        datasource=supervisor.datasource,
        **source_key(supervisor.io_config, supervisor.owner),
        topic=supervisor.io_config.topic,
        cluster_id=cluster.cluster_id,
        topic_id=cluster.topic_id,
    )
    return fence.take_epoch(
        task_id=task.pk, datasource=supervisor.datasource, source=source, bounded=task.is_bounded
    ).epoch


def claimed(epoch: int, task: Task, supervisor: Supervisor, **asked: Any) -> tuple[int | None, int | None]:
    """Of partition 0: where it goes on, and until where."""
    message = ClaimRequest(epoch=epoch, topic_id=topic_id(supervisor), partitions=[0], **asked)
    if task.is_bounded:
        ranges = [(r["partition"], r["start"], r["end"]) for r in task.ranges]
        answer = claims.claim_within(task_id=task.pk, number=0, request=message, ranges=ranges)
    else:
        answer = claims.claim(task_id=task.pk, number=0, request=message, may_reset=False)
    return answer.partitions[0].next_offset, answer.partitions[0].until


def publish(epoch: int, task: Task, supervisor: Supervisor, first: int, last: int) -> None:
    progress = {0: Advance(start=first, end=last)}
    what = request(epoch, {0: [(first, last)]}, progress=progress, topic_id=topic_id(supervisor))
    send(what, task=task.pk)


def skipped(client: Client, supervisor: Supervisor, **more: Any) -> Any:
    return post(client, f"/api/v1/supervisors/{supervisor.pk}/backfills/", {"skip": True, **more})


def the_backfill(supervisor: Supervisor, number: int = 1) -> Supervisor:
    return Supervisor.objects.get(pk=f"{supervisor.pk}:fill:{number}")


def stored(supervisor: Supervisor) -> dict[int, int | None]:
    source = Source.objects.get(topic=supervisor.io_config.topic)
    return dict(source.keys.values_list("partition", "next_offset"))


def settled(supervisor: Supervisor) -> list[tuple[int, int]]:
    return settled_offsets(Source.objects.get(topic=supervisor.io_config.topic)).get(0, [])


def test_a_preview_changes_nothing(supervisor: Supervisor, owner: Client) -> None:
    plan = skipped(owner, supervisor, dry_run=True).json()
    assert (plan["left"], plan["backfill"], plan["task_count"]) == (30, None, 1)
    assert plan["partitions"] == [{"partition": 0, "start": 10, "end": 40, "unsettled": 30}]
    assert stored(supervisor) == {0: 10, 1: 0}
    assert not supervisor.backfills.exists()


def test_the_reader_skips_and_the_backfill_reads_the_rest(supervisor: Supervisor, owner: Client) -> None:
    """What its indexer had on its way is refused whole; no offset is in both."""
    [task] = tasks_of(supervisor)
    old = fence.IndexerFence.objects.get(task_id=task.pk).epoch
    answer = skipped(owner, supervisor, task_count=3).json()
    backfill = the_backfill(supervisor)
    assert (answer["backfill"], answer["left"]) == (backfill.pk, 30)
    assert (backfill.io_config.taskCount, backfill.fills_id, backfill.owner) == (3, supervisor.pk, supervisor.pk)
    assert stored(supervisor) == {0: 40, 1: 0}
    with pytest.raises(PublishRefused) as refused:
        publish(old, task, supervisor, 10, 20)
    assert refused.value.refusal.code == "fenced"
    assert claimed(begins(supervisor, task), task, supervisor) == (40, None)
    iterate()
    [fills] = tasks_of(backfill)
    assert fills.is_bounded
    epoch = begins(backfill, fills)
    assert claimed(epoch, fills, supervisor) == (10, 40)
    publish(epoch, fills, supervisor, 10, 25)
    [listed] = owner.get(f"/api/v1/supervisors/{supervisor.pk}/backfills/").json()["backfills"]
    assert (listed["done"], listed["left"], listed["percent"], listed["gap"]) == (15, 15, 50, False)
    publish(epoch, fills, supervisor, 25, 40)
    Task.objects.filter(pk=fills.pk).update(status="SUCCESS", ended_at=fills.created_at)
    run(backfill.pk)
    assert states(backfill) == ("COMPLETED", "COMPLETED")
    assert settled(supervisor) == [(0, 40)]


def test_twice_in_a_row_the_second_begins_where_the_first_ends(
    supervisor: Supervisor, owner: Client, broker: Broker, topic: str
) -> None:
    skipped(owner, supervisor)
    answer = skipped(owner, supervisor)
    assert (answer.status_code, "nothing to skip" in answer.json()["detail"]) == (409, True)
    broker.produce(topic, numbered(40, 50), partition=0)
    skipped(owner, supervisor)
    bounds = [the_backfill(supervisor, n).io_config.boundedStreamConfig for n in (1, 2)]
    assert [b and b.ranges for b in bounds] == [{0: (10, 40)}, {0: (40, 50)}]


def test_a_cancelled_one_leaves_a_gap_that_is_filled_later(supervisor: Supervisor, owner: Client, cast: Cast) -> None:
    skipped(owner, supervisor)
    backfill = the_backfill(supervisor)
    iterate()
    [fills] = tasks_of(backfill)
    publish(begins(backfill, fills), fills, supervisor, 10, 15)
    assert owner.post(f"/api/v1/supervisors/{backfill.pk}/terminate/").status_code == 200
    address = f"/api/v1/supervisors/{supervisor.pk}/backfills/"
    [listed] = owner.get(address).json()["backfills"]
    assert (listed["gap"], listed["left"]) == (True, 25)
    again = {"start_offsets": {"0": 10}, "end_offsets": {"0": 40}}
    assert post(owner, address, {**again, "dry_run": True}).json()["left"] == 25
    assert post(owner, address, again).status_code == 200
    iterate()
    [next_fills] = tasks_of(the_backfill(supervisor, 2))
    assert claimed(begins(supervisor, next_fills), next_fills, supervisor) == (15, 40)
    answer = post(owner, address, {"start_offsets": {"0": 0}, "end_offsets": {"0": 15}})
    assert (answer.status_code, "settled already" in answer.json()["detail"]) == (409, True)


def test_a_reset_into_its_range_reads_each_offset_once(supervisor: Supervisor, owner: Client) -> None:
    """Both go on: what one settles the other passes over."""
    skipped(owner, supervisor)
    backfill, [task] = the_backfill(supervisor), tasks_of(supervisor)
    iterate()
    [fills] = tasks_of(backfill)
    filling = begins(backfill, fills)
    publish(filling, fills, supervisor, 10, 30)
    assert post(owner, f"{DRUID}/{supervisor.pk}/resetOffsets", offsets(supervisor, 20)).status_code == 200
    assert settled(supervisor) == [(0, 20)], "from there on it is read again"
    reading = begins(supervisor, task)
    assert claimed(reading, task, supervisor) == (20, None)
    publish(filling, fills, supervisor, 30, 35)
    with pytest.raises(PublishRefused):
        publish(reading, task, supervisor, 20, 40)
    assert claimed(reading, task, supervisor) == (20, 30)
    publish(reading, task, supervisor, 20, 30)
    assert claimed(reading, task, supervisor) == (35, None)
    publish(reading, task, supervisor, 35, 40)
    assert claimed(filling, fills, supervisor) == (None, None)
    assert settled(supervisor) == [(0, 40)]


def offsets(supervisor: Supervisor, offset: int) -> dict[str, Any]:
    partitions = {"type": "end", "stream": supervisor.io_config.topic, "partitionOffsetMap": {"0": offset}}
    return {"type": "kafka", "partitions": partitions}


@pytest.mark.parametrize("published", [True, False])
def test_nothing_is_complete_before_it_is_filled(
    cast: Cast, broker: Broker, topic: str, owner: Client, published: bool
) -> None:
    """Also where the reader had published nothing: its lag counts what is still to come."""
    supervisor = submit(cast, broker, broker.bootstrap, topic)
    make_receipt_partitions()
    iterate()
    [task] = tasks_of(supervisor)
    epoch = begins(supervisor, task)
    claimed(epoch, task, supervisor, first_run=True, starts={0: 0, 1: 0})
    if published:
        publish(epoch, task, supervisor, 0, 10)
    assert skipped(owner, supervisor).status_code == 200
    left = 30 if published else 40
    broker.produce(topic, numbered(40, 45), partition=0)

    def look() -> tuple[int, list[int]]:
        """The lag, and of it what the reader has passed."""
        LagSample.objects.all().delete()  # the next one may come before five seconds are over
        seen = topic_offsets(supervisor.io_config.consumerProperties, topic)
        assert seen is not None
        here = seen.for_isolation(supervisor.io_config.isolation)
        lag = record_lag(supervisor.datasource, supervisor.io_config, supervisor.owner, here)
        passed = LagSample.objects.get(resolution_s=5).passed
        assert lag.passed == sum(passed), "the task's page counts it, too"
        return lag.total, passed

    assert look() == (left + 5, [left])
    status = completeness(supervisor.datasource)
    assert status.complete_until is None
    assert [r.supervisor.pk for r in status.readers if topic in r.supervisor.pk] == [supervisor.pk]
    iterate()
    backfill = the_backfill(supervisor)
    [fills] = tasks_of(backfill)
    publish(begins(backfill, fills), fills, supervisor, 40 - left, 40)
    assert look() == (5, [])
    publish(begins(supervisor, task), task, supervisor, 40, 45)
    assert look() == (0, [])
    assert Source.objects.get(topic=topic).complete_until is not None


def test_druids_address(supervisor: Supervisor, owner: Client) -> None:
    address = f"{DRUID}/{supervisor.pk}/resetToLatestAndBackfill"
    assert owner.post(f"{address}?backfillTaskCount=none").status_code == 400
    answer = owner.post(f"{address}?backfillTaskCount=2")
    assert answer.json() == {"id": supervisor.pk, "backfillSupervisorId": f"{supervisor.pk}:fill:1"}
    assert the_backfill(supervisor).io_config.taskCount == 2
    entry = AuditEntry.objects.get(target_id=supervisor.pk, action="skip_and_fill")
    assert entry.detail["ranges"] == [{"partition": 0, "start": 10, "end": 40}]
    event = SourceEvent.objects.get(kind=SourceEvent.Kind.OFFSET_RESET)
    assert "owner let the reader" in event.detail


def test_a_backfill_is_paused_scaled_and_ended_with_what_it_fills(
    supervisor: Supervisor, owner: Client, cast: Cast
) -> None:
    skipped(owner, supervisor)
    backfill = the_backfill(supervisor)
    one = f"/api/v1/supervisors/{backfill.pk}/"
    assert owner.post(f"{one}suspend/").status_code == 200
    assert owner.post(f"{one}resume/").status_code == 200
    assert post(owner, f"{one}scale/", {"taskCount": 4}).status_code == 200
    shown = owner.get(one).json()
    assert (shown["task_count"], shown["fills"], shown["spec"]["id"]) == (4, supervisor.pk, backfill.pk)
    for path, body in (("reset/", {}), ("backfills/", {"skip": True})):
        answer = post(owner, f"{one}{path}", body)
        assert (answer.status_code, f"Do this to {supervisor.pk}" in answer.json()["detail"]) == (409, True)
    services.terminate(user=cast.users["owner"], supervisor=supervisor)
    backfill.refresh_from_db()
    assert backfill.terminated_at is not None
    assert skipped(owner, supervisor).status_code == 409


@pytest.mark.parametrize("action", ["suspend", "terminate"])
def test_one_whose_task_reads_is_ended(supervisor: Supervisor, owner: Client, action: str) -> None:
    """Also once its topic was observed, which happens every few seconds."""
    skipped(owner, supervisor)
    backfill = the_backfill(supervisor)
    iterate()
    [fills] = tasks_of(backfill)
    reads(fills)
    observe(fills, topic_offsets(backfill.io_config.consumerProperties, backfill.io_config.topic), "", refused=False)
    assert owner.post(f"/api/v1/supervisors/{backfill.pk}/{action}/").status_code == 200
    run(backfill.pk)
    fills.refresh_from_db()
    assert fills.goal != Goal.RUN
    backfill.refresh_from_db()
    assert not backfill.recent_errors


def test_it_waits_behind_those_that_read_on(supervisor: Supervisor, owner: Client, settings: Any) -> None:
    """Although it came first."""
    skipped(owner, supervisor)
    iterate()
    Task.objects.filter(supervisor_id=supervisor.pk).update(launched_at=None, status="PENDING")
    first, second = Task.objects.filter(supervisor_id__startswith=supervisor.pk).order_by("-supervisor_id")
    Task.objects.filter(pk=second.pk).update(created_at=first.created_at)
    settings.WORKER_CAPACITY = 1
    waiting = capacity.pool()
    assert {a.id for a in waiting.waiting if a.is_backfill} == {first.pk}
    assert first.pk not in capacity.admitted(waiting)


def test_a_share_group_cannot_skip_but_its_gaps_are_filled(
    cast: Cast, broker: Broker, topic: str, owner: Client
) -> None:
    supervisor = submit(cast, broker, broker.bootstrap, topic, "share_group")
    iterate()
    [task] = tasks_of(supervisor)
    begins(supervisor, task)
    answer = skipped(owner, supervisor)
    assert (answer.status_code, "can't skip" in answer.json()["detail"]) == (400, True)
    address = f"/api/v1/supervisors/{supervisor.pk}/backfills/"
    plan = post(owner, address, {"start_position": "earliest", "end_position": "latest"}).json()
    assert (plan["left"], plan["backfill"]) == (40, f"{supervisor.pk}:fill:1")
    iterate()
    [fills] = tasks_of(the_backfill(supervisor))
    assert claimed(begins(supervisor, fills), fills, supervisor) == (0, 40)


def test_the_latest_offset_of_a_topic_that_grows_meanwhile(
    supervisor: Supervisor, owner: Client, broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live feed writes between two questions to Kafka: the end is that of the first."""
    resolve = positions.resolve

    def after_more(*asked: Any) -> Any:
        broker.produce(topic, numbered(0, 10), partition=0)
        return resolve(*asked)

    monkeypatch.setattr(positions, "resolve", after_more)
    body = {"start_position": "earliest", "end_position": "latest", "dry_run": True}
    plan = post(owner, f"/api/v1/supervisors/{supervisor.pk}/backfills/", body)
    assert (plan.status_code, plan.json().get("left")) == (200, 30)


@pytest.mark.parametrize(
    "body",
    [
        {"start_offsets": {"0": 0}, "end_offsets": {"1": 5}},
        {"start_offsets": {"0": 0}, "end_offsets": {"0": 2**70}},
        {"start_offsets": {str(2**40): 0}, "end_offsets": {str(2**40): 1}},
        {"start_offsets": {"0": 0}, "end_position": "tomorrow"},
        {"start_offsets": {"0": 0}},
        {"skip": True, "end_position": "latest"},
        {"skip": True, "task_count": 0},
        {"skip": True, "task_count": 100_000},
    ],
)
def test_odd_bodies_are_refused(supervisor: Supervisor, owner: Client, body: dict[str, Any]) -> None:
    assert post(owner, f"/api/v1/supervisors/{supervisor.pk}/backfills/", body).status_code == 400
    assert stored(supervisor) == {0: 10, 1: 0}


def test_what_retention_has_taken_is_refused_by_name(
    supervisor: Supervisor, owner: Client, broker: Broker, topic: str
) -> None:
    for future in broker.admin.delete_records([TopicPartition(topic, 0, 20)]).values():
        future.result(30)
    address = f"/api/v1/supervisors/{supervisor.pk}/backfills/"
    for body in ({"0": 10}, {"0": 39}, {"9": 1}):
        answer = post(owner, address, {"start_offsets": body, "end_offsets": {p: o - 1 for p, o in body.items()}})
        assert answer.status_code == 400
    answer = post(owner, address, {"start_offsets": {"0": 10}, "end_offsets": {"0": 40}})
    assert (answer.status_code, "retention has removed" in answer.content.decode()) == (400, True)
    assert skipped(owner, supervisor).json()["left"] == 30, "a skip leaves it to the backfill, which names the gap"
