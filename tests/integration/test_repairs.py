"""Which holes are old enough to be read again: between settled ranges, and before the first, also under steady load."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.connections.kafka import TopicOffsets
from controlplane.publishing.models import SettledRange
from controlplane.sources.models import Source, SourceEvent
from controlplane.supervisors.repairs import min_hole_age, start_repairs
from controlplane.supervisors.run import run
from controlplane.tasks.heartbeats import end, heartbeat
from controlplane.tasks.models import Task
from controlplane.tasks.watching import ObservedTopic, store_observations
from ingestion.specs.messages.protocol import EndRequest, HeartbeatRequest, IndexerStatus
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.integration.test_supervisor_services import side_by_side
from tests.support.django_cast import Cast, settle


@pytest.fixture
def busy(cast: Cast) -> Cast:
    """Its indexers are never idle. Partition 0's log begins at 100; [150, 200) and [220, 300) of it are settled."""
    SettledRange.objects.all().delete()
    settle(cast.keys[0], (150, 200), (220, 300))
    cast.source.keys.filter(pk=cast.keys[0].pk).update(log_start_offset=100, end_offset=900)
    Source.objects.filter(pk=cast.source.pk).update(bounds={"0": [100, 100, 900]})
    cast.task.spec.pop("suspended")  # a supervisor's alone
    cast.task.save()
    cast.task.indexers.update(in_flight=500, last_heartbeat_at=timezone.now())
    return cast


def repaired() -> list[tuple[int, int]]:
    """The ranges of partition 0 that are read again."""
    found = [r for task in Task.objects.filter(pk__in=start_repairs()) for r in task.ranges]
    return sorted((r["start"], r["end"]) for r in found if r["partition"] == 0)


def test_a_hole_before_the_first_settled_offset_is_read_again_while_others_are_busy(busy: Cast) -> None:
    assert repaired() == [(100, 150), (200, 220)]


def test_a_young_hole_may_still_be_delivered(busy: Cast, settings: Any) -> None:
    age = min_hole_age(busy.task) - timedelta(seconds=5)
    SettledRange.objects.update(settled_at=timezone.now() - age)
    assert repaired() == []
    settings.REPAIR_MARGIN -= timedelta(seconds=6)
    assert repaired() == [(100, 150), (200, 220)]


def test_a_reader_that_began_at_the_end_left_nothing_before_it(busy: Cast) -> None:
    busy.task.spec["spec"]["ioConfig"]["useEarliestOffset"] = False
    busy.task.save()
    assert repaired() == [(200, 220)]


def test_what_lies_between_a_bounded_read_and_the_groups_beginning_is_no_hole(busy: Cast) -> None:
    """The group began at 220, and somebody has read [150, 200) apart."""
    busy.task.spec["spec"]["ioConfig"]["useEarliestOffset"] = False
    busy.task.save()
    busy.source.keys.filter(pk=busy.keys[0].pk).update(began_at=220)
    assert repaired() == []


@pytest.mark.parametrize("seen", [{"topic_exists": False}, {"topic_exists": True, "topic_id": "another"}])
def test_holes_of_a_topic_that_is_gone_are_left(busy: Cast, seen: dict[str, Any]) -> None:
    busy.task.observation = {**busy.task.observation, **seen}
    busy.task.save()
    assert repaired() == []
    busy.task.observation |= {"topic_exists": True, "topic_id": busy.source.topic_id}
    busy.task.save()
    assert repaired() == [(100, 150), (200, 220)]
    [made] = Task.objects.filter(kind=Task.Kind.REPAIR)
    assert {r["topic_id"] for r in made.ranges} == {busy.source.topic_id}


@pytest.mark.parametrize(("bounds", "holes"), [({}, []), ({"0": [150, 100, 900]}, [(100, 150)])])
def test_what_retention_removed_since_the_first_look_is_a_hole(
    busy: Cast, bounds: dict[str, list[int]], holes: list[tuple[int, int]]
) -> None:
    busy.source.keys.filter(pk=busy.keys[0].pk).update(log_start_offset=150)
    Source.objects.filter(pk=busy.source.pk).update(bounds=bounds)
    assert repaired() == [*holes, (200, 220)]


def looked(cast: Cast, start: int, end: int) -> Source:
    """The topic's only partition 0 is looked at, with its log between these offsets, while all indexers wait."""
    topic = TopicOffsets(cast.source.topic_id, {0: start}, {0: end}, {0: end}, observed_at=timezone.now())
    store_observations([ObservedTopic(cast.task, parse_task_spec(cast.task.spec), topic)])
    cast.source.refresh_from_db()
    return cast.source


def an_hour_passes(cast: Cast) -> None:
    """Since the last look."""
    long_ago = (timezone.now() - timedelta(hours=1)).isoformat()
    for seen in cast.task.observation["unsettled_seen"].values():
        seen[1] = long_ago
    cast.task.save()


@pytest.fixture
def idle(busy: Cast) -> Cast:
    """Nothing has come for an hour."""
    long_ago = timezone.now() - timedelta(hours=1)
    Task.objects.filter(pk=busy.task.pk).update(started_at=long_ago, last_activity_at=long_ago)
    busy.task.refresh_from_db()
    busy.task.indexers.update(in_flight=0, state="reading", last_heartbeat_at=timezone.now())
    Source.objects.update(complete_until=None)
    return busy


def test_what_retention_takes_of_the_unread_end_is_looked_into_while_nothing_comes(idle: Cast) -> None:
    """A share group is given nothing of it, and hears nothing: only where the log begins tells."""
    looked(idle, 100, 900)
    an_hour_passes(idle)
    source = looked(idle, 950, 950)
    assert idle.task.observation["lag"] == 50 + 20 + 650
    assert source.complete_until is None
    assert repaired() == [(100, 150), (200, 220), (300, 900)]


def test_what_has_just_come_to_a_reader_that_was_idle_for_long_is_no_hole(idle: Cast) -> None:
    """Its indexers hold it already, which their next heartbeat says."""
    settle(idle.keys[0], (100, 150), (200, 220))
    looked(idle, 100, 300)
    looked(idle, 100, 900)
    assert idle.task.observation["unsettled"]["0"] == [[300, 900]]
    assert repaired() == []
    an_hour_passes(idle)
    looked(idle, 100, 1000)
    assert repaired() == [(300, 900)], "what came later is younger"


def test_what_retention_takes_before_anything_was_read_is_looked_into(idle: Cast) -> None:
    SettledRange.objects.all().delete()
    looked(idle, 0, 900)
    an_hour_passes(idle)
    source = looked(idle, 900, 900)
    assert (idle.task.observation["lag"], source.complete_until) == (900, None)
    assert repaired() == [(0, 900)]


def test_what_retention_took_is_looked_into_while_others_never_rest(busy: Cast) -> None:
    """Once its records can no longer be in anybody's hands."""
    looked(busy, 100, 900)
    looked(busy, 500, 900)
    assert repaired() == [(100, 150), (200, 220)]
    Task.objects.filter(kind=Task.Kind.REPAIR).delete()
    [taken] = busy.task.observation["taken"].values()
    taken[1] = (timezone.now() - min_hole_age(busy.task) - timedelta(seconds=1)).isoformat()
    busy.task.observation["topic_id"] = "of a topic that was made again"
    looked(busy, 600, 900)
    assert busy.task.observation["taken"]["0"][0] == 600, "what was seen of another topic is nothing"
    busy.task.observation["taken"] = {"0": taken}
    looked(busy, 700, 900)
    assert busy.task.observation["taken"] == {"0": taken}, "what an earlier look found stays"
    assert repaired() == [(100, 150), (200, 220), (300, 500)]


def failed_one(ago: timedelta) -> None:
    """The repair that is at work fails, and that was so long ago."""
    ended = timezone.now() - ago
    repair = Task.objects.active().get(kind=Task.Kind.REPAIR)
    end(repair, EndRequest(error="records can't be decoded in time"))
    Task.objects.filter(pk=repair.pk).update(ended_at=ended)


def test_repairs_that_fail_wait_longer_each_time_raise_an_alarm_and_are_given_up(busy: Cast, settings: Any) -> None:
    """Row 31 of the failure matrix."""
    settings.REPAIR_MOST_FAILURES = 4
    alarms = SourceEvent.objects.filter(kind=SourceEvent.Kind.FAILING, alarm=True)
    for wait, raised in ((30, 0), (60, 0), (120, 1)):
        assert repaired() == [(100, 150), (200, 220)]
        failed_one(timedelta(seconds=wait - 5))
        assert repaired() == [], f"{wait} s are not over"
        assert alarms.count() == raised
        Task.objects.filter(kind=Task.Kind.REPAIR).update(ended_at=timezone.now() - timedelta(seconds=wait + 5))
    assert "3 repairs of topic flights-topic have failed." in alarms.get().detail
    assert alarms.get().detail.endswith("The reason: records can't be decoded in time")
    assert repaired() == [(100, 150), (200, 220)]
    failed_one(timedelta(hours=23))
    for _ in range(2):
        assert repaired() == []
    assert alarms.count() == 2 and "tries again after a day" in alarms.order_by("-id")[0].detail
    assert [e["message"] for e in run_errors(busy)] == ["records can't be decoded in time"] * 4


def run_errors(cast: Cast) -> list[dict[str, Any]]:
    """Failed tasks that the supervisor shows."""
    run(cast.supervisor.pk)
    cast.supervisor.refresh_from_db()
    return [e for e in cast.supervisor.recent_errors if e["class"] == "TaskFailed"]


def test_a_task_that_begins_after_the_failures_is_a_new_chance(busy: Cast) -> None:
    assert repaired() == [(100, 150), (200, 220)]
    failed_one(timedelta(seconds=1))
    assert repaired() == []
    Task.objects.filter(pk=busy.task.pk).update(created_at=timezone.now())
    assert repaired() == [(100, 150), (200, 220)]


def test_an_indexer_that_fails_over_and_over_raises_one_alarm(busy: Cast) -> None:
    """Row 31 of the failure matrix."""
    Task.objects.filter(pk=busy.task.pk).update(last_heartbeat_at=timezone.now())

    def beat(failures: int, state: Any = "restarting") -> None:
        failing = IndexerStatus(number=1, epoch=failures, state=state, failures=failures, message="no \0 room")
        heartbeat(busy.task, HeartbeatRequest(indexers=[failing], slots=1))

    for failures, state in ((1, "restarting"), (2, "restarting"), (3, "reading"), (3, "restarting"), (9, "restarting")):
        beat(failures, state)
    [event] = SourceEvent.objects.filter(kind=SourceEvent.Kind.FAILING)
    assert event.alarm and event.task_id == busy.task.pk
    assert event.detail == (
        "Indexer 1 has failed 3 times in a row and restarts. After 15 failures in a row, the task fails. "
        "The reason: no \u2400 room"
    )
    run(busy.supervisor.pk)
    busy.supervisor.refresh_from_db()
    assert [e["message"] for e in busy.supervisor.recent_errors if e["class"] == "IndexerFailing"] == [event.detail]


@pytest.mark.django_db(transaction=True)
def test_two_beats_start_one_repair(busy: Cast) -> None:
    assert len([task for tasks in side_by_side(start_repairs) for task in tasks]) == 1
    assert Task.objects.filter(kind=Task.Kind.REPAIR).count() == 1
