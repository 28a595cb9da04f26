"""When a task that was submitted by hand ends by itself, as the watch sees it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.utils import timezone

from controlplane.connections.kafka import TopicOffsets
from controlplane.publishing.models import IndexerFence
from controlplane.tasks import services, watching
from controlplane.tasks.models import Goal, Indexer, Status, Task
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.support.django_cast import Cast, spec_for
from tests.support.publishes import make_source, start


@pytest.mark.parametrize(
    ("idle", "seconds", "polled", "goal"),
    [
        ({}, 4, 100, Goal.RUN),
        ({}, 6, 100, Goal.FINISH),  # and no heartbeat has seen a record in flight
        ({}, 6, 0, Goal.RUN),
        ({}, 19, 0, Goal.RUN),
        ({}, 21, 0, Goal.FINISH),
        ({"inactiveAfterMillis": 60_000}, 59, 100, Goal.RUN),
        ({"inactiveAfterMillis": 60_000}, 61, 0, Goal.FINISH),
        ({"enabled": False}, 3600, 100, Goal.RUN),
    ],
)
def test_it_waits_longer_for_the_first_record_than_for_another(
    cast: Cast, settings: LazySettings, idle: dict[str, Any], seconds: int, polled: int, goal: Goal
) -> None:
    task = after(cast, idle, seconds, polled=polled)
    assert task.goal == goal


@pytest.mark.parametrize("moment", ["started_at", "last_publish_at"])
def test_it_is_not_idle_while_its_indexers_begin_or_publish(cast: Cast, moment: str) -> None:
    """Records that are gone between two heartbeats are seen by none."""
    assert after(cast, {}, 60, polled=100, **{moment: timezone.now()}).goal == Goal.RUN


def after(cast: Cast, idle: dict[str, Any], seconds: int, **fence: Any) -> Task:
    """What the watch makes of a task whose application has run for so long, and its indexer as ``fence`` says."""
    document = spec_for("idle", idleConfig=idle)
    task = services.submit_task(user=cast.users["owner"], document=document, team_name="alpha")
    began = timezone.now() - timedelta(seconds=seconds)
    Task.objects.filter(pk=task.pk).update(status=Status.RUNNING, started_at=began)
    Indexer.objects.create(task=task, number=0, state="reading")
    start(make_source("idle", group=document["ioConfig"]["groupId"]), task=task.pk)
    IndexerFence.objects.filter(task_id=task.pk).update(**{"started_at": began, **fence})
    task.refresh_from_db()
    empty = TopicOffsets("topic-id-1", {0: 0}, {0: 0}, {0: 0})
    watching.watch_group([watching.ObservedTopic(task, parse_task_spec(task.spec), empty)])
    task.refresh_from_db()
    return task
