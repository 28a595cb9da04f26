"""Which holes are old enough to be read again: between settled ranges, and before the first, also under steady load."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.segments.models import SettledRange
from controlplane.supervisors.repairs import patience, start_repairs
from controlplane.tasks.models import Task
from tests.support.django_cast import Cast, settle


@pytest.fixture
def busy(cast: Cast) -> Cast:
    """Its indexers are never idle. Partition 0's log begins at 100; [150, 200) and [220, 300) of it are settled."""
    SettledRange.objects.all().delete()
    settle(cast.keys[0], (150, 200), (220, 300))
    cast.source.keys.filter(pk=cast.keys[0].pk).update(log_start_offset=100, end_offset=900)
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
    age = patience(busy.task) - timedelta(seconds=5)
    SettledRange.objects.update(settled_at=timezone.now() - age)
    assert repaired() == []
    settings.REPAIR_MARGIN -= timedelta(seconds=6)
    assert repaired() == [(100, 150), (200, 220)]


def test_a_reader_that_began_at_the_end_left_nothing_before_it(busy: Cast) -> None:
    busy.task.spec["spec"]["ioConfig"]["useEarliestOffset"] = False
    busy.task.save()
    assert repaired() == [(200, 220)]


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


def test_what_retention_removed_is_no_hole_before_the_first(busy: Cast) -> None:
    busy.source.keys.filter(pk=busy.keys[0].pk).update(log_start_offset=150)
    assert repaired() == [(200, 220)]
