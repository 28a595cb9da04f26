"""Batch tasks on a real PostgreSQL: submitted, told what to do, and their one publish, beside streams' publishes."""

from __future__ import annotations

import copy
import threading
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connections
from django.test import Client

from controlplane.common.errors import InvalidInput
from controlplane.compaction.schemas import write_specs_of
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.publication import store_schemas
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.publishing.selectors.fate import record_fate
from controlplane.publishing.selectors.totals import datasource_totals
from controlplane.segments import marking
from controlplane.segments.models import Interval, Removal, Segment, SegmentSchema
from controlplane.segments.selectors.lists import list_segments
from controlplane.sources.models import Source
from controlplane.tasks import batches, capacity
from controlplane.tasks.lifecycle import Goal, new_token, set_goal
from controlplane.tasks.models import Status, Task
from controlplane.tasks.selectors import task_report
from controlplane.teams.models import User
from ingestion.specs.messages.batch_protocol import BatchAssignment, BatchPublishRequest
from tests.support.batch_tasks import (
    HOUR,
    ONE_DAY,
    ROOT,
    a_task,
    document,
    file,
    in_use,
    outcome,
    published,
    root,
    source,
    streamed,
)
from tests.support.django_cast import Cast
from tests.support.locks import held_up
from tests.support.publishes import DAY, make_source

__all__ = ["root", "source"]  # fixtures


def test_what_it_writes_comes_and_what_it_overwrites_goes_at_once(source: Source, root: User) -> None:
    make_receipt_partitions()
    streamed(source, 0, 1, 1, 2)
    before = {i.start: i for i in Interval.objects.all()}
    task = a_task(root)
    assert published(task, file(1, 7), file(1, 5), file(3, 2), thrown_away=3, unparseable=1) == 2
    assert in_use(source) == [(0, "task-1", 10), (1, task.pk, 5), (1, task.pk, 7), (2, "task-1", 10), (3, task.pk, 2)]
    task.refresh_from_db()
    assert (task.status, task.error) == (Status.SUCCESS, "")
    changed = Interval.objects.get(start=DAY + ONE_DAY)
    assert (changed.segments, changed.rows, changed.next_partition) == (2, 12, 4)
    old = before[changed.start]
    assert changed.version > old.version and changed.revision > old.revision
    assert {s.version for s in list_segments(source.datasource) if s.interval_start == changed.start} == {
        changed.version
    }
    untouched = Interval.objects.get(start=DAY)
    assert (untouched.version, untouched.revision) == (before[DAY].version, before[DAY].revision)
    totals = task_report(root, task).totals
    assert (totals.polled, totals.published, totals.thrown_away, totals.unparseable, totals.segments) == (
        18,
        14,
        3,
        1,
        3,
    )
    assert totals.adds_up


def test_a_streams_records_that_were_overwritten_have_ended_and_say_by_whom(source: Source, root: User) -> None:
    make_receipt_partitions()
    streamed(source, 0)
    task = a_task(root)
    published(task, file(0, 1))
    assert (
        marking.mark_used(source.datasource, marking.SegmentSelection()).segments == 0
    )  # they would stand beside the new ones
    [fate] = record_fate(ROOT, topic="topic", partition=0, offset=5)
    assert fate.outcome == "stored"
    assert f"removed by task {task.pk}" in fate.explanation and "overwritten" in fate.explanation
    removal = Removal.objects.get()
    assert (removal.segments, removal.rows) == (1, 10)
    streamed(source, 0, at=100)  # goes on beside what the task has written, in its version
    assert {s.version for s in list_segments(source.datasource)} == {Interval.objects.get().version}
    assert datasource_totals(source.datasource).published == 21


def test_appending_takes_the_next_numbers(source: Source, root: User) -> None:
    streamed(source, 0)
    task = a_task(root, ioConfig__appendToExisting=True)
    assert published(task, file(0, 3), file(1, 4)) == 0
    assert in_use(source) == sorted([(0, "task-1", 10), (0, task.pk, 3), (1, task.pk, 4)])
    numbers = Segment.objects.filter(interval_start=DAY).values_list("partition_num", "version").distinct()
    assert sorted(n for n, _ in numbers) == [0, 1] and len({v for _, v in numbers}) == 1


def test_what_the_spec_drops_goes_although_nothing_comes(source: Source, root: User) -> None:
    streamed(source, 0, 1, 2, 3)
    drops = {"dataSchema__granularitySpec": {"intervals": ["2025-06-02/2025-06-04"]}, "ioConfig__dropExisting": True}
    task = a_task(root, **drops)
    assert published(task, file(1, 4)) == 2
    assert in_use(source) == [(0, "task-1", 10), (1, task.pk, 4), (3, "task-1", 10)]
    nothing = a_task(root, **drops)
    assert published(nothing) == 1
    assert [day for day, *_ in in_use(source)] == [0, 3]


def test_shorter_intervals_are_replaced_by_a_longer_one_and_not_the_other_way_round(source: Source, root: User) -> None:
    hours = a_task(root)
    published(hours, *(file(0, 1, HOUR, hour) for hour in (0, 5, 23)))
    day = a_task(root)
    assert published(day, file(0, 9)) == 3
    assert in_use(source) == [(0, day.pk, 9)]
    assert len({i.version for i in Interval.objects.all()}) == 1  # what was hourly can't be used again beside it
    part = a_task(root)
    with pytest.raises(PublishRefused, match=r"2025-06-01T00:00:00Z/2025-06-02T00:00:00Z, which reaches beyond"):
        published(part, file(0, 1, HOUR, 3))
    assert in_use(source) == [(0, day.pk, 9)]
    whole = a_task(root)
    assert published(whole, *(file(0, 1, HOUR, hour) for hour in range(24))) == 1
    assert in_use(source) == [(0, whole.pk, 1)] * 24


def test_a_publish_is_taken_once_and_of_the_newest_attempt_alone(
    source: Source, root: User, settings: LazySettings
) -> None:
    settings.DEEP_STORAGE = "s3://bucket"  # which is not looked into
    task = a_task(root, ioConfig__appendToExisting=True)
    old, new = batches.start(task).epoch, batches.start(task).epoch
    with pytest.raises(PublishRefused) as refused:
        batches.publish(task, outcome(old, file()))
    assert refused.value.refusal.code == "fenced"
    token = new_token(task)
    client = Client(headers={"Authorization": f"Bearer {token}"})
    body = outcome(new, file()).model_dump_json()
    path = f"/internal/tasks/{task.pk}/batch/publish"
    assert client.post(path, body, content_type="application/json").status_code == 200
    assert client.post(path, body, content_type="application/json").status_code == 410  # its answer was lost
    assert in_use(source) == [(0, task.pk, 10)]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"path": "other/x.parquet"}, "folder flights"),
        ({"rows": 11}, "The counters do not match the segments: published is 10"),
        ({"offsets": {0: [(0, 10)]}}, "names offsets"),
        ({"min_time": DAY - HOUR}, "outside of its interval"),
    ],
)
def test_what_can_not_be_true_changes_nothing(source: Source, root: User, wrong: dict[str, Any], why: str) -> None:
    streamed(source, 0)
    task = a_task(root)
    what = outcome(batches.start(task).epoch, file())
    with pytest.raises(InvalidInput, match=why):
        batches.publish(task, what.model_copy(update={"segments": [file().model_copy(update=wrong)]}))
    overlap = outcome(what.epoch, file(), file(0, 1, HOUR, 3))
    with pytest.raises(InvalidInput, match="overlap"):
        batches.publish(task, overlap)
    assert in_use(source) == [(0, "task-1", 10)]
    task.refresh_from_db()
    assert task.status == Status.PENDING


@pytest.mark.django_db(transaction=True)
def test_of_two_tasks_over_one_interval_the_later_publish_stays_whole(root: User) -> None:
    source = make_source("flights")
    streamed(source, 0, 1)
    tasks = [a_task(root) for _ in range(4)]
    wanted = [outcome(batches.start(t).epoch, file(0, n + 1), file(1, n + 1)) for n, t in enumerate(tasks)]
    faults: list[Exception] = []

    def run(task: Task, what: BatchPublishRequest) -> None:
        try:
            batches.publish(task, what)
        except Exception as error:
            faults.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=both) for both in zip(tasks, wanted, strict=True)]
    for thread in threads:
        thread.start()
    streamed(source, 2, at=500)
    for thread in threads:
        thread.join()
    assert faults == []
    found = in_use(source)
    [winner] = {task for day, task, _ in found if day < 2}
    assert [(day, task) for day, task, _ in found] == [(0, winner), (1, winner), (2, "task-1")]
    assert Segment.objects.filter(used=False).count() == 2 + 2 * 3
    sums = {(i.segments, i.rows) for i in Interval.objects.filter(start__lt=DAY + 2 * ONE_DAY)}
    assert sums == {(1, found[0][2])}


@pytest.mark.django_db(transaction=True)
def test_whoever_has_the_same_new_schema_does_not_wait_for_its_publish(root: User) -> None:
    source = make_source("flights")
    streamed(source, 0)
    SegmentSchema.objects.all().delete()
    task = a_task(root)
    what = outcome(batches.start(task).epoch, file())

    with held_up(lambda: batches.publish(task, what), Interval):
        store_schemas(task.pk, 0, what.segments)
    assert in_use(source) == [(0, task.pk, 10)]


def test_it_takes_places_of_the_pool_and_no_more_than_there_are(
    root: User, settings: LazySettings, source: Source
) -> None:
    settings.SPARK_SLOTS, settings.WORKER_CAPACITY = 8, 4
    first, second = a_task(root), a_task(root, tuningConfig__maxNumConcurrentSubTasks=50)
    assert (first.slots, second.slots) == (3, 4)
    assert capacity.may_launch(first)
    Task.objects.filter(pk=first.pk).update(launched_at=first.created_at)
    assert capacity.pool().used == 3
    assert not capacity.may_launch(second)
    assert "It needs 4 slots; 1 of 4 is free" in str(capacity.wait_health(second))
    assert set_goal(second, Goal.STOP)
    second.refresh_from_db()
    assert second.status == Status.FAILED


BAD: list[tuple[dict[str, Any], str]] = [
    ({"ioConfig__appendToExisting": True, "ioConfig__dropExisting": True}, "can't both be true"),
    ({"ioConfig__dropExisting": True}, "dropExisting needs dataSchema.granularitySpec.intervals"),
    ({"ioConfig__inputSource": {"type": "hdfs", "paths": "/x"}}, "'hdfs' of Druid is not supported"),
    ({"ioConfig__inputSource": {"type": "google", "uris": ["gs://bucket/x"]}}, "HEADGATE_INPUT_LOCATIONS"),
    ({"ioConfig__inputSource": {"type": "s3", "uris": ["s3://bucket/x"]}}, "HEADGATE_INPUT_LOCATIONS"),
    ({"ioConfig__inputSource": {"type": "http", "uris": ["http://169.254.169.254/x"]}}, "a cloud's metadata service"),
    ({"ioConfig__inputSource": {"type": "local", "files": ["/etc/passwd"]}}, "HEADGATE_LOCAL_INPUT_FOLDERS"),
    ({"ioConfig__inputSource": {"type": "local", "baseDir": "/a/../b", "filter": "*"}}, "without '..'"),
    ({"ioConfig__inputSource": {"type": "local", "baseDir": "/a"}}, "baseDir needs a filter"),
    ({"ioConfig__inputFormat": {"type": "parquet"}}, "inline takes text only"),
    ({"ioConfig__inputFormat": {"type": "kafka", "valueFormat": {"type": "json"}}}, "a message format"),
    ({"ioConfig__firehose": {"type": "local"}}, "use inputSource"),
    ({"tuningConfig__partitionsSpec": {"type": "hashed"}}, "needs forceGuaranteedRollup true"),
    ({"tuningConfig__forceGuaranteedRollup": True, "tuningConfig__partitionsSpec": {"type": "dynamic"}}, "range or"),
    ({"tuningConfig__maxRetries": 1}, "unknown field"),
    ({"tuningConfig__type": "index"}, "tuningConfig.type"),
    ({"dataSchema__granularitySpec": {"intervals": ["yesterday"]}}, "is not an interval"),
    ({"dataSchema__transformSpec": {"filter": {"type": "expression", "expression": "((("}}}, "filter"),
]


@pytest.mark.parametrize(("changes", "why"), BAD, ids=[why for _, why in BAD])
def test_a_spec_with_a_fault_is_refused_by_name_and_makes_nothing(
    cast: Cast, clients: dict[str, Client], changes: dict[str, Any], why: str
) -> None:
    before = Task.objects.count()
    for path in ("/druid/indexer/v1/task", "/api/v1/tasks/"):
        answer = clients["operator"].post(path, document(**changes), content_type="application/json")
        assert answer.status_code == 400
        assert why in answer.content.decode().replace("\\u0027", "'"), answer.content
    assert Task.objects.count() == before


def test_another_teams_datasource_is_refused_and_files_only_below_the_folders(
    cast: Cast, clients: dict[str, Client], settings: LazySettings, tmp_path: Path
) -> None:
    path, before = "/druid/indexer/v1/task", Task.objects.count()
    mine = cast.datasource.name
    for role, statuses in (("viewer", {403}), ("outsider", {403, 409}), ("anonymous", {401})):
        answer = clients[role].post(path, document(mine), content_type="application/json")
        assert answer.status_code in statuses, (role, answer.content)
    assert Task.objects.count() == before
    settings.LOCAL_INPUT_FOLDERS = [str(tmp_path)]
    outside = copy.deepcopy(document(mine))
    outside["spec"]["ioConfig"]["inputSource"] = {"type": "local", "baseDir": f"{tmp_path}x", "filter": "*"}
    answer = clients["operator"].post(path, outside, content_type="application/json")
    assert answer.status_code == 400 and b"is not below the folders" in answer.content
    inside = {**outside, "spec": {**outside["spec"]}}
    inside["spec"]["ioConfig"]["inputSource"]["baseDir"] = f"{tmp_path}/x"
    answer = clients["operator"].post(path, inside, content_type="application/json")
    assert answer.status_code == 200, answer.content
    task = Task.objects.get(pk=answer.json()["task"])
    assert (task.kind, task.reads, task.is_batch) == ("index_parallel", False, True)
    shown = clients["viewer"].get(f"/druid/indexer/v1/task/{task.pk}").json()["payload"]
    assert shown["spec"]["ioConfig"]["inputSource"]["baseDir"] == f"{tmp_path}/x"
    listed = clients["viewer"].get("/druid/indexer/v1/tasks?type=index_parallel").json()
    assert [t["id"] for t in listed] == [task.pk]
    assert batches.start(task).reachable.local_folders == [str(tmp_path)]


def test_its_driver_reads_what_it_is_told(root: User, source: Source) -> None:
    """With every value that a spec may leave out, or set to null."""
    tuning = {"type": "index_parallel", "maxRowsPerSegment": -1, "maxTotalRows": None, "maxParseExceptions": None}
    for changes in ({}, {"tuningConfig": tuning}, {"tuningConfig": {**tuning, "maxRowsPerSegment": 7}}):
        told = batches.start(a_task(root, **changes))
        assert BatchAssignment.model_validate_json(told.model_dump_json()) == told
    assert told.spec.tuningConfig.rows_per_segment == 7


def test_what_it_has_written_is_merged_under_its_schema(root: User, source: Source) -> None:
    metrics = [{"type": "count", "name": "n"}]
    task = a_task(root, dataSchema__metricsSpec=metrics)
    known = write_specs_of([task.pk])
    assert known[task.pk].rolls_up(False)
    assert known[task.pk].data_schema["metricsSpec"][0]["name"] == "n"


def test_the_report_names_what_has_no_effect(root: User, source: Source) -> None:
    task = a_task(root, tuningConfig__pushTimeout=5, tuningConfig__totalNumMergeTasks=2)
    names = [option.partition(":")[0] for option in task_report(root, task).without_effect]
    assert names == ["tuningConfig.pushTimeout", "tuningConfig.totalNumMergeTasks"]
