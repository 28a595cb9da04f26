"""What a running application says of itself, once a second, and what it is answered."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from controlplane.publishing.claims import report_lost_publishes
from controlplane.publishing.fence import record_unpublished
from controlplane.publishing.models import IndexerFence
from controlplane.publishing.selectors.totals import fence_totals
from controlplane.sources.models import SourceEvent
from controlplane.spark import spark_master
from controlplane.tasks import bounded_reads, events
from controlplane.tasks.change_notifications import notify_indexers_changed, notify_task_changed
from controlplane.tasks.lifecycle import end_task, interrupt_task
from controlplane.tasks.models import Status, Task
from ingestion.specs.inputs.sources import all_traits
from ingestion.specs.messages.protocol import Directive, EndRequest, HeartbeatAnswer, HeartbeatRequest, IndexerStatus

ALARM_AFTER = 3  # failures in a row
STARTUP_TIME = timedelta(minutes=5)  # executors that are not up by then are not only unpacking
FAILING, LOST = SourceEvent.Kind.FAILING, SourceEvent.Kind.OFFSET_RESET
_WITH_STORED_OFFSETS = {traits.kind for traits in all_traits() if traits.keeps_offsets}
# A task's documents are long, and a heartbeat asks for none of them.
_READ = ("kind", "supervisor_id", "goal", "indexers_wanted", "started_at", "message", "datasource")
_COLUMNS = (
    "number",
    "epoch",
    "state",
    "pid",
    "in_flight",
    "partitions",
    "restarts",
    "ack_failures",
    "redelivery_counts",
    "leases",
    "holding",
    "message",
    "last_heartbeat_at",
)
# In one statement, of what came as it came: an application says it each second.
_STORE = f"""
    INSERT INTO tasks_indexer (task_id, {", ".join(_COLUMNS)})
    SELECT %s, number, epoch, state, pid, in_flight, partitions, restarts, ack_failures, redelivery_counts, leases,
           holding, left(message, 2000), %s
    FROM jsonb_to_recordset(%s::jsonb -> 'indexers') AS i (
        number int, epoch int, state text, pid int, in_flight int, partitions jsonb, restarts int, ack_failures int,
        redelivery_counts jsonb, leases jsonb, holding jsonb, message text
    )
    ON CONFLICT (task_id, number) DO UPDATE SET ({", ".join(_COLUMNS)})
        = ROW ({", ".join(f"excluded.{column}" for column in _COLUMNS)})
"""  # noqa: S608 - names of ours


def reporting_task(task_id: str) -> Task:
    """With what ``heartbeat`` asks for."""
    return Task.objects.select_related("datasource").only(*_READ).get(pk=task_id)


def heartbeat(task: Task, request: HeartbeatRequest) -> HeartbeatAnswer:
    """Keep the application's state; answer with the task's goal. The answer proves that the store commits."""
    now = timezone.now()
    waits = bool(request.indexers) and all(i.state == "waiting_for_slot" for i in request.indexers)
    if waits and now - (task.started_at or now) < STARTUP_TIME and spark_master.has_cores(task.pk):
        # Spark counts a slot once its executor is up, which has the code to unpack first: there is room already.
        starting = [i.model_copy(update={"state": "starting"}) for i in request.indexers]
        request, waits = request.model_copy(update={"indexers": starting}), False
    changes: dict[str, Any] = {
        "last_heartbeat_at": now,
        "message": request.message[:2000],
        "without_slot_since": Coalesce("without_slot_since", Value(now)) if waits else None,
    }
    if task.is_batch:
        changes |= {"parts": request.parts, "parts_done": request.parts_done}
    if any(i.in_flight for i in request.indexers):
        changes["last_activity_at"] = now
    with transaction.atomic():
        Task.objects.active().filter(pk=task.pk).update(
            status=Status.RUNNING, started_at=Coalesce("started_at", Value(now)), **changes
        )
        _store_indexers(task, request)
        _report_failing(task, request.indexers)
    notify_indexers_changed(task, request.indexers)
    if task.is_batch and request.message != task.message:
        notify_task_changed(task)
    return HeartbeatAnswer(
        directive=cast("Directive", task.goal),
        indexers=task.indexers_wanted,
        start_again=_ahead_of_store(task, request.indexers) or None,
    )


def end(task: Task, request: EndRequest) -> None:
    """The application's last word."""
    with transaction.atomic():
        _store_indexers(task, request)
        if request.unread or request.given_up.polled:
            given_up = request.given_up.model_dump(exclude_defaults=True)
            unread = [record.model_dump() for record in request.unread]
            Task.objects.active().filter(pk=task.pk).update(unread=unread, given_up=given_up)
        if request.interrupted and not request.error:
            ended = interrupt_task(
                task, message="The stack or its machine was shut down, and the task stopped cleanly."
            )
        elif task.is_bounded:
            ended = bounded_reads.end(task, request.error)
        else:
            ended = end_task(task, error=request.error)
        if ended and task.kind == Task.Kind.REPAIR:
            _report_repair(task)


def _report_repair(task: Task) -> None:
    """Raise an alarm when the repair found records: the broker had archived what was never registered."""
    fence = IndexerFence.objects.filter(task_id=task.pk).first()
    if fence is None:
        return
    stored = fence_totals(fence).stored
    if not stored + fence.unparseable + fence.thrown_away:
        return
    SourceEvent.objects.create(
        datasource=task.datasource,
        source=fence.source,
        kind=SourceEvent.Kind.REPAIRED,
        alarm=True,
        task_id=task.pk,
        detail=(
            f"{fence.polled} records were never registered, and Kafka no longer delivered them: their deliveries were "
            "used up, or another member of the group had taken them. They were read again: "
            f"{stored} stored, {fence.unparseable} quarantined, {fence.thrown_away} thrown away, "
            f"{fence.duplicates} duplicates."
        ),
    )


def _report_failing(task: Task, indexers: list[IndexerStatus]) -> None:
    """Raise an alarm when an indexer fails over and over for one reason: once for each indexer of a task."""
    for indexer in indexers:
        if indexer.state != "restarting" or indexer.failures < ALARM_AFTER:
            continue
        prefix = f"Indexer {indexer.number} "
        if SourceEvent.objects.filter(kind=FAILING, task_id=task.pk, detail__startswith=prefix).exists():
            continue
        SourceEvent.objects.create(
            datasource=task.datasource,
            kind=FAILING,
            alarm=True,
            task_id=task.pk,
            detail=f"{prefix}has failed {indexer.failures} times in a row and restarts. After "
            f"{settings.INDEXER_MOST_FAILURES} failures in a row, the task fails. The reason: "
            f"{indexer.message[:1000]}",
        )


def _ahead_of_store(task: Task, indexers: list[IndexerStatus]) -> dict[int, int]:
    """Indexers, and their epochs, that had publishes answered which the store has lost; an alarm names each once.

    Of stored offsets only: Kafka delivers what a share group has acknowledged to nobody, and a repair reads it.
    """
    if task.kind not in _WITH_STORED_OFFSETS or all(i.answered is None for i in indexers):
        return {}
    fences = IndexerFence.objects.filter(task_id=task.pk).only("number", "epoch", "publishes", "source_id")
    by_number = {fence.number: fence for fence in fences}
    ahead = {}
    for indexer in indexers:
        fence = by_number.get(indexer.number, IndexerFence())
        if not indexer.is_ahead(fence.epoch, fence.publishes):
            continue
        ahead[indexer.number] = indexer.epoch
        who = f"Indexer {indexer.number} of epoch {indexer.epoch} "
        if not SourceEvent.objects.filter(kind=LOST, task_id=task.pk, detail__contains=who).exists():
            detail = f"{who}had {indexer.answered} publishes answered, stored are {fence.publishes}."
            report_lost_publishes(task.datasource_id, fence.source_id, task.pk, detail)
    return ahead


def _store_indexers(task: Task, request: HeartbeatRequest | EndRequest) -> None:
    indexers = request.indexers
    if any(i.restarts for i in indexers):
        events.report_restarts(task, dict(task.indexers.values_list("number", "restarts")), indexers)
    if indexers:
        with connection.cursor() as cursor:
            cursor.execute(_STORE, [task.pk, timezone.now(), request.model_dump_json(include={"indexers"})])
    for i in indexers:
        if i.unpublished.polled or i.unpublished.redelivered:
            record_unpublished(
                task_id=task.pk,
                number=i.number,
                epoch=i.epoch,
                unpublished=i.unpublished,
            )
