"""Tasks that delete unused segments, on a real PostgreSQL and a real folder."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.common.errors import InvalidInput, NotAllowed
from controlplane.publishing.selectors.fate import record_fate
from controlplane.retention import celery_tasks
from controlplane.segments import killing, marking
from controlplane.segments.marking import Amount, SegmentSelection
from controlplane.segments.models import KilledSegment, Removal, Segment
from controlplane.sources.models import Source
from controlplane.tasks import kills, lifecycle, services
from controlplane.tasks.models import Goal, Task
from controlplane.tasks.selectors import task_log_tail
from controlplane.teams.models import User
from tests.support.django_cast import Cast, browsing_as
from tests.support.publishes import DAY, make_source, request, segment, send, start
from tests.support.segment_tasks import kill, statuses

HOUR = timedelta(hours=1)


@pytest.fixture
def deep(settings: Any, tmp_path: Path) -> Path:
    settings.DEEP_STORAGE, settings.TASK_DIR = str(tmp_path / "deep"), str(tmp_path / "tasks")
    settings.SNAPSHOT_LEASE = HOUR
    return tmp_path / "deep"


@pytest.fixture
def source(db: None, deep: Path) -> Source:
    return make_source("flights")


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create(username="root", is_superuser=True)


def published(source: Source, deep: Path, days: int) -> list[Segment]:
    """One a day, with a file of 50 bytes each."""
    epoch = start(source)
    for n in range(days):
        send(request(epoch, segments=[segment({0: [(5 * n, 5 * n + 5)]}, DAY + timedelta(days=n))]))
    for one in Segment.objects.filter(datasource=source.datasource):
        path = f"flights/2025-06-01T00-00-00.000Z_2025-06-02T00-00-00.000Z/v/{uuid.uuid4()}.parquet"
        Segment.objects.filter(pk=one.pk).update(path=path)
        (deep / path).parent.mkdir(parents=True, exist_ok=True)
        (deep / path).write_bytes(b"x" * 50)
    return list(Segment.objects.filter(datasource=source.datasource).order_by("interval_start"))


def unused(segments: list[Segment], ago: timedelta) -> None:
    marking.mark_unused(
        segments[0].datasource, SegmentSelection(ids=frozenset(s.pk for s in segments)), by="x", what="y"
    )
    Segment.objects.filter(pk__in=[s.pk for s in segments]).update(unused_at=timezone.now() - ago)


def done(root: User, **changes: Any) -> Task:
    task = services.submit_task(user=root, document=kill(**changes))
    assert kills.run(task.pk)
    assert not kills.run(task.pk)  # delivered twice, done once
    return Task.objects.get(pk=task.pk)


def files(deep: Path) -> int:
    return len(list(deep.rglob("*.parquet")))


def test_what_is_unused_of_the_interval_goes_and_nothing_else(source: Source, deep: Path, root: User) -> None:
    """What is used, leased or outside of the interval stays."""
    segments = published(source, deep, 33)  # of June and July
    unused(segments[:5] + segments[-3:], 2 * HOUR)
    unused(segments[5:7], timedelta(minutes=10))  # somebody may be reading them
    task = done(root, batchSize=2)
    assert (task.status, task.parts, task.parts_done) == ("SUCCESS", 7, 5)
    assert task.message.startswith(
        "5 unused segments were deleted. Headgate deletes the files of 2 more later, when no reader"
    )
    assert (files(deep), KilledSegment.objects.count(), Segment.objects.filter(used=True).count()) == (28, 5, 23)
    assert marking.mark_used(source.datasource, SegmentSelection()) == Amount(3, 15, 150)  # those of July
    assert "7 unused segments to delete" in task_log_tail(task)
    Segment.objects.filter(kill_began_at__isnull=False).update(unused_at=timezone.now() - 2 * HOUR)
    assert celery_tasks.kill() == "2 unused segments (100 bytes) deleted"
    assert done(root).message == "0 unused segments were deleted."


def test_limit_versions_and_time_narrow_it(source: Source, deep: Path, root: User) -> None:
    segments = published(source, deep, 6)
    for n, one in enumerate(segments):
        unused([one], (10 - n) * HOUR)
    assert done(root, limit=2).parts_done == 2
    assert set(KilledSegment.objects.values_list("pk", flat=True)) == {s.pk for s in segments[:2]}
    before = (timezone.now() - 7 * HOUR + timedelta(minutes=1)).isoformat()
    assert done(root, maxUsedStatusLastUpdatedTime=before).parts_done == 2
    assert done(root, versions=["no-such-version"]).parts_done == 0
    assert done(root, versions=[segments[0].version, "another"]).parts_done == 2
    assert files(deep) == 0


def test_it_marks_unused_first_where_it_is_asked_to(source: Source, deep: Path, root: User, settings: Any) -> None:
    settings.SNAPSHOT_LEASE = timedelta(0)
    published(source, deep, 3)
    task = done(root, id="mark-and-kill", markAsUnused=True)
    assert (task.parts_done, files(deep)) == (3, 0)
    assert Removal.objects.get().by == "task mark-and-kill"
    [fate] = record_fate(root, topic="topic", partition=0, offset=2)
    assert fate.explanation.startswith("Stored, then removed by task mark-and-kill at ")


def test_one_that_marks_for_long_is_heard_of(
    source: Source, deep: Path, root: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SNAPSHOT_LEASE = timedelta(0)
    monkeypatch.setattr(marking, "INTERVALS_PER_TRANSACTION", 1)
    published(source, deep, 3)
    task, long_ago, some = (
        services.submit_task(user=root, document=kill(markAsUnused=True, batchSize=1)),
        timezone.now() - HOUR,
        [],
    )
    mark_some = marking._mark_some

    def after_a_while(*given: Any) -> Amount:
        some.append(Task.objects.get(pk=task.pk).last_heartbeat_at)
        Task.objects.filter(pk=task.pk).update(last_heartbeat_at=long_ago)
        return mark_some(*given)

    monkeypatch.setattr(marking, "_mark_some", after_a_while)
    kills.run(task.pk)
    task.refresh_from_db()
    assert (task.status, task.parts_done, files(deep)) == ("SUCCESS", 3, 0)
    assert len(some) > 3
    assert long_ago not in some


def test_one_whose_time_is_over_says_that_there_is_more(
    source: Source, deep: Path, root: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SNAPSHOT_LEASE = timedelta(0)
    published(source, deep, 3)
    monkeypatch.setattr(kills, "LONGEST", timedelta(seconds=-1))
    task = done(root, markAsUnused=True)
    assert (task.status, Segment.objects.filter(used=True).count()) == ("FAILED", 3)
    assert "Submit it again" in task.error
    unused(list(Segment.objects.all()), 2 * HOUR)
    given_up = done(root)
    assert (given_up.status, files(deep)) == ("SUCCESS", 3)
    assert given_up.message.startswith("0 unused segments were deleted. Headgate deletes the files of 3 more later")
    monkeypatch.setattr(kills, "LAST_S", -1.0)
    Segment.objects.update(kill_began_at=None)
    assert "Submit it again" in done(root).error
    assert not Segment.objects.exclude(kill_began_at=None).exists()


def test_a_stopped_task_leaves_the_batches_it_has_not_come_to(
    source: Source, deep: Path, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    unused(published(source, deep, 4), 2 * HOUR)
    task = services.submit_task(user=root, document=kill(batchSize=1))
    one_batch = killing.kill_batch

    def and_stopped(*given: Any) -> bool:
        assert lifecycle.set_goal(task, Goal.STOP)
        return one_batch(*given)

    monkeypatch.setattr(killing, "kill_batch", and_stopped)
    kills.run(task.pk)
    task.refresh_from_db()
    assert (task.status, task.error) == ("FAILED", "Stopped. 1 unused segments were deleted.")
    assert marking.mark_used(source.datasource, SegmentSelection()).segments == 3


def test_what_deep_storage_does_not_delete_fails_it(source: Source, deep: Path, root: User) -> None:
    segments = published(source, deep, 2)
    unused(segments, 2 * HOUR)
    Segment.objects.filter(pk=segments[0].pk).update(path="flights/notes.txt")
    task = done(root)
    assert (task.status, task.parts_done) == ("FAILED", 1)
    assert "is not the path of a segment's file" in task.error and "retries automatically" in task.error
    assert [s.path for s in Segment.objects.all()] == ["flights/notes.txt"]


def test_a_worker_that_died_has_failed_and_the_next_run_ends_it(source: Source, deep: Path, root: User) -> None:
    unused(published(source, deep, 2), 2 * HOUR)
    task = services.submit_task(user=root, document=kill())
    long_ago = timezone.now() - HOUR
    Task.objects.filter(pk=task.pk).update(status="RUNNING", launched_at=long_ago, last_heartbeat_at=long_ago)
    kills.give_up_in_batches(
        task, kills.unused_ids(task, SegmentSelection(), kills.KillTaskSpec.model_validate(task.spec))
    )
    assert lifecycle.fail_lost(long_ago) == [task.pk]
    task.refresh_from_db()
    assert "next deletions remove" in task.error
    assert celery_tasks.kill() == "2 unused segments (100 bytes) deleted"


def test_bad_documents_change_nothing(source: Source, deep: Path, root: User) -> None:
    unused(published(source, deep, 1), 2 * HOUR)
    for changes, where, why in (
        ({"interval": "June"}, "interval", "not an interval"),
        ({"interval": "2025-06-01/2025-06-01"}, "interval", "is empty"),
        ({"interval": None}, "interval", "must not be null"),
        ({"limit": 0}, "limit", "1 or more"),
        ({"limit": 10**30}, "limit", "or less"),
        ({"batchSize": "many"}, "batchSize", "whole number"),
        ({"versions": []}, "versions", "at least 1"),
        ({"maxUsedStatusLastUpdatedTime": "soon"}, "maxUsedStatusLastUpdatedTime", "ISO 8601"),
        ({"markAsUnused": True, "limit": 3}, "", "omit limit"),
        ({"dryRun": True}, "dryRun", "unknown field"),
    ):
        with pytest.raises(InvalidInput) as refused:
            services.submit_task(user=root, document=kill(**changes))
        assert any(where in e.path and why in e.message for e in refused.value.errors), refused.value.errors
    operator = User.objects.create(username="operator")
    source.datasource.team.memberships.create(user=operator, role="operator")
    with pytest.raises(NotAllowed):
        services.submit_task(user=operator, document=kill())
    assert (Task.objects.count(), files(deep)) == (0, 1)


def test_druids_addresses_know_it(cast: Cast, clients: dict[str, Client], deep: Path) -> None:
    name = cast.datasource.name
    document = kill(dataSource=name, id="of-druid", interval="2013-01-01/2030-01-01")
    assert statuses(clients, document) == {"owner": 200, "operator": 403, "viewer": 403, "outsider": 404}
    assert kills.run("of-druid")
    viewer = clients["viewer"]
    status = viewer.get("/druid/indexer/v1/task/of-druid/status").json()["status"]
    assert (status["type"], status["status"], status["errorMsg"]) == ("kill", "SUCCESS", None)
    assert viewer.get("/druid/indexer/v1/task/of-druid").json()["payload"] == {**document, "groupId": "of-druid"}
    report = viewer.get("/druid/indexer/v1/task/of-druid/reports").json()
    assert report["killUnusedSegments"] == {
        "type": "killUnusedSegments",
        "taskId": "of-druid",
        "payload": {"numSegmentsKilled": 0, "numBatchesProcessed": 0},
    }
    assert [t["id"] for t in viewer.get("/druid/indexer/v1/tasks?type=kill").json()] == ["of-druid"]
    assert b"0 unused segments were deleted." in viewer.get("/druid/indexer/v1/task/of-druid/log").content
    page = browsing_as(cast, "viewer").get("/tasks/of-druid/").content.decode()
    assert "0 unused segments were deleted." in page and "Indexers wanted" not in page
    again = browsing_as(cast, "owner").get("/tasks/-/new/?from=of-druid").content.decode()
    assert "&quot;kill&quot;" in again and "of-druid&quot;" not in again
