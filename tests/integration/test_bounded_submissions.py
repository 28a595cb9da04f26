"""Bounded reads as they are submitted, on a real broker: Druid's form, what is refused, and what is shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from django.test import Client
from django.utils import timezone

from controlplane.sources.models import Source
from controlplane.tasks.heartbeats import end
from controlplane.tasks.models import Goal, Indexer, Status, Task
from controlplane.tasks.watching import watch
from controlplane.teams.models import AuditEntry
from ingestion.specs.messages.protocol import EndRequest
from ingestion.specs.source_traits import STORED_OFFSETS
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as, settle
from tests.support.html import parsed
from tests.support.records import numbered

pytestmark = pytest.mark.usefixtures("checked_here")
DRUID = "/druid/indexer/v1/task"
WRITTEN = 40  # to each of two partitions


@pytest.fixture
def topic(broker: Broker) -> str:
    topic = broker.topic(partitions=2)
    for partition in range(2):
        broker.produce(topic, numbered(0, WRITTEN), partition=partition)
    return topic


def druid_bounds(topic: str, side: str, offsets: dict[str, int]) -> dict[str, Any]:
    return {"type": side, "stream": topic, "partitionSequenceNumberMap": offsets}


def of_druid(broker: Broker, topic: str, starts: dict[str, int], ends: dict[str, int]) -> dict[str, Any]:
    """A spec of Druid's own task."""
    start, last = druid_bounds(topic, "start", starts), druid_bounds(topic, "end", ends)
    names: dict[str, Any] = {"taskGroupId": 0, "baseSequenceName": "index_kafka_x", "useTransaction": True}
    spec = broker.kafka_spec(topic, "flights", **names, startSequenceNumbers=start, endSequenceNumbers=last)
    del spec["ioConfig"]["startDelay"]
    return {**spec, "type": "index_kafka"}


def bounded(broker: Broker, topic: str, **config: Any) -> dict[str, Any]:
    return {**broker.kafka_spec(topic, "flights", boundedStreamConfig=config), "type": "index_kafka"}


def submit(client: Client, spec: dict[str, Any]) -> Task:
    answer = client.post(DRUID, spec, content_type="application/json")
    assert answer.status_code == 200, answer.content
    return Task.objects.get(pk=answer.json()["task"])


def refused(client: Client, spec: dict[str, Any], status: int = 400) -> str:
    answer = client.post("/api/v1/tasks/", spec, content_type="application/json")
    assert answer.status_code == status, answer.content
    assert not Task.objects.filter(kind=Task.Kind.BOUNDED).exists()
    return answer.content.decode()


def ranges(task: Task) -> list[tuple[int, int, int]]:
    return [(r["partition"], r["start"], r["end"]) for r in task.ranges]


def test_druids_task_reads_what_it_names(cast: Cast, owner: Client, broker: Broker, topic: str) -> None:
    task = submit(owner, of_druid(broker, topic, {"0": 5, "1": 0}, {"0": 15, "1": WRITTEN}))
    assert (task.kind, ranges(task)) == (Task.Kind.BOUNDED, [(0, 5, 15), (1, 0, WRITTEN)])
    shown = owner.get(f"{DRUID}/{task.pk}").json()["payload"]["spec"]["ioConfig"]["boundedStreamConfig"]
    assert shown["startSequenceNumbers"] == {"0": 5, "1": 0}
    assert shown["topicId"] == task.ranges[0]["topic_id"]
    assert owner.get(f"{DRUID}/{task.pk}/status").json()["status"]["type"] == "index_kafka"
    entry = AuditEntry.objects.filter(target="task", target_id=task.pk).get()
    assert entry.detail["ranges"] == task.ranges


def test_druids_task_may_name_times(cast: Cast, owner: Client, broker: Broker, topic: str) -> None:
    """Null, as Druid's answers have it, is no time; outside of a bounded read the fields have no meaning."""
    spec = of_druid(broker, topic, {"0": 0}, {"0": 9})
    times: dict[str, Any] = {"minimumMessageTime": "2025-05-01T00:00Z", "maximumMessageTime": None}
    spec["ioConfig"] |= times
    bounds = submit(owner, spec).io_config.boundedStreamConfig
    assert bounds is not None
    assert (bounds.minimumMessageTime, bounds.maximumMessageTime) == (datetime(2025, 5, 1, tzinfo=UTC), None)
    spec["ioConfig"]["maximumMessageTime"] = "2025-04-30"
    answer = owner.post("/api/v1/tasks/", spec, content_type="application/json")
    assert (answer.status_code, "no record would be taken" in answer.content.decode()) == (400, True)
    reads_on = {**broker.kafka_spec(topic, "flights", **times), "type": "index_kafka"}
    answer = owner.post("/api/v1/tasks/", reads_on, content_type="application/json")
    assert (answer.status_code, "ioConfig.minimumMessageTime" in answer.content.decode()) == (400, True)


def test_a_share_groups_offsets_can_be_read_too(cast: Cast, owner: Client, broker: Broker, topic: str) -> None:
    config = {"startSequenceNumbers": {"1": 3}, "endSequenceNumbers": {"1": 9}}
    task = submit(owner, broker.spec(topic, "flights", boundedStreamConfig=config))
    assert (task.kind, ranges(task), task.indexers_wanted) == (Task.Kind.BOUNDED, [(1, 3, 9)], 1)


def test_positions_become_offsets(cast: Cast, owner: Client, broker: Broker, topic: str) -> None:
    """And stay those, whatever comes into the topic."""
    spec = bounded(broker, topic, startPosition="PT1H", endPosition="latest")
    task = submit(owner, spec)
    assert ranges(task) == [(0, 0, WRITTEN), (1, 0, WRITTEN)]
    broker.produce(topic, numbered(0, 5), partition=0)
    again = submit(owner, {**task.spec, "spec": {**task.spec["spec"]}})
    assert ranges(again) == ranges(task)
    assert ranges(submit(owner, spec)) == [(0, 0, WRITTEN + 5), (1, 0, WRITTEN)]


def test_one_side_may_be_a_position(cast: Cast, owner: Client, broker: Broker, topic: str) -> None:
    """The partitions are those that the other side names."""
    task = submit(owner, bounded(broker, topic, startSequenceNumbers={"1": 30}, endPosition="latest"))
    assert ranges(task) == [(1, 30, WRITTEN)]


@pytest.mark.parametrize(
    ("starts", "ends", "place", "message"),
    [
        ({"0": 6}, {"0": 5}, "boundedStreamConfig", "the start 6 lies behind the end 5"),
        ({"7": 0}, {"7": 5}, "boundedStreamConfig.startSequenceNumbers.7", "has no such partition; it has 2"),
        ({"0": 0}, {"0": 41}, "boundedStreamConfig.endSequenceNumbers.0", "ends at 40 now"),
    ],
)
def test_faults_are_named(
    cast: Cast,
    owner: Client,
    broker: Broker,
    topic: str,
    starts: dict[str, int],
    ends: dict[str, int],
    place: str,
    message: str,
) -> None:
    answer = refused(owner, bounded(broker, topic, startSequenceNumbers=starts, endSequenceNumbers=ends))
    assert message in answer
    assert place in answer


def test_an_unknown_topic_is_refused(cast: Cast, owner: Client, broker: Broker) -> None:
    spec = bounded(broker, "nowhere", startSequenceNumbers={"0": 0}, endSequenceNumbers={"0": 1})
    assert "There is no topic" in refused(owner, spec)


def test_who_may_not_submit_it_learns_nothing_of_the_topic(cast: Cast, viewer: Client, broker: Broker) -> None:
    spec = bounded(broker, "nowhere", startSequenceNumbers={"0": 0}, endSequenceNumbers={"0": 1})
    assert "There is no topic" not in refused(viewer, spec, status=403)


def test_a_topic_that_was_made_again_is_refused(cast: Cast, owner: Client, broker: Broker, topic: str) -> None:
    bounds = {"startSequenceNumbers": {"0": 0}, "endSequenceNumbers": {"0": 1}}
    answer = refused(owner, bounded(broker, topic, **bounds, topicId="of-the-old-one"))
    assert "was deleted and recreated" in answer


def test_what_retention_has_removed_is_refused_unless_it_is_settled(
    cast: Cast, owner: Client, broker: Broker, topic: str
) -> None:
    """So the spec of a stopped read can be submitted again."""
    spec = bounded(broker, topic, startSequenceNumbers={"0": 5}, endSequenceNumbers={"0": 30})
    for future in broker.admin.delete_records([TopicPartition(topic, 0, 20)]).values():
        future.result(30)
    assert "retention has removed the offsets before 20" in refused(owner, spec)
    known = submit(owner, bounded(broker, topic, startSequenceNumbers={"0": 20}, endSequenceNumbers={"0": 30}))
    source = source_of(known)
    settle(source.keys.create(partition=0), (5, 20))
    assert ranges(submit(owner, spec)) == [(0, 5, 30)]


def source_of(task: Task) -> Source:
    return Source.objects.create(
        kind=STORED_OFFSETS.kind,
        datasource=task.datasource,
        cluster_id="cluster",
        group=task.datasource.name,
        topic=task.io_config.topic,
        topic_id=task.ranges[0]["topic_id"],
    )


def test_an_empty_range_is_done_at_once(cast: Cast, owner: Client, broker: Broker, topic: str) -> None:
    task = submit(owner, bounded(broker, topic, startSequenceNumbers={"0": 5}, endSequenceNumbers={"0": 5}))
    assert (task.status, task.launched_at) == (Status.SUCCESS, None)
    assert progress(owner, task) == {"total": 0, "done": 0, "percent": 100, "seconds_left": 0}


def progress(client: Client, task: Task) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/v1/tasks/{task.pk}/").json()["progress"]
    return found


@pytest.fixture
def running(cast: Cast, owner: Client, broker: Broker, topic: str) -> Task:
    """Five of twenty offsets are settled."""
    task = submit(owner, bounded(broker, topic, startSequenceNumbers={"0": 10}, endSequenceNumbers={"0": 30}))
    Task.objects.exclude(pk=task.pk).update(status=Status.SUCCESS)  # the cast's, which Kafka is not asked for
    now = timezone.now()
    Task.objects.filter(pk=task.pk).update(
        status=Status.RUNNING, launched_at=now, started_at=now, last_heartbeat_at=now
    )
    Indexer.objects.create(task=task, number=0, epoch=1, state="reading")
    settle(source_of(task).keys.create(partition=0), (5, 15))
    task.refresh_from_db()
    return task


def test_its_progress_is_shown(running: Task, owner: Client, cast: Cast) -> None:
    """By what is settled of its offsets, and of nothing else; the time left by the rate of what was seen."""
    assert progress(owner, running) == {"total": 20, "done": 5, "percent": 25, "seconds_left": None}
    minute_ago = timezone.now() - timedelta(minutes=1)
    samples = [[minute_ago.isoformat(), 0], [timezone.now().isoformat(), 5]]
    Task.objects.filter(pk=running.pk).update(observation={"samples": samples})
    assert progress(owner, running)["seconds_left"] == pytest.approx(180, abs=2)
    report = owner.get(f"{DRUID}/{running.pk}/reports").json()["headgate"]["payload"]["progress"]
    assert report["done"] == 5
    bar = parsed(browsing_as(cast, "viewer").get(f"/tasks/{running.pk}/")).one("div", role="progressbar")
    assert bar.attributes["aria-valuetext"] == "5 of 20 offsets"


def test_the_watch_keeps_what_it_sees(running: Task) -> None:
    watch(lambda task: None)
    running.refresh_from_db()
    seen = running.observation
    assert (seen["settled"], seen["lag"], seen["topic_exists"], seen["held_back"]) == (5, 15, True, {})
    assert not running.replay_source_id
    assert Source.objects.get(topic=running.io_config.topic).looked_at is None, "its lag is not the topic's"


def test_it_is_not_ended_for_being_idle(running: Task) -> None:
    watch(lambda task: None)
    running.refresh_from_db()
    assert running.goal == Goal.RUN


def test_an_end_before_all_was_read_is_a_failure(running: Task, owner: Client) -> None:
    """Whoever stopped it is told what is left, and may submit the same spec again."""
    owner.post(f"{DRUID}/{running.pk}/shutdown")
    running.refresh_from_db()
    end(running, EndRequest())
    running.refresh_from_db()
    assert running.status == Status.FAILED
    assert "It was stopped before it had read all: 15 offsets are left." in running.error


def test_an_end_after_all_was_read_is_a_success(running: Task) -> None:
    settle(Source.objects.get(topic=running.io_config.topic).keys.get(), (15, 30))
    end(running, EndRequest())
    running.refresh_from_db()
    assert (running.status, running.error) == (Status.SUCCESS, "")


def test_a_group_at_latest_must_have_begun(cast: Cast, owner: Client, broker: Broker, topic: str) -> None:
    """Else nobody could tell later which offsets it left out."""
    bounds = {"startSequenceNumbers": {"0": 0}, "endSequenceNumbers": {"0": 5}}
    spec = broker.spec(topic, "flights", useEarliestOffset=False, boundedStreamConfig=bounds)
    assert "has not read partition 0 yet" in refused(owner, spec)
