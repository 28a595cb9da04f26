"""Batch tasks: submitted, told what to do, and ended by their one publish."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.common.errors import Conflict, InvalidInput
from controlplane.common.ids import task_id
from controlplane.connections.secrets import seal
from controlplane.datasources.masking import require_record_access
from controlplane.datasources.models import Datasource, append_version
from controlplane.datasources.selectors import find_datasource
from controlplane.datasources.services import datasource_for_ingestion
from controlplane.publishing.batch import (
    MAX_INPUTS,
    BatchTarget,
    prepare_batch,
    publish_batch,
    segments_in_use,
)
from controlplane.publishing.fence import take_epoch
from controlplane.publishing.publish import with_retries
from controlplane.quotas.services import quota_of
from controlplane.segments.models import Segment
from controlplane.tasks.celery_tasks import launch_on_commit
from controlplane.tasks.checking import read_spec
from controlplane.tasks.input_locations import check_places
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Task
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import Action
from ingestion.specs.counters import Counters
from ingestion.specs.inputs.input_source import DruidInputSource
from ingestion.specs.kafka import secrets as spec_secrets
from ingestion.specs.messages.batch_protocol import BatchAssignment, BatchPublishAnswer, BatchPublishRequest, Reachable
from ingestion.specs.messages.compaction import InputSegment
from ingestion.specs.messages.publish_limits import MAX_QUARANTINED
from ingestion.specs.schema.intervals import interval_ms
from ingestion.specs.schema.partitions import effect_of
from ingestion.specs.tasks.batch import BatchSpec, BatchTaskSpec, parse_batch_spec

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def submit_batch(*, user: User, document: Any, team_name: str | None = None) -> Task:
    """Take a batch task. Raises ``InvalidInput`` with every fault, ``NotAllowed``, ``Conflict``."""
    spec = check_batch(user, document)
    with transaction.atomic():
        datasource = datasource_for_ingestion(
            user=user, name=spec.datasource, team_name=team_name, action=Action.OPERATE
        )
        task = _create(datasource, spec, user)
        audit.record(user=user, team=datasource.team, target="task", target_id=task.pk, action="submit")
        return task


def check_batch(user: User, document: Any) -> BatchTaskSpec:
    """The spec, which could be submitted; changes nothing. Raises ``InvalidInput``, ``NotFound``, ``NotAllowed``."""
    spec = read_spec(user, document, parse_batch_spec)
    check_places(document, spec)
    check_source(user, spec)
    return spec


def check_source(user: User, spec: BatchTaskSpec) -> None:
    """Raise ``NotFound`` or ``NotAllowed`` for rows that the user may not read, and what ``inputs_of`` does."""
    source = spec.spec.ioConfig.inputSource
    if isinstance(source, DruidInputSource):
        read = find_datasource(user, source.dataSource)
        require_record_access(user, read, "copying its rows (this would reveal masked columns)")
        inputs_of(spec.spec)


def inputs_of(spec: BatchSpec) -> list[Segment]:
    """The segments that are to be read, if it reads segments. Raises ``InvalidInput``."""
    source = spec.ioConfig.inputSource
    if not isinstance(source, DruidInputSource):
        return []
    span = _span(source.interval)
    segments = segments_in_use(Datasource.objects.get(name=source.dataSource), span)
    if len(segments) > MAX_INPUTS:
        raise InvalidInput(f"There are more than {MAX_INPUTS:,} segments in {source.interval}. Use a shorter one.")
    partial = [s for s in segments if not (span[0] <= s.interval_start and s.interval_end <= span[1])]
    if partial and spec.reindexes:
        start, end = (f"{t:%Y-%m-%dT%H:%M:%SZ}" for t in (partial[0].interval_start, partial[0].interval_end))
        raise InvalidInput(
            f"There are segments of {start}/{end}, which reaches beyond the interval {source.interval}. A segment "
            "can't be replaced in part. Choose an interval of whole segments."
        )
    return segments


def _create(datasource: Datasource, spec: BatchTaskSpec, user: User) -> Task:
    canonical, hidden = spec_secrets.split_secrets(spec.canonical())
    now = timezone.now()
    identifier = spec.id or task_id(spec.type, datasource.name, now)
    if Task.objects.filter(pk=identifier).exists():
        raise Conflict(f"There is a task {identifier!r} already.")
    slots = slots_of(datasource, spec)
    task = Task.objects.create(
        id=identifier,
        kind=spec.type,
        datasource=datasource,
        spec=canonical,
        secrets=seal(hidden),
        indexers_wanted=slots,
        slots=slots,
        submitted_by=user,
        created_at=now,
    )
    launch_on_commit(task)
    return task


def slots_of(datasource: Datasource, spec: BatchTaskSpec) -> int:
    """It gets what it has use for, if it may have so many: Druid's number is a bound, not a wish."""
    bounds = [spec.max_slots, settings.SPARK_SLOTS, settings.WORKER_CAPACITY, quota_of(datasource.team).indexers or 0]
    return min(bound for bound in bounds if bound)


def spec_of(task: Task) -> BatchTaskSpec:
    """Its spec. Raises ``SpecError`` for one of an earlier version that can't be read any more."""
    return parse_batch_spec(task.as_batch)


def start(task: Task) -> BatchAssignment:
    """What its driver is to do, from here on it alone. Raises ``InvalidInput``, with which the task has failed."""
    try:
        with transaction.atomic():
            spec = spec_of(task).spec
            return assignment(task, spec, inputs_of(spec))
    except InvalidInput as problem:
        end_task(task, error=problem.detail)
        raise


def assignment(task: Task, spec: BatchSpec, segments: Sequence[Segment] = ()) -> BatchAssignment:
    """With an epoch that is new: whoever asked before may publish no more. In a transaction."""
    fence = take_epoch(task_id=task.pk, datasource=task.datasource, replay=task.kind == Task.Kind.REPLAY)
    # It lasts from where its rows a second are counted from.
    Task.objects.filter(pk=task.pk, started_at=None).update(started_at=fence.started_at)
    return BatchAssignment(
        task_id=task.pk,
        epoch=fence.epoch,
        spec=spec,
        inputs=[
            InputSegment(id=s.pk, path=s.path, rows=s.rows, size_bytes=s.size_bytes, sha256=s.sha256) for s in segments
        ],
        slots=task.slots,
        deep_storage=settings.DEEP_STORAGE,
        version=append_version(timezone.now()),
        reachable=Reachable(
            local_folders=settings.LOCAL_INPUT_FOLDERS,
            locations=settings.INPUT_LOCATIONS,
            address_policy=settings.ADDRESS_POLICY,
        ),
        most_quarantined=min(settings.BATCH_QUARANTINED, MAX_QUARANTINED),
        failpoints=_failpoints(task),
    )


def publish(task: Task, request: BatchPublishRequest) -> BatchPublishAnswer:
    """Register all that it has written, and end it: what is sent once more finds it ended.

    Raises ``PublishRefused``, ``InvalidInput``, ``Conflict``.
    """
    spec = spec_of(task).spec
    drops = spec.dataSchema.granularitySpec.intervals or [] if spec.ioConfig.dropExisting else []
    place = BatchTarget(
        task_id=task.pk,
        datasource=task.datasource,
        appends=spec.ioConfig.appendToExisting,
        drops=tuple(_span(text) for text in drops),
        reindexes=spec.reindexes,
        partitioned_by=effect_of(dividing) if (dividing := spec.tuningConfig.dividing) else "",
    )
    return with_retries(lambda: _prepare_and_publish(task, place, request))


def _prepare_and_publish(task: Task, place: BatchTarget, request: BatchPublishRequest) -> BatchPublishAnswer:
    prepare_batch(place, request)
    return _publish(task, place, request)


@transaction.atomic
def _publish(task: Task, place: BatchTarget, request: BatchPublishRequest) -> BatchPublishAnswer:
    answer = publish_batch(place, request)
    message = f"Published {len(answer.segment_ids):,} segments; {answer.replaced:,} were overwritten."
    message += _unkept_text(request.counters)
    Task.objects.filter(pk=task.pk).update(message=message, unread=[record.model_dump() for record in request.unread])
    if not end_task(task):
        raise Conflict(f"Task {task.pk} has ended already.")
    return answer


def _unkept_text(counters: Counters) -> str:
    """How many records could not be read and are not in quarantine either: nothing where all are."""
    beyond = counters.unparseable - counters.quarantined
    if not beyond:
        return ""
    return (
        f" {counters.unparseable:,} records could not be read: {counters.quarantined:,} are in quarantine. The other "
        f"{beyond:,} are not kept: they are above the limit (HEADGATE_BATCH_QUARANTINED records or 16 MiB)."
    )


def _span(text: str) -> tuple[datetime, datetime]:
    start, end = (_EPOCH + timedelta(milliseconds=ms) for ms in interval_ms(text))
    return start, end


def _failpoints(task: Task) -> dict[str, str]:
    """What a test wants of this datasource's batch tasks; nothing in production."""
    if not settings.FAILPOINTS_FILE:
        return {}
    by_datasource: dict[str, dict[str, str]] = json.loads(Path(settings.FAILPOINTS_FILE).read_text())
    return by_datasource.get(f"{task.datasource.name}/batch", {})
