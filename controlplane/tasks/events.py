"""What happens to tasks that an operator must know, as events of their datasource: few, however often it happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from django.db.models import Sum
from django.utils import timezone

from controlplane.publishing.models import IndexerFence
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.sources.models import SourceEvent
from controlplane.tasks.models import Task
from ingestion.specs.messages.protocol import IndexerStatus

QUARANTINE_EVENT_EVERY = timedelta(minutes=5)  # while a task runs
SHOWN = 500  # characters of a reason


def report_failure(task: Task, error: str) -> None:
    """It failed. An alarm for one that nobody starts again."""
    is_manual = not task.supervisor_id and task.kind != Task.Kind.REPAIR
    _add(task, SourceEvent.Kind.TASK_FAILED, _shortened(error), alarm=is_manual)


def report_quota(task: Task, text: str) -> None:
    """It ends early, as its team may read no more; nobody starts it again."""
    _add(task, SourceEvent.Kind.QUOTA, f"{text} This task does not continue. Submit it again after that.", alarm=True)


def report_restarts(task: Task, before: Mapping[int, int], indexers: list[IndexerStatus]) -> None:
    """Its indexers were started again since ``before`` (number → restarts): the first time, the second, fourth …"""
    for indexer in indexers:
        if indexer.restarts.bit_length() > before.get(indexer.number, 0).bit_length():
            times = "once" if indexer.restarts == 1 else f"{indexer.restarts} times"
            reason = _shortened(indexer.restarted_after) or "its log says why"
            _add(
                task,
                SourceEvent.Kind.RESTARTED,
                f"Indexer {indexer.number} restarted, {times} so far: {reason}",
            )


def quarantined_by(tasks: Sequence[str]) -> dict[str, int]:
    """How many records each has quarantined, of those that have indexers."""
    fences = IndexerFence.objects.filter(task_id__in=tasks).order_by().values_list("task_id")
    return dict(fences.annotate(Sum("quarantined")))


def report_quarantined(task: Task, *, at_its_end: bool = False, quarantined: int | None = None) -> None:
    """What was quarantined since it was last noted, as one event; not more often than ``QUARANTINE_EVENT_EVERY``.

    ``quarantined``: how many records it has quarantined, if that is known.
    """
    if at_its_end:  # others may have noted some since the task was read
        task.refresh_from_db(fields=["quarantined_noted"])
    if quarantined is None:
        quarantined = quarantined_by([task.pk]).get(task.pk, 0)
    new = quarantined - task.quarantined_noted
    if new <= 0 or task.kind == Task.Kind.REPLAY or not (at_its_end or _is_time(task)):
        return
    # The row count decides who notes it.
    if Task.objects.filter(pk=task.pk, quarantined_noted=task.quarantined_noted).update(quarantined_noted=quarantined):
        task.quarantined_noted = quarantined
        _add(task, SourceEvent.Kind.QUARANTINED, _quarantined_text(task, new))


def _is_time(task: Task) -> bool:
    past_events = SourceEvent.objects.filter(datasource=task.datasource_id, task_id=task.pk)
    recently = timezone.now() - QUARANTINE_EVENT_EVERY
    return not past_events.filter(kind=SourceEvent.Kind.QUARANTINED, created_at__gt=recently).exists()


def _quarantined_text(task: Task, records: int) -> str:
    last = (
        QuarantinedRecord.objects.filter(task_id=task.pk)
        .only("place", "partition", "offset", "error")
        .order_by("-id")
        .first()
    )
    count_text = "1 record was" if records == 1 else f"{records} records were"
    if last is None:  # purged already
        return f"{count_text} quarantined."
    place = last.place or f"partition {last.partition}, offset {last.offset}"
    return f"{count_text} quarantined. The last, {place}: {_shortened(last.error)}"


def _add(task: Task, kind: SourceEvent.Kind, detail: str, alarm: bool = False) -> None:
    fence = IndexerFence.objects.filter(task_id=task.pk, source__isnull=False).first()
    source = task.replay_source_id if fence is None else fence.source_id
    SourceEvent.objects.create(
        datasource_id=task.datasource_id, source_id=source, kind=kind, alarm=alarm, detail=detail, task_id=task.pk
    )


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
