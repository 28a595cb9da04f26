"""What Spark's master no longer lists, for long enough, is ended: a task, and the application that merges."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone

from controlplane.spark.cluster_state import Application, Cluster
from controlplane.tasks import residents, unlisted_applications
from controlplane.tasks.models import Resident, Status, Task
from controlplane.tasks.watching import _fail_unlisted
from tests.support.django_cast import Cast


@pytest.fixture
def pass_time(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call it to let seconds go by, with what the master lists then."""
    settings.SPARK_MASTER = "spark://master:7077"
    now = [1_000.0]
    monkeypatch.setattr(unlisted_applications.time, "time", lambda: now[0])

    def passed(seconds: float, *listed: str) -> None:
        now[0] += seconds
        applications = [Application(name, 1, False, 0) for name in listed]
        cache.set("spark.cluster", (Cluster(cores=4, used=0, applications=applications),), timeout=600)

    yield passed
    cache.delete_many(["spark.cluster", "tasks.unlisted.tasks", "tasks.unlisted.residents"])


def watched(task: Task) -> Task:
    _fail_unlisted()
    task.refresh_from_db()
    return task


def test_a_task_that_is_missing_for_long_enough_has_failed(cast: Cast, pass_time: Any) -> None:
    task = cast.task
    now = timezone.now()
    Task.objects.filter(pk=task.pk).update(status=Status.RUNNING, launched_at=now, last_heartbeat_at=now)
    pass_time(0)
    assert watched(task).status == Status.RUNNING
    pass_time(100)  # it was never listed: another cluster's master answers
    assert watched(task).status == Status.RUNNING
    pass_time(0, task.pk)
    assert watched(task).status == Status.RUNNING
    pass_time(1)
    assert watched(task).status == Status.RUNNING
    pass_time(29, task.pk)  # a master that has recovered lists it again
    assert watched(task).status == Status.RUNNING
    pass_time(10)
    assert watched(task).status == Status.RUNNING
    pass_time(31)
    assert watched(task).status == Status.FAILED
    assert task.error.startswith("Spark's master no longer lists its application")


def test_a_master_that_does_not_answer_says_nothing(cast: Cast, pass_time: Any) -> None:
    names = [cast.task.pk]
    for listed, seconds in ((names, 0), ([], 1)):
        pass_time(seconds, *listed)
        assert unlisted_applications.unlisted(names, "tasks") == set()
    pass_time(40)
    cache.set("spark.cluster", (None,), timeout=600)
    assert unlisted_applications.unlisted(names, "tasks") == set()
    for seconds, gone in ((0, set()), (29, set()), (2, set(names))):
        pass_time(seconds)
        assert unlisted_applications.unlisted(names, "tasks") == gone


@pytest.mark.parametrize("kind", [Task.Kind.REPAIR, Task.Kind.REPLAY, Task.Kind.KILL, Task.Kind.COMPACT])
def test_what_has_no_application_is_left_alone(cast: Cast, pass_time: Any, kind: str) -> None:
    Task.objects.filter(pk=cast.task.pk).update(status=Status.RUNNING, kind=kind, launched_at=timezone.now())
    for seconds, listed in ((0, [cast.task.pk]), (1, []), (60, [])):
        pass_time(seconds, *listed)
        assert watched(cast.task).status == Status.RUNNING


def test_so_has_the_application_that_merges(db: None, pass_time: Any) -> None:
    """Row 38 of the failure matrix, of the application that all datasources share."""
    now = timezone.now()
    Resident.objects.create(pk="compaction_1", token_hash="", slots=1, launched_at=now, last_heartbeat_at=now)
    for seconds, listed, runs in ((0, ["compaction_1"], True), (1, [], True), (29, [], True), (2, [], False)):
        pass_time(seconds, *listed)
        residents.end_lost()
        assert (residents.running() is not None) == runs
    assert Resident.objects.get().error == unlisted_applications.REASON
