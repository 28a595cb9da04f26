"""Supervisors whose spec has a ``topicPattern``: each topic that matches has one of its own, which follows it."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from controlplane.common.errors import Conflict
from controlplane.connections import kafka
from controlplane.publishing.models import ProgressKey
from controlplane.sources.models import Source
from controlplane.supervisors import offset_reset, position_reset, services
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.run import iterate
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Goal, Status, Task
from controlplane.tasks.sources import consumer_group
from ingestion.specs.kafka.positions import Position
from tests.integration.test_supervisor_iterations import began_to_read, reads, states
from tests.support.broker import Broker
from tests.support.django_cast import Cast, reasons_of
from tests.support.topic_patterns import V1, rounds, submitted, tasks_of, topics_of
from tests.support.waiting import wait_for

DRUID = "/druid/indexer/v1/supervisor"


@pytest.mark.parametrize("kind", ["kafka", "share_group"])
def test_each_topic_that_matches_is_read_by_a_supervisor_of_its_own(
    cast: Cast, broker: Broker, stem: str, kind: str
) -> None:
    for name in (f"{stem}-a", f"{stem}-b", f"old-{stem}-a"):
        broker.make_topic(name, partitions=2)
    supervisor = submitted(cast, broker, stem, kind)
    iterate()
    children = topics_of(supervisor)
    assert [c.pk for c in children.values()] == [f"{stem}:{stem}-a", f"{stem}:{stem}-b"]
    assert {c.datasource_id for c in children.values()} == {supervisor.datasource_id}
    iterate()
    rounds()
    for topic, child in children.items():
        [task] = tasks_of(child)
        assert task.spec["spec"]["ioConfig"]["topic"] == topic
        assert "topicPattern" not in task.spec["spec"]["ioConfig"]
        assert states(child) == ("RUNNING", "CREATING_TASKS")
        reads(task)
    rounds()
    assert (states(supervisor), tasks_of(supervisor)) == (("RUNNING", "RUNNING"), [])


def test_a_topic_that_comes_later_is_read_from_its_beginning(cast: Cast, broker: Broker, stem: str) -> None:
    """What was there is read by useEarliestOffset."""
    broker.produce(broker.make_topic(f"{stem}-a", partitions=1), [b"{}"] * 5)
    supervisor = submitted(cast, broker, stem, useEarliestOffset=False)
    iterate()
    iterate()
    broker.produce(broker.make_topic(f"{stem}-b", partitions=1), [b"{}"] * 3)
    iterate()
    iterate()
    assert set(topics_of(supervisor)) == {f"{stem}-a", f"{stem}-b"}
    stored = {
        s.topic: list(s.keys.values_list("next_offset", flat=True)) for s in Source.objects.all() if stem in s.topic
    }
    assert stored == {f"{stem}-a": [5], f"{stem}-b": [0]}


def test_what_is_done_to_it_is_done_to_all_of_its_topics(cast: Cast, broker: Broker, stem: str) -> None:
    broker.make_topic(f"{stem}-a", partitions=1)
    owner, supervisor = cast.users["owner"], submitted(cast, broker, stem)
    iterate()
    iterate()
    [child] = topics_of(supervisor).values()
    [task] = tasks_of(child)
    reads(task)
    services.scale(user=owner, supervisor=supervisor, task_count=2)
    rounds()
    task.refresh_from_db()
    child.refresh_from_db()
    assert (child.version, child.io_config.taskCount) == (2, 2)
    services.suspend(user=owner, supervisor=supervisor)
    rounds()
    task.refresh_from_db()
    assert (states(supervisor), task.goal) == (("STOPPING", "STOPPING"), Goal.FINISH)
    end_task(task)
    rounds()
    assert (states(supervisor), states(child)) == (("SUSPENDED", "SUSPENDED"), ("SUSPENDED", "SUSPENDED"))
    before = len(tasks_of(child))
    services.resume(user=owner, supervisor=supervisor)
    iterate()
    iterate()
    rounds()
    child.refresh_from_db()
    assert (child.suspended, len(tasks_of(child))) == (False, before + 1)
    offset_reset.hand_off(user=owner, supervisor=supervisor)
    child.refresh_from_db()
    assert child.handoff_asked_at is not None
    services.terminate(user=owner, supervisor=supervisor)
    for task in tasks_of(child):
        Task.objects.filter(pk=task.pk).update(status=Status.SUCCESS, ended_at=timezone.now())
    rounds()
    assert (states(supervisor), states(child)) == (("STOPPING", "TERMINATED"), ("STOPPING", "TERMINATED"))
    assert child.terminations[-1]["by"] == owner.username


@pytest.mark.parametrize("most", [None, 2, 1])
def test_no_more_topics_change_tasks_at_a_time_than_stop_task_count_says(
    cast: Cast, broker: Broker, stem: str, most: int | None
) -> None:
    """Those whose tasks have read for long enough; a handoff that is asked for waits for nobody."""
    for last in "abc":
        broker.make_topic(f"{stem}-{last}", partitions=1)
    supervisor = submitted(cast, broker, stem, taskDuration="PT1H", stopTaskCount=most)
    iterate()
    iterate()
    children = list(topics_of(supervisor).values())
    for child in children:
        [task] = tasks_of(child)
        reads(task)
        began_to_read(task, timezone.now() - timedelta(minutes=61))

    def changing() -> list[Supervisor]:
        rounds()
        return [c for c in children if len(Task.objects.active().filter(supervisor_id=c.pk)) == 2]

    assert len(changing()) == (most or 3)
    waiting = [c for c in children if c not in changing()]
    for child in changing():
        newer, older = sorted(tasks_of(child), key=lambda t: t.created_at, reverse=True)
        reads(newer)
        began_to_read(newer, timezone.now())
        end_task(older)
    assert changing() == waiting[:most]
    for child in waiting[most:]:
        offset_reset.hand_off(user=cast.users["operator"], supervisor=child)
    assert changing() == waiting


def test_a_new_spec_is_taken_up_by_its_topics(cast: Cast, broker: Broker, stem: str) -> None:
    """Those that it does not match any more are read no longer; an earlier version brings them back."""
    for last in "ab":
        broker.make_topic(f"{stem}-{last}", partitions=1)
    owner, supervisor = cast.users["owner"], submitted(cast, broker, stem)
    iterate()
    submitted(cast, broker, stem, topicPattern=f"{stem}-a", taskDuration="PT2H")
    iterate()
    rounds()
    a, b = topics_of(supervisor).values()
    assert (a.version, a.follows, str(a.io_config.taskDuration)) == (2, 2, "2:00:00")
    assert (a.terminated_at, b.terminated_at is not None) == (None, True)
    supervisor.refresh_from_db()
    services.roll_back(user=owner, supervisor=supervisor, version=1)
    iterate()
    a, b = topics_of(supervisor).values()
    assert (a.version, b.terminated_at, b.follows) == (3, None, 3)


@pytest.mark.parametrize("assignment", ["offset_range", "consumer_group"])
def test_a_spec_that_names_its_topic_by_a_pattern_goes_on_where_it_was(
    cast: Cast, broker: Broker, stem: str, assignment: str
) -> None:
    """And back: progress is kept under one name. Nobody reads before what read has ended."""
    topic = broker.make_topic(f"{stem}-a", partitions=1)
    broker.produce(topic, [b"{}"] * 5)
    at_end: dict[str, Any] = {"useEarliestOffset": False, "assignment": assignment}
    supervisor = submitted(cast, broker, stem, topic=topic, **at_end)
    iterate()
    source = Source.objects.get(topic=topic)
    [task] = tasks_of(supervisor)
    reads(task)
    submitted(cast, broker, stem, **at_end)
    iterate()
    task.refresh_from_db()
    assert (topics_of(supervisor), task.goal) == ({}, Goal.FINISH)
    end_task(task)
    iterate()
    iterate()
    child = topics_of(supervisor)[topic]
    [task] = tasks_of(child)
    reads(task)
    assert Source.objects.get(topic=topic) == source
    assert consumer_group(task) == (child.pk if assignment == "consumer_group" else "")
    submitted(cast, broker, stem, topic=topic, **at_end)
    iterate()
    assert len(tasks_of(supervisor)) == 1
    rounds()
    end_task(task)
    rounds()
    assert len(tasks_of(supervisor)) == 2
    assert Source.objects.get(topic=topic) == source


def test_too_many_topics_start_nothing(cast: Cast, broker: Broker, stem: str, settings: Settings) -> None:
    settings.TOPICS_PER_SUPERVISOR = 1
    broker.make_topic(f"{stem}-a", partitions=1)
    supervisor = submitted(cast, broker, stem)
    iterate()
    broker.make_topic(f"{stem}-b", partitions=1)
    iterate()
    assert set(topics_of(supervisor)) == {f"{stem}-a"}
    assert states(supervisor) == ("UNHEALTHY_SUPERVISOR", "TOO_MANY_TOPICS")
    supervisor.refresh_from_db()
    assert [r.code for r in reasons_of(supervisor)] == ["too_many_topics"]
    settings.TOPICS_PER_SUPERVISOR = 2
    iterate()
    assert set(topics_of(supervisor)) == {f"{stem}-a", f"{stem}-b"}


def test_no_topic_yet(cast: Cast, clients: dict[str, Client], broker: Broker, stem: str) -> None:
    supervisor = submitted(cast, broker, stem)
    iterate()
    rounds()
    assert states(supervisor) == ("RUNNING", "WAITING_FOR_TOPICS")
    shown = clients["viewer"].get(f"{V1}{stem}/").json()
    assert (shown["health"]["code"], shown["topics"]) == ("waiting_for_topic", [])


def test_one_of_its_topics_is_not_changed_alone(
    cast: Cast, clients: dict[str, Client], broker: Broker, stem: str
) -> None:
    topic = broker.make_topic(f"{stem}-a", partitions=1)
    owner, supervisor = cast.users["owner"], submitted(cast, broker, stem)
    iterate()
    iterate()
    child = topics_of(supervisor)[topic]
    with pytest.raises(Conflict, match=f"for supervisor {stem}"):
        services.scale(user=owner, supervisor=child, task_count=2)
    for action in ("suspend", "resume", "terminate"):
        answer = clients["owner"].post(f"{V1}{child.pk}/{action}/")
        assert (answer.status_code, f"for supervisor {stem}" in answer.json()["detail"]) == (409, True)
    spec = clients["owner"].get(f"{V1}{child.pk}/").json()["spec"]
    answer = clients["owner"].post(V1, spec, content_type="application/json")
    assert (answer.status_code, f"for supervisor {stem}" in answer.json()["detail"]) == (409, True)
    assert Supervisor.objects.filter(datasource=supervisor.datasource_id).count() == 2
    assert services.suspend_all(user=owner) == ["flights", stem]


def test_one_whose_topic_is_gone_may_be_ended_alone_and_comes_back_with_it(
    cast: Cast, broker: Broker, stem: str
) -> None:
    topic = broker.make_topic(f"{stem}-a", partitions=1)
    owner, supervisor = cast.users["owner"], submitted(cast, broker, stem)
    iterate()
    iterate()
    broker.admin.delete_topics([topic])[topic].result(30)
    child = topics_of(supervisor)[topic]

    def gone() -> bool:
        iterate()
        child.refresh_from_db()
        return child.lacks_topic

    wait_for(f"{topic} is gone", gone, 20)
    services.terminate(user=owner, supervisor=child)
    iterate()
    child.refresh_from_db()
    assert child.terminated_at is not None
    broker.make_topic(topic, partitions=1)
    iterate()
    child.refresh_from_db()
    assert child.terminated_at is None


def test_a_reset_to_a_position_asks_for_all_topics_side_by_side(
    cast: Cast, broker: Broker, stem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not answer holds up all others no longer than itself."""
    for last in "ab":
        broker.produce(broker.make_topic(f"{stem}-{last}", partitions=1), [b"{}"] * 4)
    supervisor = submitted(cast, broker, stem, useEarliestOffset=False)
    iterate()
    iterate()
    rounds()
    both, ask = threading.Barrier(2), kafka.topic_offsets

    def together(*asked: Any) -> kafka.TopicOffsets | None:
        both.wait(20)
        return ask(*asked)

    monkeypatch.setattr(kafka, "topic_offsets", together)
    position_reset.reset_to(user=cast.users["owner"], supervisor=supervisor, position=Position("earliest"))
    stored = ProgressKey.objects.filter(source__topic__startswith=stem).values_list("next_offset", flat=True)
    assert list(stored) == [0, 0]
