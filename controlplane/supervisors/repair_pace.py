"""When a source's repair may be tried again after others have failed: later and later, and after so many rarely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from controlplane.sources.models import Source, SourceEvent
from controlplane.tasks.models import Status, Task

FIRST_DELAY = timedelta(seconds=30)
LONGEST_DELAY = timedelta(minutes=10)
GIVEN_UP_DELAY = timedelta(hours=24)  # what was the matter may have passed by then
ALARM_AFTER = 3  # failures in a row


@dataclass(frozen=True)
class EndedRepair:
    """A repair that has ended."""

    failed: bool
    at: datetime


def failures_in_a_row(repairs: Sequence[EndedRepair]) -> int:
    """``repairs``: newest first."""
    return next((n for n, repair in enumerate(repairs) if not repair.failed), len(repairs))


def next_repair_at(repairs: Sequence[EndedRepair], most: int) -> datetime | None:
    """When the next one may start; None: at once. ``most``: failures in a row, after which it is given up for a day."""
    failures = failures_in_a_row(repairs)
    if not failures:
        return None
    delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(failures - 1, 20))
    return repairs[0].at + (delay if failures < most else GIVEN_UP_DELAY)


def may_repair(source: Source, newest_task: Task, now: datetime) -> bool:
    """Whether a repair may start now; raises an alarm when they fail over and over.

    Counted are those since the newest task that reads the source began: with it, what was the matter may have changed.
    """
    repairs = list(_ended_since(source, newest_task)[: settings.REPAIR_MOST_FAILURES])
    ended = [EndedRepair(r.status == Status.FAILED, r.ended_at or r.created_at) for r in repairs]
    failures = failures_in_a_row(ended)
    if failures in (ALARM_AFTER, settings.REPAIR_MOST_FAILURES):
        _raise_alarm(source, repairs[0], failures)
    next_at = next_repair_at(ended, settings.REPAIR_MOST_FAILURES)
    return next_at is None or now >= next_at


def _ended_since(source: Source, newest_task: Task) -> QuerySet[Task]:
    """Newest first."""
    repairs = Task.objects.filter(
        datasource=source.datasource_id, kind=Task.Kind.REPAIR, created_at__gte=newest_task.created_at
    )
    ended = repairs.filter(spec__spec__ioConfig__topic=source.topic, spec__spec__ioConfig__groupId=source.group)
    return ended.exclude(ended_at=None).order_by("-created_at", "-id")


def _raise_alarm(source: Source, repair: Task, failures: int) -> None:
    """Once for this repair."""
    given_up = failures >= settings.REPAIR_MOST_FAILURES
    next_step = (
        "Headgate tries again after a day, or when the next task reads the topic."
        if given_up
        else "Headgate tries again later."
    )
    SourceEvent.objects.get_or_create(
        datasource_id=source.datasource_id,
        source=source,
        kind=SourceEvent.Kind.FAILING,
        task_id=repair.pk,
        defaults={
            "alarm": True,
            "detail": f"The last {failures} repairs of topic {source.topic} have failed. {next_step} The reason: "
            f"{repair.error[:1000]}",
        },
    )
