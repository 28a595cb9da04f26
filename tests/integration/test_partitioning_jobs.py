"""Intervals that jobs of the compaction application partition: each by itself; a larger one has a task."""

from __future__ import annotations

import uuid

import pytest
from django.conf import LazySettings
from django.utils import timezone

from controlplane.compaction import backoff, jobs, planning
from controlplane.compaction.models import Job, Rewrite, State
from controlplane.publishing.fence import PublishRefused
from controlplane.segments.models import Interval, Segment
from controlplane.sources.models import Source
from controlplane.tasks.models import Resident
from controlplane.teams.models import User
from ingestion.specs.messages.compaction import CompactionJob, FailedRequest, ReplaceRequest, WorkRequest
from tests.integration.test_partitioning_compaction import RANGE, config, planned, post, quiet, streamed, why
from tests.support.batch_tasks import file, in_use, root, source
from tests.support.publishes import DAY, TASK
from tests.support.segment_tasks import a_writer

__all__ = ["root", "source"]  # fixtures
RESIDENT, DAYS = "compaction_1", 3


@pytest.fixture(autouse=True)
def _quiet_days(source: Source, root: User, settings: LazySettings) -> None:
    """Two segments each, of ten rows."""
    settings.AUTO_COMPACTION = True
    settings.WORKER_CAPACITY, settings.COMPACTION_PERCENT = 20, 10
    a_writer(source, TASK, metricsSpec=[{"type": "count", "name": "n"}], granularitySpec={"rollup": True})
    for day in range(DAYS):
        streamed(source, day=day, at=100 * day, count=2)
    post(root, source, config(taskPriority=7))
    quiet()
    Resident.objects.create(pk=RESIDENT, token_hash="x", slots=DAYS, launched_at=timezone.now())


def taken() -> list[CompactionJob]:
    return sorted(jobs.assign_jobs(RESIDENT, WorkRequest(free=DAYS)).jobs, key=lambda j: j.interval_start)


def replaced(job: CompactionJob) -> None:
    """What an application does: two files of half of the rows each."""
    day, rows = (job.interval_start - DAY).days, sum(s.rows for s in job.segments)
    request = ReplaceRequest(
        replace_id=uuid.uuid4(),
        attempt=job.attempt,
        read={s.id: s.rows for s in job.segments},
        segments=[file(day, rows=rows // 2) for _ in range(2)],
    )
    jobs.replace(RESIDENT, job.job_id, request)


def test_each_interval_has_a_job_once_and_again_after_a_late_append(source: Source) -> None:
    assert planned() == [] and planned() == []
    assert [(j.state, j.priority, j.rows_before) for j in Job.objects.all()] == [(State.WAITING, 7, 20)] * DAYS
    assert why(source) == ["A job is rewriting its rows."] * DAYS
    for job in taken():
        assert job.anew is not None and job.anew.tuningConfig.dividing is not None and job.rollup
        assert job.anew.tuningConfig.dividing.model_dump(exclude_defaults=True) == RANGE
        assert [m.type for m in job.anew.dataSchema.metricsSpec] == ["longSum"]  # of counts
        replaced(job)
    quiet()
    assert planned() == [] and why(source) == [] and Job.objects.count() == DAYS
    streamed(source, day=1, at=900)
    quiet()
    assert planned() == []
    [again] = taken()
    assert (again.interval_start - DAY).days == 1 and len(again.segments) == 3
    replaced(again)
    assert [(day, rows) for day, _, rows in in_use(source)] == [(0, 10), (0, 10), (1, 15), (1, 15), (2, 10), (2, 10)]
    quiet()
    assert planned() == [] and why(source) == [] and not Rewrite.objects.exists()


def test_one_whose_segments_change_is_refused_alone(source: Source) -> None:
    planned()
    first, second, third = taken()
    Segment.objects.filter(pk=second.segments[0].id).update(used=False)
    replaced(first)
    with pytest.raises(PublishRefused) as refused:
        replaced(second)
    replaced(third)
    assert refused.value.refusal.code == "changed"
    states = list(Job.objects.order_by("interval_start").values_list("state", flat=True))
    assert states == [State.DONE, State.REFUSED, State.DONE]
    assert [bool(i.partitioned_by) for i in Interval.objects.order_by("start")] == [True, False, True]
    assert planned() == []
    [again] = taken()
    assert [s.id for s in again.segments] == [second.segments[1].id]


def test_one_that_fails_is_tried_again_later_and_takes_no_other_with_it(source: Source) -> None:
    planned()
    first, second, third = taken()
    jobs.fail(RESIDENT, second.job_id, FailedRequest(attempt=1, error="the disk is full"))
    for job in (first, third):
        replaced(job)
    planning.forget_resting()
    assert planned() == [] and taken() == []
    [said] = why(source)
    assert "the disk is full" in said
    Job.objects.filter(pk=second.job_id).update(ended_at=timezone.now() - backoff.FIRST_PAUSE)
    planning.forget_resting()
    assert planned() == [] and [j.interval_start for j in taken()] == [second.interval_start]


def test_what_is_appended_meanwhile_stays_and_leaves_its_interval_unfinished(source: Source) -> None:
    planned()
    first, *_ = taken()
    streamed(source, at=900)
    replaced(first)
    assert [rows for day, _, rows in in_use(source) if day == 0] == [10, 10, 10]
    assert Interval.objects.get(start=DAY).partitioned_by == ""


def test_larger_ones_have_tasks_and_jobs_leave_room_for_merges(
    source: Source, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.COMPACTION_JOB_BYTES = 250
    streamed(source, day=1, at=900)
    quiet()
    assert [t.spec["ioConfig"]["inputSpec"]["interval"][:10] for t in planned()] == ["2025-06-02"]
    assert sorted((j.interval_start - DAY).days for j in Job.objects.all()) == [0, 2]
    Job.objects.all().delete()
    monkeypatch.setattr(planning, "MAX_WAITING_REWRITES", 1)
    planned()
    planned()
    assert Job.objects.count() == 1
