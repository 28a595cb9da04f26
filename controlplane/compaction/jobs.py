"""The life of a job: taken up by an application, ended by a replace, given back when its application dies.

A job is its own fence: each time it is handed out its attempt grows, and only the newest attempt may replace anything.
"""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.common.changes import Change, notify_pages
from controlplane.compaction import rewrites
from controlplane.compaction.models import OPEN, Job, State
from controlplane.publishing import replace as replace_transaction
from controlplane.publishing.fence import PublishRefused
from controlplane.segments.models import Segment
from controlplane.tasks import residents
from controlplane.tasks.models import Resident
from ingestion.specs.messages.compaction import (
    CompactionJob,
    FailedRequest,
    InputSegment,
    ReplaceRequest,
    WorkAnswer,
    WorkRequest,
)
from ingestion.specs.messages.protocol import Column, Refusal
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.schema.index_spec import IndexSpec
from ingestion.specs.tasks.batch import parse_batch_spec

REDELIVERY_AFTER = timedelta(seconds=10)  # a job that its application does not name by then has not reached it
ERROR_LENGTH = 4000
RETENTION = timedelta(days=30)
NAME = "compaction"


@transaction.atomic
def assign_jobs(application: str, request: WorkRequest) -> WorkAnswer:
    """What is new to do for an application, and what is no longer its own."""
    now = timezone.now()
    resident = Resident.objects.select_for_update().get(pk=application)
    mine = {j.pk: j for j in Job.objects.filter(application=application, state=State.RUNNING)}
    dropped = [pk for pk, attempt in request.running.items() if pk not in mine or mine[pk].attempt != attempt]
    lost = [j.pk for pk, j in mine.items() if pk not in request.running and _is_overdue(j, now)]
    Job.objects.filter(pk__in=lost).update(state=State.WAITING, application=None)
    assigned = (mine.keys() - set(lost)) | request.running.keys()
    # Of a cluster Spark says how many cores there are, which are more than its slots of the pool.
    # Tasks that write intervals anew take of its share, but for one place.
    slots = max(1, resident.slots - rewrites.slots_taken())
    room = min(request.free, slots - len(assigned))
    claimed = [] if resident.finishing else _claim_jobs(resident, room, now)
    idle = not (request.running or claimed)
    resident.idle_since = (resident.idle_since or now) if idle else None
    resident.last_heartbeat_at = now
    resident.finishing = resident.finishing or _must_finish(resident, now)
    resident.save()
    handed_out = [message for job in claimed if (message := _job_message(job)) is not None]
    return WorkAnswer(directive="finish" if resident.finishing else "continue", jobs=handed_out, dropped=dropped)


def _is_overdue(job: Job, now: datetime) -> bool:
    return job.started_at is None or now - job.started_at > REDELIVERY_AFTER


def _must_finish(resident: Resident, now: datetime) -> bool:
    """It has nothing to do any more, ingestion waits for its places, or it is to have more or fewer of them."""
    idle = resident.idle_since is not None and now - resident.idle_since >= settings.COMPACTION_IDLE
    return idle or residents.must_give_way() or residents.has_old_share(resident)


def _claim_jobs(resident: Resident, free: int, now: datetime) -> list[Job]:
    waiting = Job.objects.select_for_update(skip_locked=True, of=["self"]).select_related("datasource")
    jobs = list(waiting.filter(state=State.WAITING).order_by("-priority", "created_at")[: max(0, free)])
    for job in jobs:
        job.state, job.application, job.started_at, job.error = State.RUNNING, resident, now, ""
        job.attempt += 1
        job.save()
    return jobs


def _job_message(job: Job) -> CompactionJob | None:
    """The job as its application is told it; None when its segments are no longer in use: it is over then."""
    by_id = {s.pk: s for s in Segment.objects.filter(pk__in=job.inputs, used=True).select_related("schema")}
    if len(by_id) != len(job.inputs):
        _end(job, State.REFUSED, error="Its segments were replaced before it ran.")
        return None
    segments = [by_id[i] for i in job.inputs]
    schemas = {s.schema_id: s.columns for s in segments}
    return CompactionJob(
        job_id=job.pk,
        attempt=job.attempt,
        interval_start=job.interval_start,
        interval_end=job.interval_end,
        version=segments[0].version,
        data_schema=DataSchema.model_validate(job.data_schema),
        index_spec=IndexSpec.model_validate(job.index_spec),
        rollup=job.rollup,
        segments=[
            InputSegment(id=s.pk, path=s.path, rows=s.rows, size_bytes=s.size_bytes, sha256=s.sha256) for s in segments
        ],
        schemas=[[Column.model_validate(column) for column in columns] for columns in schemas.values()],
        max_rows_per_segment=job.max_rows_per_segment,
        anew=parse_batch_spec(job.anew).spec if job.anew else None,
        deep_storage=settings.DEEP_STORAGE,
        failpoints=_failpoints(job),
    )


def _failpoints(job: Job) -> dict[str, str]:
    """What a test wants of this datasource's compaction; nothing in production."""
    if not settings.FAILPOINTS_FILE:
        return {}
    failpoints: dict[str, dict[str, str]] = json.loads(Path(settings.FAILPOINTS_FILE).read_text())
    return failpoints.get(f"{job.datasource.name}/compaction", {})


def datasource_of(application: str, job_id: str) -> int:
    """Whose segments the job merges. Raises ``PublishRefused`` (fenced) if it is not the application's."""
    jobs = Job.objects.filter(pk=job_id, application=application, state=State.RUNNING)
    datasource: int | None = jobs.values_list("datasource_id", flat=True).first()
    if datasource is None:
        raise PublishRefused(Refusal(code="fenced", detail=f"{job_id} is not a job of {application} any more."))
    return datasource


def replace(application: str, job_id: str, request: ReplaceRequest) -> list[uuid.UUID]:
    """End a job by its replace. Sent again, it answers as the first time.

    Raises ``PublishRefused``: fenced, when another attempt has the job; changed, when the job is over, as its segments
    are no longer those in use. Raises ``InvalidInput`` for what does not add up.
    """
    try:
        _prepare(application, job_id, request)
        return _replace(application, job_id, request)
    except PublishRefused as refused:
        if refused.refusal.code == "changed":
            _end_if_open(job_id, request.attempt, State.REFUSED, refused.refusal.detail)
        raise


def _prepare(application: str, job_id: str, request: ReplaceRequest) -> None:
    """Nothing where it will be refused, or answered as the first time."""
    mine = Job.objects.filter(pk=job_id, application=application, attempt=request.attempt, state=State.RUNNING)
    job = mine.select_related("datasource").first()
    if job is not None:
        replace_transaction.prepare_replace(_place(job), request)


def _place(job: Job) -> replace_transaction.ReplaceTarget:
    return replace_transaction.ReplaceTarget(
        job.datasource, job.interval_start, job.interval_end, job.pk, job.rollup, job.partitioned_by
    )


@transaction.atomic
def _replace(application: str, job_id: str, request: ReplaceRequest) -> list[uuid.UUID]:
    job = Job.objects.select_for_update(of=["self"]).select_related("datasource").filter(pk=job_id).first()
    earlier_answer = replace_transaction.committed_ids(request.replace_id)
    if earlier_answer is not None:
        return earlier_answer
    if job is None or (job.application_id, job.attempt, job.state) != (application, request.attempt, State.RUNNING):
        raise PublishRefused(Refusal(code="fenced", detail=f"Attempt {request.attempt} of {job_id} is over."))
    segment_ids = replace_transaction.replace(_place(job), request)
    job.rows_after = sum(f.rows for f in request.segments)
    job.bytes_after = sum(f.size_bytes for f in request.segments)
    job.segments_after = len(segment_ids)
    _end(job, State.DONE)
    notify_pages(Change(team=job.datasource.team_id, datasource=job.datasource.name))
    return segment_ids


def fail(application: str, job_id: str, request: FailedRequest) -> None:
    """An attempt of an application came to nothing."""
    if Job.objects.filter(pk=job_id, application=application).exists():
        _end_if_open(job_id, request.attempt, State.FAILED, request.error, request.permanent)


def requeue_jobs(application: str) -> int:
    """Of an application that has ended: what it had not done waits again, and says why."""
    error = Resident.objects.filter(pk=application).values_list("error", flat=True).first() or ""
    return Job.objects.filter(application=application, state=State.RUNNING).update(
        state=State.WAITING, application=None, error=error
    )


def _end_if_open(job_id: str, attempt: int, state: State, error: str, permanent: bool = False) -> None:
    Job.objects.filter(pk=job_id, attempt=attempt, state__in=OPEN).update(
        state=state, error=error[:ERROR_LENGTH], permanent=permanent, ended_at=timezone.now()
    )


def _end(job: Job, state: State, error: str = "") -> None:
    job.state, job.error, job.ended_at = state, error, timezone.now()
    job.save()


def drop_old() -> int:
    """Forget jobs that ended long ago; whose segments are in use stays, since it says under which schema."""
    old = Job.objects.filter(ended_at__lt=timezone.now() - RETENTION).exclude(state=State.DONE)
    return old.delete()[0]
