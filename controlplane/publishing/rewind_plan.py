"""What a rewind is to read and to replace: pure. ``rewind_selection`` finds the facts.

Segments that share a merge, or a record, go together or not at all: a *group*. Then every record of a group has all of
its rows in it, and no row of it is of another record.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from ingestion.specs import offsets

Span = tuple[datetime, datetime]
RangesOf = dict[int, list[offsets.Range]]  # by partition


@dataclass(frozen=True)
class Member:
    """A segment, used or not, of a group that rows of a chosen record are in."""

    id: uuid.UUID
    rows: int
    used: bool
    interval: Span | None = None  # None where its file is deleted, and only its row count is kept
    removed: str = ""  # by whom and when, if it was
    # Of one that a publish wrote: which records' rows, by partition, and whose. None: no receipt says.
    written: RangesOf | None = None
    reader: str = ""  # why its records are not those of the rewind's source


@dataclass(frozen=True)
class Group:
    """Segments that go together, and the records of which all rows are in them."""

    members: tuple[Member, ...]
    leaves: frozenset[uuid.UUID]  # those that no merge has made
    refusal: str = ""

    @property
    def used(self) -> list[Member]:
        return [m for m in self.members if m.used]

    @property
    def ranges(self) -> RangesOf:
        return merged_ranges(m.written or {} for m in self._written)

    @property
    def published(self) -> int:
        """How many rows its publishes had."""
        return sum(m.rows for m in self._written)

    @property
    def _written(self) -> list[Member]:
        return [m for m in self.members if m.id in self.leaves]


@dataclass(frozen=True)
class Loose:
    """Records without a row that are to be read again: they were thrown away, or are in quarantine."""

    thrown_away: RangesOf = field(default_factory=dict)
    unparseable: RangesOf = field(default_factory=dict)


@dataclass(frozen=True)
class PartPlan:
    """What one transaction will replace."""

    segments: tuple[uuid.UUID, ...]
    ranges: RangesOf
    rows: int  # of the segments
    before: dict[str, int]  # what the records were counted as
    span: Span | None = None

    @property
    def start(self) -> datetime | None:
        return None if self.span is None else self.span[0]

    @property
    def end(self) -> datetime | None:
        return None if self.span is None else self.span[1]

    @property
    def records(self) -> int:
        return sum(offsets.count(some) for some in self.ranges.values())


def connected(links: Iterable[Iterable[uuid.UUID]], seeds: Iterable[uuid.UUID]) -> list[frozenset[uuid.UUID]]:
    """The sets of ids that links join, of those that hold a seed."""
    joined: dict[uuid.UUID, list[tuple[uuid.UUID, ...]]] = {}
    for link in map(tuple, links):
        for one in link:
            joined.setdefault(one, []).append(link)
    found: list[frozenset[uuid.UUID]] = []
    seen: set[uuid.UUID] = set()
    for seed in seeds:
        if seed in seen:
            continue
        group, pending = {seed}, [seed]
        while pending:
            new = {other for link in joined.get(pending.pop(), []) for other in link} - group
            group |= new
            pending += new
        seen |= group
        found.append(frozenset(group))
    return found


def judged(group: Group) -> Group:
    """With the reason why it can't be recomputed, if there is one."""
    removed = [m for m in group.members if m.removed and not m.used]
    unknown = [m for m in group.members if m.id in group.leaves and m.written is None]
    foreign = [m for m in group.members if m.id in group.leaves and m.reader]
    refusal = ""
    if removed:
        refusal = f"Some rows of the same records were removed {removed[0].removed}."
    elif foreign:
        refusal = foreign[0].reader
    elif unknown:
        rows = sum(m.rows for m in unknown)
        refusal = (
            f"No receipt says from which records {rows:,} of its rows come. They come from files or from a task that "
            "rewrote them, or the receipts are no longer kept."
        )
    return replace(group, refusal=refusal)


def within_log(group: Group, starts: Mapping[int, int], ends: Mapping[int, int]) -> Group:
    """Refused where Kafka does not have all of its records any more. Raises nothing for one that is refused already."""
    if group.refusal:
        return group
    for partition, ranges in sorted(group.ranges.items()):
        low, high = starts.get(partition), ends.get(partition)
        if low is None or high is None:
            return replace(group, refusal=f"The topic has no partition {partition} now.")
        first, last = ranges[0][0], ranges[-1][1]
        if first < low:
            gone = f"offsets {first:,} to {min(low, last) - 1:,} of partition {partition}"
            return replace(group, refusal=f"Kafka no longer has {gone}: the log begins at {low:,}.")
        if last > high:
            return replace(group, refusal=f"Kafka has lost offsets of partition {partition}: the log ends at {high:,}.")
    return group


def parts_of(groups: Sequence[Group], loose: Loose) -> list[PartPlan]:
    """What can be recomputed, cut by interval: groups that share one go together. The oldest interval comes first."""
    good = [g for g in groups if g.used and not g.refusal]
    by_interval: dict[Span, list[int]] = {}
    for n, group in enumerate(good):
        for member in group.used:
            if member.interval is not None:
                by_interval.setdefault(member.interval, []).append(n)
    numbers = {n: uuid.UUID(int=n) for n in range(len(good))}
    together = connected(([numbers[n] for n in some] for some in by_interval.values()), numbers.values())
    parts = [_part([good[pk.int] for pk in sorted(some)]) for some in together]
    parts.sort(key=lambda part: part.span or ())
    ranges = merged_ranges([loose.thrown_away, loose.unparseable])
    if ranges:
        count = sum(offsets.count(some) for some in loose.thrown_away.values())
        before = {"polled": count, "thrown_away": count} if count else {}
        parts.append(PartPlan((), ranges, 0, before))
    return parts


def _part(groups: Sequence[Group]) -> PartPlan:
    used = sorted((m for g in groups for m in g.used), key=lambda m: (m.interval or (), m.id))
    spans = [m.interval for m in used if m.interval is not None]
    ranges = merged_ranges(g.ranges for g in groups)
    records = sum(offsets.count(some) for some in ranges.values())
    published = sum(g.published for g in groups)
    further = max(0, published - records)
    counts = {
        "polled": records,
        "published": published,
        "rolled_up": records - published + further,
        "further_rows": further,
    }
    return PartPlan(
        segments=tuple(m.id for m in used),
        ranges=ranges,
        rows=sum(m.rows for m in used),
        before={name: count for name, count in counts.items() if count},
        span=(min(s for s, _ in spans), max(e for _, e in spans)),
    )


def merged_ranges(several: Iterable[Mapping[int, Iterable[offsets.Range]]]) -> RangesOf:
    """Of all of these, by partition."""
    joined: RangesOf = {}
    for one in several:
        for partition, ranges in one.items():
            joined.setdefault(partition, []).extend(ranges)
    return {p: offsets.merged(ranges) for p, ranges in sorted(joined.items()) if ranges}
