"""Tasks that merge segments, on a real PostgreSQL: submitted, taken on by rounds, and done as the application would."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.common.errors import Conflict, InvalidInput, NotFound
from controlplane.compaction import compact_tasks, jobs
from controlplane.compaction.models import Job, State
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.selectors.fate import record_fate
from controlplane.publishing.selectors.totals import datasource_totals
from controlplane.segments.models import Segment
from controlplane.segments.selectors.lists import list_segments
from controlplane.sources.models import Source
from controlplane.tasks import services
from controlplane.tasks.models import Resident, Task
from controlplane.tasks.selectors import task_log_tail, task_totals
from controlplane.teams.audit import AuditEntry
from controlplane.teams.models import User
from ingestion.specs.messages.compaction import CompactionJob, FailedRequest, ReplaceRequest, WorkRequest
from tests.support.django_cast import Cast, browsing_as
from tests.support.publishes import DAY, TASK, make_source, request, segment, send, start
from tests.support.segment_tasks import a_writer, compact, statuses

NEXT = DAY + timedelta(days=1)
OF_A_DAY = {"ioConfig": {"type": "compact", "inputSpec": {"type": "interval", "interval": "2025-06-01/P1D"}}}


@pytest.fixture
def source(db: None, settings: LazySettings, tmp_path: Path) -> Source:
    settings.AUTO_COMPACTION = False
    settings.TASK_DIR = str(tmp_path)
    found = make_source("flights")
    a_writer(found, TASK)
    return found


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create(username="root", is_superuser=True)


@pytest.fixture
def application(db: None) -> str:
    resident = {"token_hash": "x", "slots": 100, "launched_at": timezone.now()}
    return Resident.objects.create(pk="compaction_1", **resident).pk


def published(source: Source, count: int, at: int = 0, rows: int = 5, task: str = TASK) -> None:
    epoch = start(source, task=task)
    for n in range(count):
        send(request(epoch, {0: [(at + n * rows, at + (n + 1) * rows)]}), task=task)


def submitted(root: User, **changes: Any) -> Task:
    task = services.submit_task(user=root, document=compact(**changes))
    compact_tasks.run()
    task.refresh_from_db()
    return task


def taken(application: str) -> list[CompactionJob]:
    return jobs.assign_jobs(application, WorkRequest(free=100)).jobs


def merged(job: CompactionJob, application: str, lost: int = 0) -> list[uuid.UUID]:
    rows = sum(s.rows for s in job.segments) - lost
    file = segment({0: [(0, rows)]}, job.interval_start).model_copy(update={"offsets": {}})
    read = {s.id: s.rows for s in job.segments}
    what = ReplaceRequest(replace_id=uuid.uuid4(), attempt=job.attempt, read=read, segments=[file])
    return jobs.replace(application, job.job_id, what)


def after_a_round(task: Task) -> Task:
    compact_tasks.run()
    return Task.objects.get(pk=task.pk)


def test_all_segments_of_an_interval_become_one_and_rows_stay(source: Source, root: User, application: str) -> None:
    published(source, 3)
    task = submitted(root, id="compact-me")
    assert (task.pk, task.status, task.kind, task.parts) == ("compact-me", "RUNNING", "compact", 1)
    published(source, 1, at=500)  # comes too late for it
    [job] = taken(application)
    assert (len(job.segments), job.rollup) == (3, False)
    assert after_a_round(task).status == "RUNNING"
    [made] = merged(job, application)
    task = after_a_round(task)
    assert (task.status, task.error, task.parts_done) == ("SUCCESS", "", 1)
    assert task.message == "3 segments with 15 rows were merged into 1."
    totals = task_totals(task)
    assert (totals.polled, totals.published, totals.segments, totals.adds_up) == (15, 15, 1, True)
    assert datasource_totals(source.datasource).published == 20  # a merge ingests nothing
    assert sorted((s.rows, s.task_id) for s in list_segments(source.datasource)) == [(5, TASK), (15, job.job_id)]
    [fate] = record_fate(root, topic="topic", partition=0, offset=7)
    assert [s.id for s in fate.segments] == [made]
    assert "3 segments with 15 rows were merged into 1." in task_log_tail(task)
    [entry] = AuditEntry.objects.filter(target="task", action="submit")
    assert (entry.target_id, entry.detail["type"]) == ("compact-me", "compact")


def test_intervals_that_need_nothing_are_not_asked_one_by_one(
    source: Source, root: User, django_assert_max_num_queries: Any
) -> None:
    """Each has two small segments, of tasks with different metrics, which are not merged with each other."""
    a_writer(source, "task-2", metricsSpec=[{"type": "count", "name": "n"}], granularitySpec={"rollup": True})
    for first, writer in ((0, TASK), (500, "task-2")):
        epoch = start(source, task=writer)
        for day in range(30):
            records = {0: [(1000 * day + first, 1000 * day + first + 5)]}
            send(request(epoch, segments=[segment(records, DAY + day * timedelta(days=1))]), task=writer)
    with CaptureQueriesContext(connection) as one:
        assert submitted(root, id="one", **OF_A_DAY).status == "SUCCESS"
    with django_assert_max_num_queries(len(one)):
        task = submitted(root, id="all")
    assert (task.status, Job.objects.count()) == ("SUCCESS", 0)


def test_the_same_id_is_taken_once(source: Source, root: User) -> None:
    published(source, 2)
    submitted(root, id="once")
    with pytest.raises(Conflict, match="'once' already"):
        services.submit_task(user=root, document=compact(id="once"))
    assert (Task.objects.filter(kind="compact").count(), Job.objects.count()) == (1, 1)


def test_each_interval_and_each_kind_has_merges_of_its_own(source: Source, root: User, application: str) -> None:
    a_writer(source, "task-2", metricsSpec=[{"type": "count", "name": "n"}], granularitySpec={"rollup": True})
    published(source, 2)
    published(source, 2, at=100, task="task-2")
    published(source, 2, at=200, task="nobody knows")
    epoch = start(source)
    for n in range(2):
        send(request(epoch, segments=[segment({0: [(300 + n, 301 + n)]}, NEXT)]))
    task = submitted(root, tuningConfig={"type": "index_parallel", "indexSpec": {"dimensionCompression": "zstd"}})
    found = taken(application)
    assert sorted((j.interval_start, j.rollup, len(j.segments)) for j in found) == [
        (DAY, False, 2),
        (DAY, True, 2),
        (NEXT, False, 2),
    ]
    assert {j.index_spec.dimensionCompression for j in found} == {"zstd"}
    for job in found:
        merged(job, application, lost=4 if job.rollup else 0)
    task = after_a_round(task)
    assert task.message == (
        "6 segments with 22 rows, which became 18 were merged into 3. 2 were left: the schema of their tasks "
        "is no longer known."
    )
    totals = task_totals(task)
    assert (totals.polled, totals.published, totals.rolled_up, totals.adds_up) == (22, 18, 4, True)


def test_large_segments_are_left_and_too_large_ones_cut_up(source: Source, root: User, application: str) -> None:
    published(source, 1, rows=8)  # as large as wanted
    published(source, 1, at=100, rows=25)
    published(source, 3, at=200, rows=4)  # two of them make one
    task = submitted(root, tuningConfig={"partitionsSpec": {"type": "dynamic", "maxRowsPerSegment": 10}})
    found = taken(application)
    assert sorted([s.rows for s in j.segments] for j in found) == [[4, 4], [25]]
    assert {j.max_rows_per_segment for j in found} == {10}
    for job in found:
        merged(job, application)
    assert after_a_round(task).status == "SUCCESS"


def test_a_job_whose_segments_changed_is_planned_anew(source: Source, root: User, application: str) -> None:
    published(source, 3)
    task = submitted(root)
    [job] = taken(application)
    Segment.objects.filter(pk=job.segments[0].id).update(used=False)
    with pytest.raises(PublishRefused):
        merged(job, application)
    task = after_a_round(task)
    assert (task.status, task.parts) == ("RUNNING", 1)
    [again] = taken(application)
    merged(again, application)
    assert after_a_round(task).message == "2 segments with 10 rows were merged into 1."


def test_it_fails_when_a_merge_fails_for_good_or_too_often(source: Source, root: User, application: str) -> None:
    published(source, 2)
    task = submitted(root)
    for _ in range(compact_tasks.ATTEMPTS):
        assert task.status == "RUNNING"
        [job] = taken(application)
        jobs.fail(application, job.job_id, FailedRequest(attempt=job.attempt, error="the disk is full."))
        task = after_a_round(task)
    assert (task.status, "the disk is full" in task.error) == ("FAILED", True)
    other = submitted(root)
    [job] = taken(application)
    jobs.fail(application, job.job_id, FailedRequest(attempt=1, error="a damaged file.", permanent=True))
    assert "a damaged file" in after_a_round(other).error
    assert Segment.objects.filter(used=True).count() == 2


def test_a_stopped_task_replaces_nothing_any_more(source: Source, root: User, application: str) -> None:
    published(source, 2)
    task = submitted(root)
    [job] = taken(application)
    services.stop_task(user=root, task=task)
    task = after_a_round(task)
    assert (task.status, task.error) == ("FAILED", "Stopped.")
    with pytest.raises(PublishRefused) as refused:
        merged(job, application)
    assert refused.value.refusal.code == "fenced"
    assert jobs.assign_jobs(application, WorkRequest(running={job.job_id: 1}, free=0)).dropped == [job.job_id]
    waits = services.submit_task(user=root, document=compact())
    services.stop_task(user=root, task=waits)
    assert after_a_round(waits).error == "Stopped before it was launched."
    assert Job.objects.count() == 1


def test_it_waits_for_jobs_of_others(source: Source, root: User, application: str) -> None:
    published(source, 2)
    first, second = submitted(root, id="first"), submitted(root, id="second")
    assert list(Job.objects.values_list("task", flat=True)) == ["first"]
    [job] = taken(application)
    assert after_a_round(second).status == "RUNNING"
    merged(job, application)
    assert {after_a_round(t).status for t in (first, second)} == {"SUCCESS"}
    second.refresh_from_db()
    assert second.message == "Nothing was merged: the segments are large enough, or alone."
    assert Job.objects.get().state == State.DONE


def test_what_can_not_be_done_is_said(source: Source, root: User) -> None:
    empty = submitted(root, ioConfig={"type": "compact", "inputSpec": {"type": "interval", "interval": "1999/2000"}})
    assert (empty.status, empty.error) == ("FAILED", "There are no segments in 1999/2000: nothing to merge.")
    before = Task.objects.count()
    interval = {"type": "interval", "interval": "2025/2026"}
    for changes, where, why in (
        ({"projections": [{}]}, "projections", "is not supported"),
        ({"ioConfig": {"type": "compact", "inputSpec": {**interval, "interval": "2025/2025"}}}, "interval", "empty"),
        (
            {"ioConfig": {"type": "compact", "inputSpec": {**interval, "interval": "today"}}},
            "interval",
            "not an interval",
        ),
        ({"ioConfig": None}, "", "give an interval"),
        ({"interval": "2025/2026"}, "", "not both"),
        ({"ioConfig": {"type": "compact", "inputSpec": {"type": "segments"}}}, "type", "must be 'interval'"),
        ({"tuningConfig": {"partitionsSpec": {"type": "hashed"}}}, "tuningConfig", "needs forceGuaranteedRollup true"),
        ({"compactionRunner": {"type": "msq"}}, "type", "must be 'native'"),
        ({"oops": 1}, "oops", "unknown field"),
        ({"id": "../x"}, "id", "must be 1 to 200"),
    ):
        with pytest.raises(InvalidInput) as refused:
            services.submit_task(user=root, document=compact(**changes))
        assert any(where in e.path and why in e.message for e in refused.value.errors), refused.value.errors
    with pytest.raises(NotFound):
        services.submit_task(user=root, document=compact(dataSource="nobodys"))
    assert Task.objects.count() == before


def test_druids_addresses_know_it(
    cast: Cast, clients: dict[str, Client], settings: LazySettings, tmp_path: Path
) -> None:
    settings.TASK_DIR = str(tmp_path)
    document = compact(dataSource=cast.datasource.name, id="of-druid", tuningConfig={"maxNumConcurrentSubTasks": 2})
    assert statuses(clients, document) == {"owner": 200, "operator": 409, "viewer": 403, "outsider": 404}
    client = clients["viewer"]
    [row] = [t for t in client.get("/druid/indexer/v1/tasks?type=compact").json() if t["id"] == "of-druid"]
    assert (row["type"], row["statusCode"], row["dataSource"]) == ("compact", "RUNNING", cast.datasource.name)
    assert client.get("/druid/indexer/v1/task/of-druid").json()["payload"] == {**document, "groupId": "of-druid"}
    assert client.get("/druid/indexer/v1/task/of-druid/status").json()["status"]["runnerStatusCode"] == "WAITING"
    report = client.get("/druid/indexer/v1/task/of-druid/reports").json()
    assert report["ingestionStatsAndErrors"]["payload"]["ingestionState"] == "NOT_STARTED"
    [option] = report["headgate"]["payload"]["optionsWithoutEffect"]
    assert option.startswith("tuningConfig.maxNumConcurrentSubTasks: ")
    compact_tasks.run()  # there is nothing in its interval
    status = client.get("/druid/indexer/v1/task/of-druid/status").json()["status"]
    assert (status["status"], status["errorMsg"][:25]) == ("FAILED", "There are no segments in ")
    assert b"There are no segments in " in client.get("/druid/indexer/v1/task/of-druid/log").content
    clients["operator"].post("/druid/indexer/v1/task", {**document, "id": "another"}, content_type="application/json")
    shutdown = "/druid/indexer/v1/task/another/shutdown"
    assert clients["viewer"].post(shutdown).status_code == 403
    assert clients["operator"].post(shutdown).json() == {"task": "another"}
    assert client.get("/druid/indexer/v1/task/another/status").json()["status"]["status"] == "FAILED"
    page = browsing_as(cast, "viewer").get("/tasks/of-druid/").content.decode()
    assert "of-druid" in page and "Indexers wanted" not in page
