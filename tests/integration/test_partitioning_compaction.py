"""Automatic compaction by hash and range on a real PostgreSQL: which intervals are written anew, and that it ends."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from controlplane.common.errors import InvalidInput
from controlplane.compaction import backoff, configs, jobs, planning, reindexing, selectors
from controlplane.compaction.models import Configured, Job, Rewrite
from controlplane.compaction.policy import QUIET
from controlplane.compaction.selectors import Amount
from controlplane.segments.models import Interval, Segment
from controlplane.sources.models import Source
from controlplane.tasks import batches, services
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Resident, Task
from controlplane.teams.models import User
from ingestion.specs.messages.compaction import WorkRequest
from ingestion.specs.messages.protocol import Column
from tests.support.batch_tasks import file, in_use, outcome, root, source
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed
from tests.support.publishes import DAY, TASK, request, segment, send, start
from tests.support.segment_tasks import a_writer

__all__ = ["root", "source"]  # fixtures
RANGE = {"type": "range", "partitionDimensions": ["item"], "targetRowsPerSegment": 5}


@pytest.fixture(autouse=True)
def _nothing_rests(settings: LazySettings) -> None:
    settings.AUTO_COMPACTION = True
    settings.WORKER_CAPACITY, settings.COMPACTION_PERCENT = 20, 10
    settings.COMPACTION_JOB_BYTES = 0  # each interval is too large for a job
    planning.forget_resting()


def config(by: dict[str, Any] = RANGE, **changes: Any) -> dict[str, Any]:
    return {"dataSource": "flights", "tuningConfig": {"partitionsSpec": by}} | changes


def post(root: User, source: Source, document: dict[str, Any]) -> None:
    configs.set_config(user=root, datasource=source.datasource, config=configs.read_config(document))


def streamed(source: Source, day: int = 0, at: int = 0, count: int = 1) -> None:
    epoch = start(source)
    for n in range(count):
        made = segment({0: [(at + 10 * n, at + 10 * n + 10)]}, DAY + day * timedelta(days=1))
        held = [Column(name="__time", type="timestamp"), Column(name="item", type="string")]
        send(request(epoch, segments=[made.model_copy(update={"columns": held})]))


def quiet() -> None:
    """Nothing has been added for so long that nothing else is expected."""
    Segment.objects.update(created_at=timezone.now() - QUIET)
    planning.forget_resting()


def planned() -> list[Task]:
    """What has become of a round."""
    planning.plan()
    planning.plan_rewrites()
    return list(Task.objects.active().filter(rewrite__isnull=False).order_by("created_at"))


def done(task: Task, files: int = 2, day: int = 0) -> None:
    """What a driver does: it starts the task, and publishes files."""
    made = [file(day, rows=5) for _ in range(files)]
    given = reindexing.start(task)
    request = outcome(given.epoch, *made, rolled_up=sum(s.rows for s in given.inputs) - 5 * files)
    batches.publish(task, request.model_copy(update={"read": [s.id for s in given.inputs]}))


def why(source: Source) -> list[str]:
    return [p.choice.health.cause if p.choice.health else "" for p in selectors.list_fragmented(source.datasource)]


def test_each_interval_is_written_anew_once_and_again_after_a_late_append(source: Source, root: User) -> None:
    a_writer(source, TASK)
    streamed(source)
    streamed(source, day=1, at=100)
    post(root, source, config(taskPriority=7))
    assert planned() == []  # something was added a moment ago
    assert why(source) == ["It is partitioned when nothing has been added for 10 minutes."] * 2
    assert selectors.status_of(source.datasource).awaiting == Amount(200, 2, 2)
    quiet()
    [first, second] = planned()
    assert planned() == [first, second]
    assert [(t.kind, t.slots, t.submitted_by) for t in (first, second)] == [("reindex", 1, None)] * 2
    assert first.spec["tuningConfig"]["partitionsSpec"] == RANGE
    assert {t.spec["ioConfig"]["inputSpec"]["interval"] for t in (first, second)} == {
        "2025-06-01T00:00:00.000Z/2025-06-02T00:00:00.000Z",
        "2025-06-02T00:00:00.000Z/2025-06-03T00:00:00.000Z",
    }
    assert why(source) == [f"Task {t.pk} is rewriting its rows." for t in (first, second)]
    by_day = {t.spec["ioConfig"]["inputSpec"]["interval"][:10]: t for t in (first, second)}
    done(by_day["2025-06-01"])
    done(by_day["2025-06-02"], day=1)
    quiet()
    assert planned() == [] and why(source) == []
    status = selectors.status_of(source.datasource)
    assert (status.awaiting, status.compacted, status.becoming) == (Amount(), Amount(200, 4, 2), 0)

    streamed(source, at=500)  # late
    assert planned() == []
    assert selectors.status_of(source.datasource).awaiting == Amount(200, 3, 1)
    quiet()
    [again] = planned()
    done(again)
    quiet()
    assert planned() == []
    assert [row[0] for row in in_use(source)] == [0, 0, 1, 1]
    assert not Job.objects.exists()


def test_counts_that_come_late_are_added_to_those_that_a_task_has_written(source: Source, root: User) -> None:
    a_writer(source, TASK, metricsSpec=[{"type": "count", "name": "n"}], granularitySpec={"rollup": True})
    streamed(source)
    post(root, source, config())
    quiet()
    done(planned()[0])
    streamed(source, at=500)
    quiet()
    [again] = planned()
    assert [m.type for m in reindexing.start(again).spec.dataSchema.metricsSpec] == ["longSum"]


def test_what_is_appended_while_a_task_runs_leaves_its_interval_unfinished(source: Source, root: User) -> None:
    a_writer(source, TASK)
    streamed(source)
    post(root, source, config())
    quiet()
    [task] = planned()
    given = reindexing.start(task)
    streamed(source, at=500)
    files = outcome(given.epoch, file(rows=5), file(rows=5))
    batches.publish(task, files.model_copy(update={"read": [s.id for s in given.inputs]}))
    assert Interval.objects.get().partitioned_by == ""
    quiet()
    assert len(planned()) == 1


def test_another_partitions_spec_is_another_state_and_the_same_in_other_words_is_not(
    source: Source, root: User
) -> None:
    a_writer(source, TASK)
    streamed(source)
    post(root, source, config())
    quiet()
    done(planned()[0])
    same = {"type": "single_dim", "partitionDimension": "item", "targetRowsPerSegment": 5, "maxRowsPerSegment": -1}
    post(root, source, config(same))
    quiet()
    assert planned() == []
    post(root, source, config({"type": "hashed", "numShards": 2}))
    quiet()
    [task] = planned()
    done(task)
    quiet()
    assert planned() == []
    post(root, source, config({"type": "dynamic"}))
    assert planned() == []


def test_a_batch_task_with_the_same_partitions_needs_no_other(source: Source, root: User) -> None:
    by = {"forceGuaranteedRollup": True, "partitionsSpec": {**RANGE, "targetRowsPerSegment": 5}}
    document = {
        "type": "compact",
        "dataSource": "flights",
        "interval": "2025-06-01/P1D",
        "tuningConfig": {"type": "index_parallel", **by},
    }
    a_writer(source, TASK)
    streamed(source)
    done(services.submit_task(user=root, document=document))
    post(root, source, config())
    quiet()
    assert planned() == []


def test_small_segments_are_merged_meanwhile_but_for_those_that_are_partitioned(source: Source, root: User) -> None:
    a_writer(source, TASK)
    streamed(source)
    post(root, source, config())
    quiet()
    done(planned()[0], files=2)
    streamed(source, at=1000, count=20)
    Segment.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    planning.forget_resting()
    assert planned() == []
    assert len(Job.objects.get().inputs) == 20


def test_tasks_share_the_places_of_compaction_and_give_way(source: Source, root: User, settings: LazySettings) -> None:
    a_writer(source, TASK)
    for day in range(4):
        streamed(source, day=day, at=100 * day)
    post(root, source, config())
    quiet()
    assert len(planned()) == 2  # a tenth of 20 places
    resident = Resident.objects.create(pk="compaction_1", token_hash="x", slots=2, launched_at=timezone.now())
    for n in range(3):
        values = {"datasource": source.datasource, "interval_start": DAY, "interval_end": DAY, "created_at": DAY}
        Job.objects.create(
            pk=f"job-{n}", tier=n, inputs=[uuid.uuid4()], data_schema={}, rollup=False, max_rows_per_segment=1,
            rows_before=1, bytes_before=1, **values,
        )  # fmt: skip
    jobs.assign_jobs(resident.pk, WorkRequest(free=2))
    assert Job.objects.filter(state="waiting").count() == 2  # one at least is handed out
    for task in Task.objects.active().filter(rewrite__isnull=False):
        end_task(task, error="broken")
    Resident.objects.update(ended_at=timezone.now())
    settings.WORKER_CAPACITY = 1
    spec = Task.objects.get(pk=TASK).spec
    waiting = {"spec": spec, "datasource": source.datasource, "created_at": timezone.now()}
    Task.objects.create(pk="first", kind="share_group", status="RUNNING", slots=1, **waiting)
    Task.objects.create(pk="waits", kind="share_group", slots=1, **waiting)
    planning.forget_resting()
    assert planned() == []


def test_what_fails_is_tried_again_later_and_later(source: Source, root: User) -> None:
    a_writer(source, TASK)
    streamed(source)
    post(root, source, config())
    quiet()
    end_task(planned()[0], error="the disk is full")
    planning.forget_resting()
    assert planned() == []
    assert "the disk is full" in why(source)[0]
    Task.objects.filter(rewrite__isnull=False).update(ended_at=timezone.now() - backoff.FIRST_PAUSE)
    planning.forget_resting()
    assert len(planned()) == 1


def test_what_segments_do_not_allow_is_said_without_a_task(source: Source, root: User) -> None:
    a_writer(source, TASK)
    streamed(source)
    post(root, source, config({**RANGE, "partitionDimensions": ["nobody"]}))
    quiet()
    assert planned() == []
    assert "'nobody', which is not a dimension" in why(source)[0]
    streamed(source, at=900)
    Segment.objects.filter(created_at__gt=timezone.now() - QUIET).update(task_id="gone")
    post(root, source, config())
    quiet()
    assert planned() == [] and "no longer knows" in why(source)[0]
    post(root, source, config(inputSegmentSizeInBytes=10))
    quiet()
    assert planned() == [] and why(source) == ["It is larger than inputSegmentSizeInBytes."]
    post(root, source, config(skipOffsetFromLatest="P1D"))
    assert planned() == [] and "skipOffsetFromLatest" in why(source)[0]
    assert selectors.status_of(source.datasource).skipped == Amount(200, 2, 1)
    assert not Rewrite.objects.exists()


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (config({"type": "range", "targetRowsPerSegment": 5}), "partitionDimensions"),
        (config({"type": "range", "partitionDimensions": ["item"]}), "targetRowsPerSegment or maxRowsPerSegment"),
        (config({"type": "hashed", "numShards": 2, "targetRowsPerSegment": 5}), "either numShards"),
        (config(maxRowsPerSegment=1000), "partitionsSpec range sets the rows per segment"),
        (config({"type": "dynamic", "numShards": 2}), "numShards is not supported"),
        (
            {"dataSource": "flights", "tuningConfig": {"maxNumConcurrentSubTasks": 2}},
            "maxNumConcurrentSubTasks is for a partitionsSpec",
        ),
    ],
)
def test_what_a_config_may_not_say(document: dict[str, Any], fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        configs.read_config(document)


def test_the_page_and_rest_say_so_and_try_no_other_rows(cast: Cast, clients: dict[str, Client]) -> None:
    path, config_path = "/datasources/flights/compaction/", "/druid/coordinator/v1/config/compaction"
    given = config({"type": "hashed", "numShards": 2}, skipOffsetFromLatest="P1D")
    answer = clients["operator"].post(config_path, given, content_type="application/json")
    assert answer.status_code == 200, answer.content
    shown = clients["viewer"].get(f"{config_path}/flights").json()
    assert shown["tuningConfig"]["partitionsSpec"]["numShards"] == 2
    autocompact = {"type": "autocompact", "spec": shown}
    assert (
        clients["operator"]
        .post("/druid/indexer/v1/supervisor", autocompact, content_type="application/json")
        .status_code
        == 200
    )
    told = clients["viewer"].get("/api/v1/datasources/flights/compaction/").json()
    # The cast's days 1 and 2 wait; the latest is left alone.
    assert (told["awaiting"]["intervals"], told["skipped"]["intervals"], told["becoming"]) == (2, 1, 4)
    refused = clients["viewer"].get("/api/v1/datasources/flights/compaction/?max_rows_per_segment=7")
    assert refused.status_code == 400
    operator = browsing_as(cast, "operator")
    page = parsed(operator.get(path, {"skip": "PT0S"}))
    assert "Waiting for partitioning" in page.text and "numShards" in page.text
    assert not page.all("input", name="rows")
    assert operator.post(f"{path}apply/", {"skip": "PT0S"})["Location"] == path
    kept = Configured.objects.get().document
    assert kept["skipOffsetFromLatest"] == "PT0S" and kept["tuningConfig"] == shown["tuningConfig"]
