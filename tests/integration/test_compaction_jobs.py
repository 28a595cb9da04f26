"""Jobs of compaction on a real PostgreSQL: planned, handed out, ended once, and given back."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.utils import timezone

from controlplane.common.errors import InvalidInput, NotAllowed
from controlplane.compaction import backoff, configs, jobs, planning, selectors
from controlplane.compaction.configs import policies
from controlplane.compaction.models import Configured, Job, State
from controlplane.compaction.schemas import write_specs_of
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.models import Rewind, RewindPart
from controlplane.publishing.publication import store_schemas
from controlplane.segments.models import Interval, Replacement, Segment
from controlplane.segments.selectors.lists import list_segments
from controlplane.sources.models import Source
from controlplane.tasks.models import Resident, Task
from controlplane.teams.audit import AuditEntry
from controlplane.teams.models import User
from ingestion.specs.messages.compaction import CompactionJob, FailedRequest, ReplaceRequest, WorkRequest
from ingestion.specs.messages.protocol import Column
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.support.django_cast import spec_for
from tests.support.locks import held_up
from tests.support.publishes import DAY, TASK, make_source, request, segment, send, start

ROOT = User(username="root", is_superuser=True)


@pytest.fixture
def source(db: None, settings: LazySettings) -> Source:
    settings.AUTO_COMPACTION = True
    found = make_source("flights")
    a_task(found, TASK)
    return found


def a_task(source: Source, name: str, **schema: Any) -> None:
    spec = spec_for("flights", groupId="group")
    spec["dataSchema"] |= schema
    document = parse_task_spec(spec).canonical()
    Task.objects.create(
        pk=name,
        kind="share_group",
        datasource=source.datasource,
        spec=document,
        created_at=timezone.now(),
        status="SUCCESS",
    )


def an_application(**changes: Any) -> str:
    return Resident.objects.create(
        pk=f"compaction_{uuid.uuid4()}", token_hash="x", slots=2, launched_at=timezone.now(), **changes
    ).pk


def published(source: Source, count: int, size: int = 5, at: int = 0, task: str = TASK) -> None:
    epoch = start(source, task=task)
    for n in range(count):
        send(request(epoch, {0: [(at + n * size, at + (n + 1) * size)]}), task=task)
    Segment.objects.update(created_at=timezone.now() - timedelta(minutes=1))


def outcome(job: CompactionJob) -> ReplaceRequest:
    rows = sum(s.rows for s in job.segments)
    file = segment({0: [(0, rows)]}).model_copy(update={"offsets": {}})
    return ReplaceRequest(
        replace_id=uuid.uuid4(), attempt=job.attempt, read={s.id: s.rows for s in job.segments}, segments=[file]
    )


def asked(application: str, free: int = 2, **running: int) -> list[CompactionJob]:
    return jobs.assign_jobs(application, WorkRequest(running=running, free=free)).jobs


def test_what_is_due_becomes_one_job_which_is_done_once(source: Source) -> None:
    published(source, 20)
    assert planning.plan() == 1
    assert planning.plan() == 0  # one an interval and tier
    application = an_application()
    [job] = asked(application)
    assert (len(job.segments), job.rollup, job.attempt) == (20, False, 1)
    assert len(job.schemas) == 1
    assert asked(application, **{job.job_id: 1}) == []
    what = outcome(job)
    made = jobs.replace(application, job.job_id, what)
    assert jobs.replace(application, job.job_id, what) == made
    [live] = list_segments(source.datasource)
    assert (live.pk, live.rows, live.task_id) == (made[0], 100, job.job_id)
    kept = Job.objects.get()
    assert (kept.state, kept.rows_before, kept.rows_after, kept.segments_after) == (State.DONE, 100, 100, 1)
    with pytest.raises(PublishRefused, match="is over"):
        jobs.replace(application, job.job_id, outcome(job))


def test_no_more_run_at_once_than_it_has_slots(source: Source) -> None:
    """Whatever it says of itself: on a cluster Spark counts cores that are not its own."""
    for day in range(3):
        epoch = start(source)
        for n in range(20):
            records = {0: [(1000 * day + 5 * n, 1000 * day + 5 * n + 5)]}
            send(request(epoch, segments=[segment(records, DAY + day * timedelta(days=1))]))
    Segment.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    assert planning.plan() == 3
    application = an_application()
    Resident.objects.update(slots=1)
    [job] = asked(application, free=2)
    assert asked(application, free=2) == []  # it is on its way there
    assert asked(application, free=1, **{job.job_id: 1}) == []
    Job.objects.filter(pk=job.job_id).update(state=State.FAILED)
    assert asked(application, free=1, **{job.job_id: 1}) == []  # it is being given up
    [other] = asked(application, free=2)
    assert other.job_id != job.job_id
    Resident.objects.update(slots=2)
    assert len(asked(application, free=1, **{other.job_id: 1})) == 1


def test_of_two_attempts_the_newer_one_counts(source: Source) -> None:
    published(source, 20)
    planning.plan()
    first = an_application()
    [old] = asked(first)
    Resident.objects.update(ended_at=timezone.now())
    jobs.requeue_jobs(first)
    second = an_application()
    [new] = asked(second)
    assert (new.job_id, new.attempt) == (old.job_id, 2)
    for application in (first, second):
        with pytest.raises(PublishRefused) as refused:
            jobs.replace(application, old.job_id, outcome(old))
        assert refused.value.refusal.code == "fenced"
    assert jobs.assign_jobs(first, WorkRequest(running={old.job_id: 1}, free=0)).dropped == [old.job_id]
    jobs.replace(second, new.job_id, outcome(new))
    assert Interval.objects.get().segments == 1


@pytest.mark.django_db(transaction=True)
def test_whoever_has_the_same_new_schema_does_not_wait_for_the_replace(source: Source) -> None:
    published(source, 20)
    planning.plan()
    application = an_application()
    [job] = asked(application)
    what = outcome(job)
    new = [f.model_copy(update={"columns": [Column(name="new", type="long")]}) for f in what.segments]
    what = what.model_copy(update={"segments": new})
    with held_up(lambda: jobs.replace(application, job.job_id, what), Replacement):
        store_schemas(TASK, 0, new)
    assert [s.schema.columns for s in list_segments(source.datasource)] == [[{"name": "new", "type": "long"}]]


def test_only_who_has_the_job_is_told_ids_of_columns(source: Source) -> None:
    published(source, 20)
    planning.plan()
    application = an_application()
    [job] = asked(application)
    assert jobs.datasource_of(application, job.job_id) == source.datasource.pk
    jobs.requeue_jobs(application)
    with pytest.raises(PublishRefused) as refused:
        jobs.datasource_of(application, job.job_id)
    assert refused.value.refusal.code == "fenced"


def test_a_job_whose_segments_are_gone_is_over_and_planned_anew(source: Source) -> None:
    published(source, 20)
    planning.plan()
    application = an_application()
    [job] = asked(application)
    Segment.objects.filter(pk=job.segments[0].id).update(used=False)
    with pytest.raises(PublishRefused) as refused:
        jobs.replace(application, job.job_id, outcome(job))
    assert refused.value.refusal.code == "changed"
    assert Job.objects.get().state == State.REFUSED
    assert Segment.objects.filter(used=True).count() == 19
    assert planning.plan() == 1


def test_what_fails_is_tried_again_later_and_the_reason_is_shown(source: Source) -> None:
    published(source, 20)
    planning.plan()
    application = an_application()
    [job] = asked(application)
    jobs.fail(application, job.job_id, FailedRequest(attempt=1, error="the disk is full"))
    assert planning.plan() == 0
    [looked] = selectors.list_fragmented(source.datasource)
    assert looked.choice.health and (looked.choice.health.code, looked.choice.health.calls) == ("failed", True)
    assert "the disk is full" in looked.choice.health.cause
    Job.objects.update(ended_at=timezone.now() - backoff.FIRST_PAUSE)
    assert planning.plan() == 1


def test_segments_of_different_metrics_are_not_merged_with_each_other(source: Source) -> None:
    a_task(source, "task-2", metricsSpec=[{"type": "count", "name": "n"}], granularitySpec={"rollup": True})
    a_task(source, "task-3", metricsSpec=[{"type": "longLast", "name": "n", "fieldName": "n"}])
    published(source, 20)
    published(source, 20, at=1000, task="task-2")
    published(source, 5, at=2000, task="nobody knows")
    known = write_specs_of(["task-2", "task-3", TASK, "nobody knows"])
    assert {name: w.rolls_up(False) for name, w in known.items()} == {TASK: False, "task-2": True, "task-3": False}
    assert len({w.kind(False) for w in known.values()}) == 3
    planning.plan()
    [job] = asked(an_application())
    assert len(job.segments) == 20
    writers = set(Segment.objects.filter(pk__in=[s.id for s in job.segments]).values_list("task_id", flat=True))
    assert len(writers) == 1


def test_first_and_last_values_become_one_where_segments_keep_their_times(source: Source) -> None:
    """Older ones have jobs of their own, and stay as they are but for their order."""
    last = [{"type": "longLast", "name": "n", "fieldName": "n"}]
    a_task(source, "sums", metricsSpec=last, granularitySpec={"rollup": True, "segmentGranularity": "DAY"})
    epoch = start(source, task="sums")
    for n in range(40):
        made = segment({0: [(5 * n, 5 * n + 5)]}).model_copy(update={"extents": n % 2 == 0})
        send(request(epoch, segments=[made]), task="sums")
    Segment.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    application = an_application()
    outcomes: dict[bool, CompactionJob] = {}
    for _ in range(2):
        assert planning.plan() == 1  # one an interval and tier
        [job] = asked(application)
        outcomes[job.rollup] = job
        kept = Segment.objects.filter(pk__in=[s.id for s in job.segments]).values_list("schema__extents", flat=True)
        assert list(kept) == 20 * [job.rollup]
        what = outcome(job)
        files = [f.model_copy(update={"extents": job.rollup}) for f in what.segments]
        jobs.replace(application, job.job_id, what.model_copy(update={"segments": files}))
    assert set(outcomes) == {False, True}
    merged = list_segments(source.datasource).values_list("schema__extents", "schema__columns")
    assert sorted(extents for extents, _ in merged) == [False, True]
    assert [[c["name"] for c in columns] for _, columns in merged] == [["item"], ["item"]]
    assert len({kind.kind for kind in planning.segments_of(Interval.objects.get())[0]}) == 2


def test_a_config_is_read_strictly_and_says_what_is_merged(source: Source) -> None:
    datasource = source.datasource
    root = User.objects.create(username="root", is_superuser=True)
    for document, fault in (
        ({"dataSource": "flights", "granularitySpec": {}}, "granularitySpec is not supported"),
        ({"dataSource": "flights", "skipOffsetFromLatest": "a day"}, "skipOffsetFromLatest: .*duration"),
        ({"dataSource": "flights", "tuningConfig": {"partitionsSpec": {"type": "other"}}}, "partitionsSpec"),
        ({"dataSource": "flights", "engine": "msq"}, "engine"),
        ([], "config"),
    ):
        with pytest.raises(InvalidInput, match=fault):
            configs.read_config(document)
    published(source, 20)
    late = {"dataSource": "flights", "skipOffsetFromLatest": "P1D", "tuningConfig": {"type": "index_parallel"}}
    configs.set_config(user=root, datasource=datasource, config=configs.read_config(late), comment="why")
    assert planning.plan() == 0
    assert selectors.status_of(datasource).skipped.segments == 20
    [looked] = selectors.list_fragmented(datasource)
    assert "skipOffsetFromLatest" in str(looked.choice.health)
    few = {"dataSource": "flights", "tuningConfig": {"partitionsSpec": {"type": "dynamic", "maxRowsPerSegment": 40}}}
    configs.set_config(user=root, datasource=datasource, config=configs.read_config(few))
    assert selectors.status_of(datasource).awaiting == selectors.Amount(1000, 20, 1)
    planning.plan()
    [job] = asked(an_application())
    assert (len(job.segments), job.max_rows_per_segment) == (8, 40)
    configs.turn_off(user=root, datasource=datasource)
    assert configs.config_of(datasource) is None
    assert [c.document for c in selectors.list_changes(datasource)] == [None, few, late]
    actions = AuditEntry.objects.filter(target="datasource").order_by("id").values_list("action", flat=True)
    assert list(actions) == ["set_compaction", "set_compaction", "turn_off_compaction"]


def test_it_is_off_where_the_site_says_so_and_on_where_it_was_turned_on(source: Source, settings: LazySettings) -> None:
    settings.AUTO_COMPACTION = False
    published(source, 20)
    assert planning.plan() == 0
    Configured.objects.create(
        datasource=source.datasource, document={"dataSource": "flights"}, updated_at=timezone.now()
    )
    assert planning.plan() == 1


def test_who_may_only_look_sets_nothing(source: Source) -> None:
    viewer = User.objects.create(username="viewer")
    with pytest.raises(NotAllowed):
        configs.set_config(
            user=viewer, datasource=source.datasource, config=configs.read_config({"dataSource": "flights"})
        )
    assert not Configured.objects.exists()


def test_the_application_ends_when_idle_and_gives_way_to_ingestion(source: Source, settings: LazySettings) -> None:
    application = an_application()
    assert jobs.assign_jobs(application, WorkRequest(free=2)).directive == "continue"
    Resident.objects.update(idle_since=timezone.now() - settings.COMPACTION_IDLE)
    assert jobs.assign_jobs(application, WorkRequest(free=2)).directive == "finish"
    Resident.objects.update(ended_at=timezone.now())
    settings.WORKER_CAPACITY = 2
    busy = an_application()
    spec = parse_task_spec(spec_for("flights", groupId="group")).canonical()
    Task.objects.create(
        pk="waits", kind="share_group", datasource=source.datasource, spec=spec, created_at=timezone.now()
    )
    assert jobs.assign_jobs(busy, WorkRequest(free=2)).directive == "finish"
    published(source, 20)
    planning.plan()
    assert asked(busy) == []


def test_nothing_is_planned_where_a_part_of_a_rewind_waits(source: Source) -> None:
    published(source, 20)
    now = timezone.now()
    rewind = Rewind.objects.create(
        datasource=source.datasource, source=source, spec={}, choice={}, by="somebody", created_at=now
    )
    part = RewindPart.objects.create(
        rewind=rewind, number=0, taken=[], ranges=[], interval_start=DAY, interval_end=DAY + timedelta(days=1)
    )
    assert planning.plan() == 0
    RewindPart.objects.filter(pk=part.pk).update(state=RewindPart.State.DONE)
    assert planning.plan() == 1


def test_segments_of_a_rewind_are_not_merged_while_it_can_be_undone(source: Source, settings: LazySettings) -> None:
    published(source, 20)
    rewound = list(Segment.objects.order_by("created_at").values_list("pk", flat=True)[:18])
    now = timezone.now()
    rewind = Rewind.objects.create(
        datasource=source.datasource, source=source, spec={}, choice={}, by="somebody", created_at=now
    )
    part = RewindPart.objects.create(
        rewind=rewind, number=0, taken=[], ranges=[], made=rewound, state=RewindPart.State.DONE, ended_at=now
    )
    assert planning.plan() == 0
    interval = Interval.objects.get()
    health = planning.plan_interval(interval, policies()[interval.datasource_id]).choice.health
    assert health is not None and health.cause.endswith(
        " Segments of a rewind are not merged as long as it can be undone."
    )
    planning.forget_resting()
    RewindPart.objects.filter(pk=part.pk).update(ended_at=now - settings.KILL_BUFFER_PERIOD)
    assert planning.plan() == 1
