"""The repair job's cue: old holes in the settled ranges are read by an ordinary reader and settled.

A hole below a settled offset (also below the first, where it is known where reading begins), or above all of them when
the readers are idle, that is older than delivery limit × lock
duration is presumed archived by the broker, a transaction marker, or compacted away. Reading it is safe in any case:
what is delivered after all is a duplicate.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import cast

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from controlplane.common.database import try_advisory_lock
from controlplane.lag.topic_lag import begins_at_start
from controlplane.publishing.offset_gaps import OffsetGap, extents, leading_gaps, offset_gaps
from controlplane.sources.models import Source
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.repair_pace import may_repair
from controlplane.tasks.models import Status, Task
from controlplane.tasks.services import create_repair
from ingestion.specs import offsets
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.inputs.sources import all_traits

HOLES_A_TASK = 1000
_LOCK = 0x52455041
IS_AT_REST = Q(suspended=True) | Q(terminated_at__isnull=False)
FRESH_WITHIN = timedelta(seconds=7)  # an older heartbeat says nothing of what is held now


def start_repairs() -> list[str]:
    """Start a repair task for every current source with old holes and none at work; returns the tasks' ids.

    One process at a time: two would not see each other's.
    """
    with try_advisory_lock(_LOCK) as won:
        return _start_repairs() if won else []


def _start_repairs() -> list[str]:
    started = []
    for source in _sources_to_check():
        newest_task = _newest_task(source)
        if (
            newest_task is None
            or _is_at_rest(newest_task)
            or _topic_is_gone(source, newest_task)
            or _has_active_repair(source)
        ):
            continue
        before = timezone.now() - min_hole_age(newest_task)
        idle_gaps = [h for h in never_delivered(source, newest_task) if h.since < before]
        old_gaps = _disjoint(
            [
                *_gaps_below_settled(source, newest_task, before),
                *idle_gaps,
                *taken_by_retention(source, newest_task, before),
            ]
        )
        if old_gaps and may_repair(source, newest_task, timezone.now()):
            started.append(create_repair(like=newest_task, holes=old_gaps[:HOLES_A_TASK], topic_id=source.topic_id).pk)
    return started


def _sources_to_check() -> QuerySet[Source]:
    """Only a share group's broker gives records up that nobody has settled.

    Left out at once, without a statement for each: where all who ever read are supervisors' that rest.
    """
    kinds = {traits.progress.kind for traits in all_traits() if traits.in_share_group}
    resting = Supervisor.objects.filter(IS_AT_REST).values("pk")
    active_tasks = Task.objects.reading().filter(datasource=OuterRef("datasource")).exclude(supervisor_id__in=resting)
    return Source.objects.filter(Exists(active_tasks), current=True, kind__in=kinds).select_related("datasource")


def min_hole_age(task: Task) -> timedelta:
    """How old a hole must be."""
    group = cast("ShareGroupIOConfig", task.io_config).groupConfig
    return group.deliveryCountLimit * timedelta(milliseconds=group.recordLockDurationMs) + settings.REPAIR_MARGIN


def _gaps_below_settled(source: Source, task: Task, before: datetime) -> list[OffsetGap]:
    gaps = offset_gaps(source, before, HOLES_A_TASK)
    # What lies before the group's own beginning was never the group's to read, even where others have read of it.
    if begins_at_start(task.io_config, source):
        gaps = [*leading_gaps(source, before), *gaps]
        begins = {key.partition: key.begin_offset or 0 for key in source.keys.all()}
    else:
        begins = {key.partition: key.begin_offset or key.began_at or 0 for key in source.keys.all()}
    clipped = [replace(gap, start=max(gap.start, begins[gap.partition])) for gap in gaps]
    return [gap for gap in clipped if gap.start < gap.end]


def never_delivered(source: Source, task: Task) -> list[OffsetGap]:
    """What lies above the highest settled offset of a caught-up reader: since it is idle, it will not be delivered.

    Only while every indexer reads and holds nothing; its age is counted from the last record that was in flight, and
    from when it was first seen: what has just come to a reader that was idle for long is no hole yet.
    """
    observation = task.observation
    indexers = list(task.indexers.all())
    fresh_since = timezone.now() - FRESH_WITHIN
    reading = bool(indexers) and all(
        i.state == "reading" and not i.in_flight and i.last_heartbeat_at and i.last_heartbeat_at > fresh_since
        for i in indexers
    )
    if task.status != Status.RUNNING or not reading or observation.get("topic_id") != source.topic_id:
        return []
    since = max(t for t in (task.started_at, task.last_activity_at) if t is not None)
    settled = extents(source)
    seen = {p: (end, datetime.fromisoformat(at)) for p, (end, at) in observation.get("unsettled_seen", {}).items()}
    return [
        OffsetGap(int(partition), start, min(end, seen_end), max(since, seen_at))
        for partition, (seen_end, seen_at) in seen.items()
        for start, end in observation.get("unsettled", {}).get(partition, [])
        if start < seen_end and (int(partition) not in settled or start >= settled[int(partition)].end)
    ]


def taken_by_retention(source: Source, task: Task, before: datetime) -> list[OffsetGap]:
    """What the log has lost since ``before``, while others are busy: nobody is given it any more."""
    observation = task.observation
    if observation.get("topic_id") != source.topic_id:
        return []
    lost = {p: (offset, datetime.fromisoformat(at)) for p, (offset, at) in observation.get("taken", {}).items()}
    return [
        OffsetGap(int(partition), start, min(end, offset), since)
        for partition, (offset, since) in lost.items()
        if since < before
        for start, end in observation.get("unsettled", {}).get(partition, [])
        if start < offset
    ]


def _disjoint(gaps: list[OffsetGap]) -> list[OffsetGap]:
    """Each offset once, by partition."""
    ranges: dict[int, list[offsets.Range]] = {}
    for gap in gaps:
        ranges.setdefault(gap.partition, []).append((gap.start, gap.end))
    since = min((gap.since for gap in gaps), default=timezone.now())
    return [OffsetGap(p, *r, since) for p, group in sorted(ranges.items()) for r in offsets.merged(group)]


def _newest_task(source: Source) -> Task | None:
    kinds = {traits.kind for traits in all_traits() if traits.progress.kind == source.kind}
    tasks = Task.objects.filter(datasource=source.datasource_id, kind__in=kinds)
    return tasks.filter(spec__spec__ioConfig__topic=source.topic, spec__spec__ioConfig__groupId=source.group).first()


def _is_at_rest(task: Task) -> bool:
    """Whether its supervisor is suspended or terminated: then nothing is ingested."""
    return Supervisor.objects.filter(IS_AT_REST, pk=task.supervisor_id).exists()


def _topic_is_gone(source: Source, task: Task) -> bool:
    """Whether the task has last seen no such topic, or another one of its name: then there is nothing to read."""
    return task.observation.get("topic_exists") is False or task.observation.get("topic_id", source.topic_id) != (
        source.topic_id
    )


def _has_active_repair(source: Source) -> bool:
    return Task.objects.active().filter(datasource=source.datasource_id, kind=Task.Kind.REPAIR).exists()
