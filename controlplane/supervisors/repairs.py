"""The repair job's cue: old holes in the settled ranges are read by an ordinary reader and settled.

A hole below a settled offset that is older than delivery limit × lock duration is presumed archived by the broker, a
transaction marker, or compacted away. Reading it is safe in any case: what is delivered after all is a duplicate.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from controlplane.segments.models import Source
from controlplane.segments.settled import Hole, holes
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from controlplane.tasks.services import create_repair
from ingestion.specs import parse_task_spec

HOLES_A_TASK = 1000


def start_repairs() -> list[str]:
    """Start a repair task for every current source with old holes and none at work; returns the tasks' ids."""
    started = []
    for source in Source.objects.filter(current=True).select_related("datasource"):
        like = _newest_task(source)
        if like is None or _resting(like) or _repair_at_work(source):
            continue
        old = old_holes(holes(source), patience(like), timezone.now())
        if old:
            started.append(create_repair(like=like, holes=old[:HOLES_A_TASK]).pk)
    return started


def patience(task: Task) -> timedelta:
    """How old a hole must be."""
    group = parse_task_spec(task.spec).spec.ioConfig.groupConfig
    return group.deliveryCountLimit * timedelta(milliseconds=group.recordLockDurationMs) + settings.REPAIR_MARGIN


def old_holes(found: list[Hole], patience: timedelta, now: datetime) -> list[Hole]:
    """Those that have been holes for longer than ``patience``."""
    return [h for h in found if now - h.since > patience]


def _newest_task(source: Source) -> Task | None:
    tasks = Task.objects.filter(datasource=source.datasource_id, kind=Task.Kind.SHARE_GROUP)
    return tasks.filter(spec__spec__ioConfig__topic=source.topic, spec__spec__ioConfig__groupId=source.group).first()


def _resting(task: Task) -> bool:
    """Whether its supervisor is suspended or terminated: then nothing is ingested."""
    supervisor = Supervisor.objects.filter(pk=task.supervisor_id).first()
    return supervisor is not None and (supervisor.suspended or supervisor.terminated_at is not None)


def _repair_at_work(source: Source) -> bool:
    return Task.objects.active().filter(datasource=source.datasource_id, kind=Task.Kind.REPAIR).exists()
