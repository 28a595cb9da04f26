"""What an operator does to a supervisor of the type kafka, over REST and at Druid's addresses."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.connections.kafka import topic_offsets
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.models import IndexerFence, ProgressKey, Publish
from controlplane.sources.models import Source, SourceEvent
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.run import run
from controlplane.supervisors.task_snapshot import snapshots_of
from controlplane.tasks.lifecycle import end_task, new_token
from controlplane.tasks.models import Goal, Indexer, Status, Task
from controlplane.teams.models import AuditEntry
from ingestion.specs.messages.protocol import Advance
from ingestion.specs.source_traits import STORED_OFFSETS
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed
from tests.support.publishes import request, send, settled_offsets
from tests.support.records import numbered
from tests.support.stored_offsets import (
    DRUID,
    PAGE,
    TOPIC_ID,
    begin,
    begin_reading,
    claim,
    kafka_spec,
    post,
    source_of,
    stored,
    task_of,
)

SECONDS = (60, 300, 900)
BOTH = ["flights", "metrics"]


@pytest.fixture
def reading(cast: Cast, owner: Client) -> Supervisor:
    """A supervisor whose task has published offsets 0 to 9 of partition 0, and reads on."""
    return begin_reading(owner)


def test_a_reset_forgets_all_and_what_is_on_its_way_is_refused(reading: Supervisor, owner: Client) -> None:
    """Row 28 of the failure matrix, reset first: the publish fails clean, and reading begins anew."""
    task = task_of(reading)
    epoch = IndexerFence.objects.get(task_id=task.pk).epoch
    assert post(owner, f"{DRUID}/metrics/reset").json() == {"id": "metrics"}
    assert stored(reading) == {0: None, 1: None}
    with pytest.raises(PublishRefused) as refused:
        send(request(epoch, {0: [(10, 20)]}, progress={0: Advance(start=10, end=20)}), task=task.pk)
    assert refused.value.refusal.code == "fenced"
    answer = claim(task, begin(task))
    assert answer.first_run is True
    assert answer.partitions[0].next_offset is None
    event = SourceEvent.objects.get(source=source_of(reading))
    assert (event.kind, event.alarm) == (SourceEvent.Kind.OFFSET_RESET, False)
    assert "owner reset" in event.detail
    assert "0: 10" in event.detail


@pytest.mark.parametrize("stored_by_an_earlier_version", [False, True])
def test_a_source_by_another_of_its_names_is_the_same(
    cast: Cast, reading: Supervisor, owner: Client, stored_by_an_earlier_version: bool
) -> None:
    """Druid's specs name it in ioConfig too, and not always as they do outside."""
    assert post(owner, DRUID, kafka_spec("metrics", type="index_kafka")).status_code == 200
    reading.refresh_from_db()
    assert reading.io_config.type == "kafka"
    if stored_by_an_earlier_version:
        named = {
            **reading.current.spec["spec"],
            "ioConfig": {**reading.current.spec["spec"]["ioConfig"], "type": "index_kafka"},
        }
        SpecVersion.objects.filter(pk=reading.current.pk).update(spec={**reading.current.spec, "spec": named})
    page = parsed(browsing_as(cast, "owner").get(PAGE))
    assert page.one("dialog", id="ask-reset")
    assert not page.all("a", href=f"{PAGE}share-group/")
    assert post(owner, f"{DRUID}/metrics/reset").status_code == 200
    assert stored(reading) == {0: None, 1: None}
    assert owner.get("/api/v1/supervisors/metrics/share-group/").status_code == 400


def test_offsets_are_set_by_partition_and_read_again(reading: Supervisor, owner: Client) -> None:
    wanted = {"type": "kafka", "partitions": {"stream": "metrics-topic", "partitionOffsetMap": {"0": 4, "5": 7}}}
    assert post(owner, f"{DRUID}/metrics/resetOffsets", wanted).status_code == 200
    assert stored(reading) == {0: 4, 1: 0, 5: 7}
    task = task_of(reading)
    epoch = begin(task)
    send(request(epoch, {0: [(4, 12)]}, progress={0: Advance(start=4, end=12)}), task=task.pk)
    assert settled_offsets(source_of(reading))[0] == [(0, 12)]
    assert post(owner, "/api/v1/supervisors/metrics/reset/", {"partitions": {"1": 3}}).status_code == 200
    assert stored(reading) == {0: 12, 1: 3, 5: 7}
    assert post(owner, "/api/v1/supervisors/metrics/reset/", {}).status_code == 200
    assert set(stored(reading).values()) == {None}


WRONG_RESETS: list[object] = [
    {},
    [],
    {"partitions": {"stream": "metrics-topic"}},
    {"partitions": {"stream": "metrics-topic", "partitionOffsetMap": {}}},
    {"partitions": {"stream": "metrics-topic", "partitionOffsetMap": {"x": 1}}},
    {"partitions": {"stream": "metrics-topic", "partitionOffsetMap": {"0": -1}}},
    {"partitions": {"stream": "metrics-topic", "partitionOffsetMap": {"0": True}}},
    {"partitions": {"stream": "metrics-topic", "partitionOffsetMap": {"0": 2**60}}},
    {"partitions": {"stream": "another-topic", "partitionOffsetMap": {"0": 1}}},
]


def test_a_wrong_reset_changes_nothing(reading: Supervisor, owner: Client) -> None:
    taken = []
    for body in WRONG_RESETS:
        answer = post(owner, f"{DRUID}/metrics/resetOffsets", body)
        refused = answer.status_code == 400 and bool(answer.json()["errorMessage"])
        if not refused or stored(reading) != {0: 10, 1: 0}:
            taken.append((body, answer.content, stored(reading)))
    assert not taken


@pytest.mark.parametrize(("offset", "taken"), [(1, False), (2, True), (20, True), (21, False)])
def test_offsets_that_the_log_does_not_hold(reading: Supervisor, owner: Client, offset: int, taken: bool) -> None:
    """By what was last seen of it: this Kafka is away."""
    ProgressKey.objects.filter(source=source_of(reading)).update(log_start_offset=2, end_offset=20)
    answer = post(owner, "/api/v1/supervisors/metrics/reset/", {"partitions": {"0": offset}})
    assert stored(reading)[0] == (offset if taken else 10)
    if not taken:
        (fault,) = answer.json()["errors"]
        assert (answer.status_code, fault["pointer"]) == (400, "/partitions/0")
        assert fault["detail"] == f"partition 0 held the offsets from 2 to 20 at the last check, not {offset}"


def test_the_log_is_asked_where_more_may_have_come(reading: Supervisor, owner: Client, broker: Broker) -> None:
    """A partition that is new here, or that is not there at all; what came since the last look."""
    topic = broker.make_topic("metrics-topic", 2)
    broker.produce(topic, numbered(0, 30), partition=0)
    spec = kafka_spec("metrics", consumerProperties={"bootstrap.servers": broker.bootstrap})
    assert post(owner, DRUID, spec).status_code == 200
    ProgressKey.objects.filter(source=source_of(reading)).update(log_start_offset=0, end_offset=20)
    reset = "/api/v1/supervisors/metrics/reset/"
    assert post(owner, reset, {"partitions": {"0": 25}}).status_code == 200
    answer = post(owner, reset, {"partitions": {"0": 31, "7": 0}})
    assert [fault["detail"] for fault in answer.json()["errors"]] == [
        "partition 0 held the offsets from 0 to 30, not 31",
        "topic metrics-topic has no partition 7; it has 2, counted from 0",
    ]
    assert stored(reading)[0] == 25


def test_all_partitions_go_to_the_log_s_beginning_or_end(
    cast: Cast, reading: Supervisor, owner: Client, broker: Broker
) -> None:
    """While Kafka is away nothing is changed."""
    reset = "/api/v1/supervisors/metrics/reset/"
    away = post(owner, reset, {"position": "latest"})
    assert (away.status_code, stored(reading)) == (503, {0: 10, 1: 0})
    topic = broker.topic("metrics", 2)
    broker.produce(topic, numbered(0, 30), partition=0)
    io_config = reading.current.spec["spec"]["ioConfig"]
    io_config |= {"topic": topic, "consumerProperties": {"bootstrap.servers": broker.bootstrap}}
    SpecVersion.objects.filter(pk=reading.current.pk).update(spec=reading.current.spec)
    log = topic_offsets({"bootstrap.servers": broker.bootstrap}, topic)
    assert log is not None
    Source.objects.filter(pk=source_of(reading).pk).update(topic=topic, topic_id=log.topic_id)
    assert post(owner, reset, {"position": "latest"}).status_code == 200
    assert stored(reading) == {0: 30, 1: 0}
    assert post(owner, reset, {"position": "earliest"}).status_code == 200
    assert stored(reading) == {0: 0, 1: 0}
    page = browsing_as(cast, "owner")
    for body in ({"position": "middle"}, {"position": "latest", "partitions": {"0": 1}}):
        assert post(owner, reset, body).status_code == 400
    assert page.post(f"{PAGE}reset/", {"position": "latest", "offsets": "0: 1"}).status_code == 400
    assert stored(reading) == {0: 0, 1: 0}


def test_a_share_group_has_no_offsets_to_reset(owner: Client, cast: Cast) -> None:
    answer = post(owner, f"{DRUID}/flights/reset")
    assert answer.status_code == 400
    assert "another groupId" in answer.json()["errorMessage"]


def test_nothing_to_reset_before_the_first_claim(owner: Client, cast: Cast) -> None:
    post(owner, DRUID, kafka_spec("fresh"))
    assert post(owner, f"{DRUID}/fresh/reset").status_code == 409


def test_an_early_handoff_starts_the_next_task_and_then_finishes_this_one(reading: Supervisor, owner: Client) -> None:
    first = task_of(reading)
    assert post(owner, f"{DRUID}/metrics/taskGroups/handoff", {"taskGroupIds": [0]}).status_code == 200
    run(reading.pk)
    first.refresh_from_db()
    second = Task.objects.active().filter(supervisor_id=reading.pk).exclude(pk=first.pk).get()
    assert first.goal == Goal.RUN
    Task.objects.filter(pk=second.pk).update(status=Status.RUNNING, started_at=timezone.now())
    Indexer.objects.create(task=second, number=0, epoch=0, state="waiting")
    run(reading.pk)
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.goal, second.goal) == (Goal.FINISH, Goal.RUN)


def test_a_next_task_that_is_on_its_way_hands_over_as_well_when_that_is_asked_again(
    reading: Supervisor, owner: Client
) -> None:
    """It was launched by what was in force before: a connection's properties, which have been changed since."""
    first = task_of(reading)
    asked = f"{DRUID}/metrics/taskGroups/handoff", {"taskGroupIds": [0]}
    assert post(owner, *asked).status_code == 200
    run(reading.pk)
    second = Task.objects.active().filter(supervisor_id=reading.pk).exclude(pk=first.pk).get()
    assert post(owner, *asked).status_code == 200
    run(reading.pk)
    assert Task.objects.active().filter(supervisor_id=reading.pk).count() == 2  # not launched yet: it will know
    Task.objects.filter(pk=second.pk).update(status=Status.RUNNING, launched_at=timezone.now())
    assert post(owner, *asked).status_code == 200
    run(reading.pk)
    first.refresh_from_db()
    second.refresh_from_db()
    third = Task.objects.active().filter(supervisor_id=reading.pk).exclude(pk__in=[first.pk, second.pk]).get()
    assert (first.goal, second.goal, third.goal) == (Goal.RUN, Goal.FINISH, Goal.RUN)


WRONG_GROUPS: list[object] = [[], 0, [7], [0, 1], ["0"], [False], [[0]], {"0": 0}]


def test_a_wrong_handoff_changes_nothing(reading: Supervisor, owner: Client) -> None:
    taken = []
    for body in ({}, *({"taskGroupIds": groups} for groups in WRONG_GROUPS)):
        answer = post(owner, f"{DRUID}/metrics/taskGroups/handoff", body)
        refused = answer.status_code == 400 and "taskGroupIds" in answer.json()["errorMessage"]
        reading.refresh_from_db()
        if not refused or reading.handoff_asked_at is not None:
            taken.append((body, answer.content, reading.handoff_asked_at))
    assert not taken


def test_a_task_by_hand_is_refused_while_a_supervisor_moves_the_same_offsets(
    reading: Supervisor, owner: Client
) -> None:
    by_hand = {**kafka_spec("metrics"), "type": "index_kafka"}
    elsewhere = {**by_hand, "ioConfig": {**by_hand["ioConfig"], "topic": "another-topic"}}
    for path in ("/druid/indexer/v1/task", "/api/v1/tasks/"):
        refused = post(owner, path, by_hand)
        assert refused.status_code == 409
        assert b"Supervisor 'metrics' reads topic 'metrics-topic' now" in refused.content
    assert post(owner, "/druid/indexer/v1/task", elsewhere).status_code == 200
    end_task(task_of(reading))
    assert post(owner, "/druid/indexer/v1/task", by_hand).status_code == 200


def test_a_task_that_has_read_long_enough_makes_room(reading: Supervisor) -> None:
    task = task_of(reading)
    IndexerFence.objects.filter(task_id=task.pk).update(started_at=timezone.now() - timedelta(minutes=59))
    run(reading.pk)
    assert Task.objects.active().filter(supervisor_id=reading.pk).count() == 1
    IndexerFence.objects.filter(task_id=task.pk).update(started_at=timezone.now() - timedelta(minutes=61))
    run(reading.pk)
    assert Task.objects.active().filter(supervisor_id=reading.pk).count() == 2


def test_the_next_task_of_a_supervisor_waits_for_the_last_one(
    reading: Supervisor, owner: Client, client: Client
) -> None:
    first = task_of(reading)
    post(owner, f"{DRUID}/metrics/taskGroups/handoff", {"taskGroupIds": [0]})
    run(reading.pk)
    second = Task.objects.active().filter(supervisor_id=reading.pk).exclude(pk=first.pk).get()
    headers = {"Authorization": f"Bearer {new_token(second)}"}
    start = {"cluster_id": "cluster", "topic_id": TOPIC_ID, "host": "h", "pid": 1}
    path = f"/internal/tasks/{second.pk}/indexers/0/start"
    refused = client.post(path, start, content_type="application/json", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (409, "predecessor")
    end_task(first)
    assert client.post(path, start, content_type="application/json", headers=headers).json()["epoch"] == 1


def test_stats_have_totals_and_averages_of_what_is_new(reading: Supervisor, owner: Client) -> None:
    """Its ten rows two minutes ago are none of the last minute's."""
    for ago, counted in ((timedelta(0), [10, 10, 10]), (timedelta(minutes=2), [0, 10, 10])):
        Publish.objects.filter(fence__task_id=task_of(reading).pk).update(created_at=timezone.now() - ago)
        task = task_of(reading).pk
        stats = owner.get(f"{DRUID}/metrics/stats").json()
        assert stats["0"][task]["totals"]["buildSegments"]["processed"] == 10
        averages = stats["0"][task]["movingAverages"]["buildSegments"]
        assert list(averages) == ["1m", "5m", "15m"]
        assert [round(a["processed"] * s) for a, s in zip(averages.values(), SECONDS, strict=True)] == counted
        [ours] = owner.get("/api/v1/supervisors/metrics/stats/").json()
        assert (ours["task"], ours["totals"]["published"], list(ours["averages"])) == (task, 10, list(averages))
        assert [round(ours["averages"][w]["published"] * s) for w, s in zip(averages, SECONDS, strict=True)] == counted


def test_health(reading: Supervisor, owner: Client) -> None:
    assert owner.get(f"{DRUID}/metrics/health").json() == {"healthy": True}
    Supervisor.objects.filter(pk="metrics").update(detailed_state="UNHEALTHY_TASKS")
    sick = owner.get(f"{DRUID}/metrics/health")
    assert (sick.status_code, sick.json()) == (503, {"healthy": False})


def test_history_keeps_every_version_and_a_tombstone(reading: Supervisor, owner: Client) -> None:
    post(owner, DRUID, kafka_spec("metrics", taskCount=2))
    post(owner, f"{DRUID}/metrics/terminate")
    post(owner, DRUID, kafka_spec("metrics", taskCount=3))
    history = owner.get(f"{DRUID}/metrics/history").json()
    counts = [v["spec"].get("spec", {}).get("ioConfig", {}).get("taskCount") for v in history]
    assert counts == [3, None, 2, 1]
    assert history[0]["spec"]["ioConfig"] == history[0]["spec"]["spec"]["ioConfig"]
    assert history[1]["spec"]["type"] == "NoopSupervisorSpec"
    assert history[1]["spec"]["dataSources"] == ["metrics"]
    assert owner.get(f"{DRUID}/history").json()["metrics"] == history


def test_the_same_spec_again_restarts_nothing_if_asked_so(reading: Supervisor, owner: Client) -> None:
    same = f"{DRUID}?skipRestartIfUnmodified=true"
    assert post(owner, same, kafka_spec("metrics")).json() == {"id": "metrics"}
    assert Supervisor.objects.get(pk="metrics").version == 1
    post(owner, same, kafka_spec("metrics", taskCount=2))
    assert Supervisor.objects.get(pk="metrics").version == 2


def test_an_unmodified_spec_is_no_new_version_and_its_tasks_hand_over(
    reading: Supervisor, owner: Client, clients: dict[str, Client]
) -> None:
    """Druid 33 does so: its history has two versions after three equal POSTs, and each restarts the supervisor."""
    changed, own = kafka_spec("metrics", taskCount=2), "/api/v1/supervisors/"
    post(owner, DRUID, changed)
    task = Task.objects.create(
        id="reads-now",
        kind=STORED_OFFSETS.kind,
        datasource=reading.datasource,
        supervisor_id="metrics",
        spec_version=2,
        spec=reading.versions.get(version=2).spec,
        status=Status.RUNNING,
        created_at=timezone.now(),
        launched_at=timezone.now(),
    )
    answers = [post(owner, DRUID, changed).json(), post(clients["owner"], own, changed).json()["version"]]
    answers.append(post(owner, DRUID, owner.get(f"{DRUID}/metrics").json()).json())
    assert answers == [{"id": "metrics"}, 2, {"id": "metrics"}]
    supervisor = Supervisor.objects.get(pk="metrics")
    assert (supervisor.version, supervisor.versions.count(), supervisor.state) == (2, 2, "PENDING")
    [seen] = snapshots_of(supervisor, [task])
    assert seen.to_hand_off
    told = AuditEntry.objects.filter(target_id="metrics", action="update").order_by("-id").first()
    assert told is not None and told.detail == {"version": 2, "unmodified": True}


def test_the_same_over_our_own_interface(reading: Supervisor, clients: dict[str, Client]) -> None:
    own = "/api/v1/supervisors/"
    same = f"{own}?skipRestartIfUnmodified=true"
    answer = post(clients["owner"], same, kafka_spec("metrics"))
    assert (answer.status_code, answer.json()["version"]) == (200, 1)
    assert post(clients["owner"], same, kafka_spec("metrics", taskCount=2)).json()["version"] == 2
    post(clients["operator"], f"{own}metrics/suspend/")
    asked = [("operator", "suspend", ["flights"]), ("outsider", "resume", []), ("operator", "resume", BOTH)]
    for who, action, changed in [*asked, ("operator", "terminate", []), ("owner", "terminate", BOTH)]:
        assert post(clients[who], f"{own}-/{action}/").json() == {"ids": changed}
    gone = clients["viewer"].get(f"{own}?terminated=true").json()["results"]
    assert [s["id"] for s in gone] == BOTH
    assert clients["viewer"].get(own).json()["results"] == []


def test_all_of_them_at_once(reading: Supervisor, clients: dict[str, Client]) -> None:
    mine = Supervisor.objects.filter(pk__in=["metrics", "flights"])
    for who in ("viewer", "outsider"):
        assert post(clients[who], f"{DRUID}/suspendAll").json() == {"status": "success"}
        assert mine.filter(suspended=True).count() == 0
    for _ in range(2):  # what is so already is passed over
        assert post(clients["operator"], f"{DRUID}/suspendAll").status_code == 200
    assert mine.filter(suspended=True).count() == 2
    post(clients["operator"], f"{DRUID}/resumeAll")
    assert mine.filter(suspended=True).count() == 0
    post(clients["operator"], f"{DRUID}/terminateAll")
    assert mine.filter(terminated_at=None).count() == 2
    post(clients["owner"], f"{DRUID}/terminateAll")
    assert mine.filter(terminated_at=None).count() == 0
