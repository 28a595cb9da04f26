"""Bounded reads: tasks that read given offsets of a topic, and end. How far each is, and what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from controlplane.connections.kafka import TopicOffsets
from controlplane.publishing.settled import count_settled
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import source_key
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Goal, Task
from controlplane.tasks.sources import owner_of
from ingestion.specs import offsets
from ingestion.specs.inputs.io_config import IOConfig

SAMPLE_EVERY = timedelta(seconds=5)
SAMPLES = 13  # the rate is that of the last minute
_SourceKey = tuple[int, str, str, str, str]  # datasource, kind, group, topic and the topic's id


@dataclass(frozen=True)
class BoundedProgress:
    """Offsets settled, of all that are to be read."""

    total: int
    done: int
    rate: float | None = None  # offsets/s, lately; None: not known yet

    def __add__(self, other: BoundedProgress) -> BoundedProgress:
        rate = (self.rate or 0) + (other.rate or 0) or None
        return BoundedProgress(self.total + other.total, self.done + other.done, rate)

    @property
    def left(self) -> int:
        return self.total - self.done

    @property
    def percent(self) -> int:
        """100 only when nothing is left."""
        return self.done * 100 // self.total if self.total else 100

    @property
    def tenths(self) -> int:
        """The percentage in steps of ten: for what is read out, which should not change each second."""
        return self.percent // 10 * 10

    @property
    def time_left(self) -> timedelta | None:
        """None while it is not known, and when nothing is left."""
        return timedelta(seconds=self.seconds_left) if self.seconds_left else None

    @property
    def seconds_left(self) -> int | None:
        """At the present rate; None while that is not known."""
        if not self.left:
            return 0
        return round(self.left / self.rate) if self.rate else None


def ranges_of(io_config: IOConfig) -> list[dict[str, Any]]:
    """What a task of this ioConfig reads, as its row keeps it; empty ranges are left out."""
    bounds = io_config.boundedStreamConfig
    if bounds is None:
        return []
    topic_id = bounds.topicId or ""
    return [
        {"partition": p, "start": start, "end": end, "topic_id": topic_id}
        for p, (start, end) in bounds.ranges.items()
        if start < end
    ]


def progress_of(task: Task) -> BoundedProgress:
    """By what is settled now; the rate is that of the last observations."""
    read = BoundedRead(task.datasource_id, task.io_config, owner_of(task), task.ranges, rate_of(task))
    return progress_of_reads([read])[0]


@dataclass(frozen=True)
class BoundedRead:
    """Which ranges of which source are to be read."""

    datasource: int
    io_config: IOConfig
    owner: str  # see ``sources_of``
    ranges: list[dict[str, Any]]
    rate: float | None = None  # offsets/s

    @property
    def topic_id(self) -> str:
        """Empty: that of the topic that has the name now."""
        return self.ranges[0]["topic_id"] if self.ranges else ""

    @property
    def source_key(self) -> _SourceKey:
        key = source_key(self.io_config, self.owner)
        return self.datasource, key["kind"], key["group"], self.io_config.topic, self.topic_id

    def joined(self, other: BoundedRead) -> BoundedRead:
        """What both of one source read."""
        rate = (self.rate or 0) + (other.rate or 0) or None
        return replace(self, ranges=[*self.ranges, *other.ranges], rate=rate)

    def merged(self) -> dict[int, list[offsets.Range]]:
        """By partition."""
        by_partition: dict[int, list[offsets.Range]] = {}
        for r in self.ranges:
            by_partition.setdefault(r["partition"], []).append((r["start"], r["end"]))
        return {p: offsets.merged(pieces) for p, pieces in by_partition.items()}


def progress_of_reads(reads: Sequence[BoundedRead]) -> list[BoundedProgress]:
    """How far the ranges of each are settled: two statements for all of them."""
    sources: dict[_SourceKey, int] = {}
    found = Source.objects.filter(
        datasource__in={r.datasource for r in reads}, topic__in={r.io_config.topic for r in reads}
    )
    for s in found.order_by("-pk").only("datasource_id", "kind", "group", "topic", "topic_id", "current"):
        for topic_id in (s.topic_id, "") if s.current else (s.topic_id,):
            sources[s.datasource_id, s.kind, s.group, s.topic, topic_id] = s.pk
    wanted = [(sources.get(read.source_key, 0), read.merged()) for read in reads]
    totals = [sum(offsets.count(pieces) for pieces in merged.values()) for _, merged in wanted]
    return [
        BoundedProgress(total, done, read.rate)
        for read, total, done in zip(reads, totals, count_settled(wanted), strict=True)
    ]


def observe(task: Task, topic: TopicOffsets | None, problem: str, refused: bool) -> None:
    """Keep what was seen of the task's topic, and how far the task was then."""
    now, before = timezone.now(), task.observation
    progress = progress_of(task)
    seen: dict[str, Any] = {
        **before,
        "observed_at": now.isoformat(),
        "error": problem,
        "refused": refused,
        "settled": progress.done,
        "lag": progress.left,
        "samples": _with_sample(before.get("samples", []), now, progress.done),
    }
    if not problem:
        seen |= {"topic_exists": topic is not None, "held_back": {} if topic is None else _held_back(task, topic)}
    task.observation = seen
    Task.objects.filter(pk=task.pk).update(observation=seen)


def _with_sample(samples: list[list[Any]], now: datetime, done: int) -> list[list[Any]]:
    if samples and now - datetime.fromisoformat(samples[-1][0]) < SAMPLE_EVERY:
        return samples
    return [*samples, [now.isoformat(), done]][-SAMPLES:]


def rate_of(task: Task) -> float | None:
    """Offsets/s, by the observations of the last minute; None while that is not known."""
    samples = task.observation.get("samples", [])
    if task.ended or len(samples) < 2:
        return None
    (first_at, first), (last_at, last) = samples[0], samples[-1]
    seconds = (datetime.fromisoformat(last_at) - datetime.fromisoformat(first_at)).total_seconds()
    return (last - first) / seconds if seconds > 0 else None


def _held_back(task: Task, topic: TopicOffsets) -> dict[str, list[int]]:
    """By partition, where what may be read ends, if that is before the task's end: it, and the log's end."""
    ends: dict[int, int] = {}
    for r in task.ranges:
        ends[r["partition"]] = max(r["end"], ends.get(r["partition"], 0))
    return {
        str(p): [topic.end_offsets[p], topic.log_ends[p]]
        for p, end in ends.items()
        if p in topic.end_offsets and topic.end_offsets[p] < end
    }


def end(task: Task, error: str) -> bool:
    """Its application has ended. A manual task that was stopped before has not done what it was for."""
    left = 0 if error else progress_of(task).left
    if left and not (task.supervisor_id and task.goal != Goal.RUN):
        early = "It was stopped" if task.goal != Goal.RUN else "It ended"
        error = f"{early} before it had read all: {left:,} offsets are left. Submit it again to continue."
    return end_task(task, error=error)
