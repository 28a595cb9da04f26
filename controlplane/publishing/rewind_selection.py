"""From a choice of records to the segments that they lead to, and to all records that lead into those."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils import timezone

from controlplane.common.errors import InvalidInput
from controlplane.publishing.models import ProgressKey, Receipt, RewindPart
from controlplane.publishing.postgres_ranges import span
from controlplane.publishing.rewind_plan import (
    Group,
    Loose,
    Member,
    RangesOf,
    Reader,
    Span,
    connected,
    judged,
    merged_ranges,
)
from controlplane.segments.models import Interval, KilledSegment, Replacement, Segment
from controlplane.sources.models import Source
from ingestion.specs import offsets

MAX_SEGMENTS = 20_000  # that the chosen records lead to
MAX_RANGES = 1_000  # of offsets, in a choice
AT_ONCE = 1_000
_LOOSE = ("thrown_away", "unparseable")
_ENDED = ("stored", *_LOOSE)


@dataclass(frozen=True)
class Choice:
    """Which records: those for which all that is given holds. Of ``times``, those whose rows are in such a segment."""

    tasks: frozenset[str] | None = None  # that have published them
    published: Span | None = None
    offsets: Mapping[int, list[offsets.Range]] | None = None  # by partition
    times: Span | None = None  # of rows


def select(source: Source, choice: Choice) -> tuple[list[Group], Loose]:
    """The groups that hold rows of the chosen records, and those of the records that have no row.

    Raises ``InvalidInput`` for a choice that is too large.
    """
    if choice.times is not None:
        low, high = choice.times
        inside = Segment.objects.filter(datasource=source.datasource_id, used=True, min_time__lt=high)
        seeds = set(inside.filter(max_time__gte=low).values_list("pk", flat=True)[: MAX_SEGMENTS + 1])
        loose = Loose()
    else:
        receipts = list(_chosen_receipts(source, choice))
        seeds = {one for receipt in receipts for one in _segments_of(receipt, choice)}
        loose = _loose(receipts, choice)
    if len(seeds) > MAX_SEGMENTS:
        raise InvalidInput(f"These records are in more than {MAX_SEGMENTS:,} segments. Choose less at once.")
    return groups_of(source, seeds), loose


def groups_of(source: Source, seeds: Iterable[uuid.UUID]) -> list[Group]:
    """The groups that these segments, used or not, belong to; those without a segment in use are left out."""
    facts, wanted = _Facts(source), set(seeds)
    found = connected([], wanted)
    while new := {one for group in found for one in group} - facts.loaded:
        facts.load(new)
        found = connected(facts.links, wanted)
    groups = (judged(facts.group(ids)) for ids in found)
    return [group for group in groups if group.used]


@dataclass
class _Facts:
    """Segments, merges and receipts, as far as they were asked for."""

    source: Source
    loaded: set[uuid.UUID] = field(default_factory=set)
    links: list[tuple[uuid.UUID, ...]] = field(default_factory=list)
    _members: dict[uuid.UUID, Member] = field(default_factory=dict)
    _merged: set[uuid.UUID] = field(default_factory=set)  # those that a merge has made
    _written: dict[uuid.UUID, dict[Reader, RangesOf]] = field(default_factory=dict)
    _readers: dict[uuid.UUID, str] = field(default_factory=dict)
    _receipts: set[int] = field(default_factory=set)

    def load(self, ids: set[uuid.UUID]) -> None:
        """Look these up, and what they were merged with."""
        self.loaded |= ids
        ordered = sorted(ids)
        for first in range(0, len(ordered), AT_ONCE):
            self._load(ordered[first : first + AT_ONCE])

    def _load(self, ids: list[uuid.UUID]) -> None:
        segments = list(Segment.objects.filter(pk__in=ids).select_related("removal"))
        killed = list(KilledSegment.objects.filter(pk__in=ids).select_related("removal"))
        rows: list[Segment | KilledSegment] = [*segments, *killed]
        for row in rows:
            is_used = isinstance(row, Segment) and row.used
            interval = (row.interval_start, row.interval_end) if isinstance(row, Segment) else None
            removed = row.removal.sentence if row.removal is not None else ""
            self._members[row.pk] = Member(row.pk, row.rows, is_used, interval, removed)
        of_these = Q(pk__in=[row.replaced_by for row in rows]) | Q(made__overlap=ids)
        for taken, made in Replacement.objects.filter(of_these, datasource=self.source.datasource_id).values_list(
            "taken", "made"
        ):
            self.links.append((*taken, *made))
            self._merged.update(made)
        self._load_receipts({row.created_at for row in rows if row.pk not in self._merged})

    def _load_receipts(self, times: set[datetime]) -> None:
        """A publish gives its segments and its receipts one time."""
        for receipt in Receipt.objects.filter(created_at__in=times).select_related("key__source"):
            if receipt.pk not in self._receipts:
                self._receipts.add(receipt.pk)
                self._note(receipt)

    def _note(self, receipt: Receipt) -> None:
        stored = [*receipt.outcomes.get("stored", []), *(further := receipt.outcomes.get("further", []))]
        ids = [uuid.UUID(one) for one in receipt.segment_ids]
        for start, end, index in stored:
            by_reader = self._written.setdefault(ids[index], {})
            of_reader = by_reader.setdefault((receipt.key.source_id, receipt.task_id), {})
            of_reader.setdefault(receipt.key.partition, []).append((start, end))
            if why := _foreign(self.source, receipt.key.source):
                self._readers[ids[index]] = why
        for low, high, index in further:
            self.links += [(ids[index], ids[n]) for start, end, n in stored if start < high and low < end]

    def group(self, ids: frozenset[uuid.UUID]) -> Group:
        """These, which go together."""
        members = [
            Member(
                one,
                known.rows if known else 0,
                known.used if known else False,
                known.interval if known else None,
                known.removed if known else "",
                self._written.get(one),
                self._readers.get(one, ""),
            )
            for one in sorted(ids)
            for known in [self._members.get(one)]
        ]
        return Group(tuple(members), ids - self._merged)


def _foreign(source: Source, other: Source) -> str:
    """Why a rewind of the first can't read records of the other; empty where it can: another topic of the same reader.

    A supervisor may have read another topic before, and one with a pattern of topics reads several.
    """
    if other.pk == source.pk:
        return ""
    if (other.kind, other.group, other.cluster_id) != (source.kind, source.group, source.cluster_id):
        return f"Its records are of topic {other.topic!r}, as {other.group!r} reads it."
    return "" if other.current else f"Its records are of topic {other.topic!r}, which was deleted and created again."


def chosen_records(source: Source, choice: Choice) -> dict[str, RangesOf]:
    """Of the chosen records those that have rows, by the task that has read them."""
    found: dict[str, list[RangesOf]] = {}
    for receipt in _chosen_receipts(source, choice):
        stored = [*receipt.outcomes.get("stored", []), *receipt.outcomes.get("further", [])]
        ranges = _within(receipt, choice, stored)
        found.setdefault(receipt.task_id, []).append({receipt.key.partition: ranges})
    return {task: merged_ranges(some) for task, some in found.items()}


def _chosen_receipts(source: Source, choice: Choice) -> QuerySet[Receipt]:
    keys = dict(ProgressKey.objects.filter(source=source).values_list("partition", "pk"))
    receipts = Receipt.objects.filter(key__in=keys.values()).select_related("key").order_by("created_at", "pk")
    if choice.tasks is not None:
        receipts = receipts.filter(task_id__in=choice.tasks)
    if choice.published is not None:
        receipts = receipts.filter(created_at__gte=choice.published[0], created_at__lt=choice.published[1])
    if choice.offsets is not None:
        if sum(map(len, choice.offsets.values())) > MAX_RANGES:
            raise InvalidInput(f"At most {MAX_RANGES:,} ranges of offsets at once.")
        where = Q(pk__in=[])
        for partition, ranges in choice.offsets.items():
            for start, end in ranges if partition in keys else ():
                where |= Q(hull__overlap=span(keys[partition], start, end))
        receipts = receipts.filter(where)
    return receipts


def _segments_of(receipt: Receipt, choice: Choice) -> Iterator[uuid.UUID]:
    stored = [*receipt.outcomes.get("stored", []), *receipt.outcomes.get("further", [])]
    for index in {n for start, end, n in stored if _within(receipt, choice, [(start, end)])}:
        yield uuid.UUID(receipt.segment_ids[index])


def _within(receipt: Receipt, choice: Choice, ranges: Iterable[Any]) -> list[offsets.Range]:
    """What of these is chosen."""
    plain = [(start, end) for start, end, *_ in ranges]
    if choice.offsets is None:
        return plain
    return offsets.subtracted(plain, offsets.subtracted(plain, choice.offsets.get(receipt.key.partition, [])))


def _loose(receipts: list[Receipt], choice: Choice) -> Loose:
    """Of an offset the newest receipt says what became of it: where another one came later, it has a row, or has not
    to be read again for this one.
    """
    found: dict[str, list[RangesOf]] = {name: [] for name in _LOOSE}
    for receipt in receipts:
        for name in _LOOSE:
            ranges = _within(receipt, choice, receipt.outcomes.get(name, []))
            if ranges and (left := offsets.subtracted(ranges, ended_later(receipt.key_id, receipt.created_at, ranges))):
                found[name].append({receipt.key.partition: left})
    return Loose(**{name: merged_ranges(some) for name, some in found.items()})


def ended_later(key: int, since: datetime, ranges: Iterable[offsets.Range]) -> list[offsets.Range]:
    """What publishes after ``since`` have ended between the first and the last of these offsets of a progress key."""
    some = list(ranges)
    hull = span(key, min(start for start, _ in some), max(end for _, end in some))
    later = Receipt.objects.filter(hull__overlap=hull, created_at__gt=since)
    return [
        (start, end)
        for outcomes in later.values_list("outcomes", flat=True)
        for name in _ENDED
        for start, end, *_ in outcomes.get(name, [])
    ]


def ended_before(source: Source, partition: int, offset: int, time: datetime) -> str:
    """The task that was the last to end a record before ``time``; empty where no receipt says so."""
    for key in ProgressKey.objects.filter(source=source, partition=partition):
        at = Receipt.objects.filter(key=key, hull__overlap=span(key.pk, offset, offset + 1), created_at__lt=time)
        for receipt in at.order_by("-created_at"):
            ended = [r for name in _ENDED for r in receipt.outcomes.get(name, [])]
            if any(start <= offset < end for start, end, *_ in ended):
                return receipt.task_id
    return ""


def undoable(datasource: int, segments: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Those of these segments that a rewind has written which can still be undone: a merge would end that."""
    since = timezone.now() - settings.KILL_BUFFER_PERIOD
    parts = RewindPart.objects.filter(
        rewind__datasource=datasource, state=RewindPart.State.DONE, ended_at__gt=since, made__overlap=list(segments)
    )
    return {one for made in parts.values_list("made", flat=True) for one in made}


@dataclass(frozen=True)
class WaitingSpans:
    """Between which times parts of rewinds wait, by datasource: what a merge did there would be read again in vain."""

    spans: Mapping[int, list[Span]]

    @classmethod
    def now(cls) -> WaitingSpans:
        """One query for all datasources."""
        waiting = RewindPart.objects.filter(state=RewindPart.State.WAITING, interval_start__isnull=False)
        spans: dict[int, list[Span]] = {}
        for pk, start, end in waiting.values_list("rewind__datasource", "interval_start", "interval_end"):
            if start is not None and end is not None:
                spans.setdefault(pk, []).append((start, end))
        return cls(spans)

    def holds(self, interval: Interval) -> bool:
        """Whether one of them reaches into this interval."""
        return any(s < interval.end and interval.start < e for s, e in self.spans.get(interval.datasource_id, []))
