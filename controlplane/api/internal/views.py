"""Assignment, start, publish, heartbeat, end: see ``ingestion.specs.messages.protocol`` for the messages."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Literal, cast

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse

from controlplane.api.internal.base import for_task, message, outcome_of, parse_body
from controlplane.common.errors import InvalidInput
from controlplane.common.measures import PUBLISHES, timed
from controlplane.connections.client_properties import client_properties
from controlplane.connections.named_connections import with_registries
from controlplane.connections.secrets import unseal
from controlplane.publishing import claims, fence, rewinds
from controlplane.publishing import publish as publish_transaction
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.models import IndexerFence
from controlplane.publishing.selectors.totals import parse_exceptions_of
from controlplane.publishing.settled import settled_among
from controlplane.quarantine import replays
from controlplane.segments import columns
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import source_key
from controlplane.supervisors.services import run_soon
from controlplane.tasks import heartbeats, publish_checks
from controlplane.tasks.models import Task
from controlplane.tasks.selectors import first_created_at
from controlplane.tasks.sources import consumer_group, owner_of, properties_of
from ingestion.specs.inputs.io_config import IOConfig
from ingestion.specs.messages.column_ids import ColumnsRequest
from ingestion.specs.messages.protocol import (
    AbandonAnswer,
    AbandonRequest,
    Assignment,
    ClaimRequest,
    EndAnswer,
    EndRequest,
    HeartbeatRequest,
    PublishRequest,
    Refusal,
    Replay,
    SettledAnswer,
    SettledRequest,
    StartAnswer,
    StartRequest,
)
from ingestion.specs.messages.replays import KeptRecords, ProducedAnswer, ProducedRequest
from ingestion.specs.tasks.ingestion_spec import parse_task_spec


@for_task("GET")
def assignment(request: HttpRequest, task_id: str) -> HttpResponse:
    """The application's assignment. Only this answer has the spec's secrets, and only the task's token gets it."""
    task = _task(task_id)
    spec = parse_task_spec(with_registries(task.datasource.team_id, task.spec, unseal(task.secrets)))
    created_at = first_created_at(task)
    return message(
        Assignment(
            task_id=task.pk,
            kind=task.kind,
            spec=spec.spec,
            consumer_properties=client_properties(properties_of(task)),
            address_policy=settings.ADDRESS_POLICY,
            indexers=task.indexers_wanted,
            deep_storage=settings.DEEP_STORAGE,
            schema_folder=settings.SCHEMA_FOLDER,
            version=task.datasource.append_version,
            created_at=created_at,
            reads_until=_reads_until(task, spec.spec.ioConfig, created_at),
            most_failures=settings.INDEXER_MOST_FAILURES,
            group=consumer_group(task),
            ranges=task.ranges,
            bounded=task.is_bounded,
            dry_run=task.kind == Task.Kind.REWIND and rewinds.is_dry_run(task.pk),
            replaces=rewinds.compared_files(task.pk) if task.kind == Task.Kind.REWIND else [],
            replay=_replay(task),
            failpoints=_failpoints(task),
        )
    )


def _reads_until(task: Task, io_config: IOConfig, created_at: datetime) -> datetime | None:
    """The offsets at which a task ends. None for tasks that read until nothing is left."""
    by_hand = task.kind == Task.Kind.REPLAY or task.is_bounded or not task.supervisor_id
    ends = io_config.traits.ends_by_time and not by_hand and io_config.taskDuration
    return created_at + ends if ends else None


def _replay(task: Task) -> Replay | None:
    source = task.replay_source
    if source is None:
        return None
    mode = cast("Literal['ingest', 'produce']", task.replay_mode)
    return Replay(mode=mode, cluster_id=source.cluster_id, topic_id=source.topic_id)


@for_task("POST")
def start(request: HttpRequest, task_id: str, number: int) -> HttpResponse:
    """An indexer starts: it takes over its source, and a new epoch fences its predecessor."""
    task = _task(task_id)
    body = parse_body(request, StartRequest)
    _check_predecessor(task)
    source = task.replay_source or _adopt_source(task, body)
    fence.record_unpublished(
        task_id=task_id,
        number=number,
        epoch=body.previous_epoch,
        unpublished=body,
    )
    taken = fence.take_epoch(
        task_id=task_id,
        number=number,
        datasource=task.datasource,
        source=source,
        replay=task.kind == Task.Kind.REPLAY,
        bounded=task.is_bounded,
        rewinds=task.kind == Task.Kind.REWIND,
        previous_epoch=body.previous_epoch,
    )
    publishes = taken.publishes if body.counts_publishes else None
    answer = StartAnswer(epoch=taken.epoch, publishes=publishes, parse_exceptions=parse_exceptions_of(task_id))
    return message(answer, exclude_none=True)


def _adopt_source(task: Task, body: StartRequest) -> Source:
    key, topic = source_key(task.io_config, owner_of(task)), task.io_config.topic
    publish_checks.check_topic(task, body, topic, key["group"])
    return fence.adopt_source(
        datasource=task.datasource,
        **key,
        topic=topic,
        cluster_id=body.cluster_id,
        topic_id=body.topic_id,
    )


def _check_predecessor(task: Task) -> None:
    """Refuses an indexer while an older task of the supervisor still reads: the new task continues where that one ends.

    Replicas do not wait for each other: they read the same records, and the first publish wins. No task waits for one
    that has not begun, because it may never begin. If two begin at once, the stored offsets let only one publish.
    """
    if not task.reads or not task.io_config.traits.keeps_offsets or not task.supervisor_id:
        return
    has_started = Exists(IndexerFence.objects.filter(task_id=OuterRef("pk")))
    others = Task.objects.active().reading().filter(has_started, supervisor_id=task.supervisor_id).exclude(pk=task.pk)
    if task.replica_group:
        others = others.exclude(replica_group=task.replica_group)
    before = others.order_by("created_at").first()
    if before is not None:
        raise PublishRefused(Refusal(code="predecessor", detail=f"Task {before.pk} has not ended yet."))


@for_task("POST")
def claim(request: HttpRequest, task_id: str, number: int) -> HttpResponse:
    """The offsets at which an indexer continues some partitions."""
    body = parse_body(request, ClaimRequest)
    task = _task(task_id)
    if task.is_bounded:
        ranges = [(r["partition"], r["start"], r["end"]) for r in task.ranges]
        return message(claims.claim_within(task_id=task_id, number=number, request=body, ranges=ranges))
    may_reset = bool(task.spec["spec"].get("tuningConfig", {}).get("resetOffsetAutomatically"))
    return message(
        claims.claim(task_id=task_id, number=number, request=body, may_reset=may_reset, topic_missed=task.topic_missed)
    )


@for_task("POST")
def settled(request: HttpRequest, task_id: str, number: int) -> HttpResponse:
    """Which of the given offsets are settled."""
    body = parse_body(request, SettledRequest)
    source = IndexerFence.objects.filter(task_id=task_id, number=number).values_list("source_id", flat=True).first()
    if source is None:
        raise InvalidInput("The indexer has not started yet.")
    return message(SettledAnswer(settled=settled_among(source, body.offsets)))


@for_task("POST")
def column_ids(request: HttpRequest, task_id: str) -> HttpResponse:
    """The ids of the columns that the task will write. New columns get ids."""
    body = parse_body(request, ColumnsRequest)
    datasource = Task.objects.values_list("datasource_id", flat=True).get(pk=task_id)
    return message(columns.assign_column_ids(datasource, body))


@for_task("POST")
def publish(request: HttpRequest, task_id: str, number: int) -> HttpResponse:
    """Publish a batch: 200, or 409 with a refusal that says what to do.

    A problem refuses it permanently: 400 for invalid content, 413 for its size, 409 for a contradiction.
    """
    body = parse_body(request, PublishRequest)
    with timed(PUBLISHES, "stream", outcome_of):
        publish_checks.check_publish(task_id, number, body)
        answer = publish_transaction.publish(task_id=task_id, number=number, request=body)
    return message(answer)


@for_task("POST")
def abandon(request: HttpRequest, task_id: str, number: int) -> HttpResponse:
    """Abandon a publish, or learn that it was committed."""
    body = parse_body(request, AbandonRequest)
    return message(AbandonAnswer(committed=fence.abandon(task_id=task_id, number=number, request=body)))


@for_task("GET")
def quarantined(request: HttpRequest, task_id: str) -> HttpResponse:
    """Some of the quarantined records that this replay reads, with ids above ``after``."""
    after = request.GET.get("after", "0")
    if not after.isdecimal() or len(after) > 18:
        raise InvalidInput("after must be a record's number.")
    return message(KeptRecords.model_construct(records=replays.held_records(task_id, int(after))))


@for_task("POST")
def produced(request: HttpRequest, task_id: str) -> HttpResponse:
    """The broker confirmed these records of a replay."""
    body = parse_body(request, ProducedRequest)
    return message(ProducedAnswer(noted=replays.mark_produced(task_id, body.records)))


@for_task("POST")
def heartbeat(request: HttpRequest, task_id: str) -> HttpResponse:
    """The application sends its counters and gets directives."""
    task = heartbeats.reporting_task(task_id)
    answer = heartbeats.heartbeat(task, parse_body(request, HeartbeatRequest))
    return message(answer, exclude_none=True)


@for_task("POST")
def end(request: HttpRequest, task_id: str) -> HttpResponse:
    """The application's last word; its token ends with it."""
    task = _task(task_id)
    heartbeats.end(task, parse_body(request, EndRequest))
    if task.supervisor_id:
        run_soon(task.supervisor_id)
    return message(EndAnswer())


def _task(task_id: str) -> Task:
    return Task.objects.select_related("datasource", "replay_source").get(pk=task_id)


def _failpoints(task: Task) -> dict[str, str]:
    """The failpoints that a test set for this datasource's applications or repairs. Empty in production."""
    if not settings.FAILPOINTS_FILE:
        return {}
    failpoints: dict[str, dict[str, str]] = json.loads(Path(settings.FAILPOINTS_FILE).read_text())
    name = task.datasource.name
    return failpoints.get(f"{name}/repair" if task.kind == Task.Kind.REPAIR else name, {})
