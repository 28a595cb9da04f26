"""What a rewind is to read and to replace: pure. ``rewind_selection`` finds the facts.

Segments that share a merge, or a record, go together or not at all: a *group*. Then every record of a group has all of
its rows in it, and no row of it is of another record.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from ingestion.specs import offsets

Span = tuple[datetime, datetime]
RangesOf = dict[int, list[offsets.Range]]  # by partition
Reader = tuple[int, str]  # a source, and the task that has read of it


@dataclass(frozen=True)
class Member:
    """A segment, used or not, of a group that rows of a chosen record are in."""

    id: uuid.UUID
    rows: int
    used: bool
    interval: Span | None = None  # None where its file is deleted, and only its row count is kept
    removed: str = ""  # by whom and when, if it was
    # Of one that a publish wrote: which records' rows, by who has read them. None: no receipt says.
    written: Mapping[Reader, RangesOf] | None = None
    reader: str = ""  # why its records can't be read by the rewind


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
    def readers(self) -> set[Reader]:
        return {reader for m in self._written for reader in m.written or {}}

    def ranges(self, source: int) -> RangesOf:
        """Its records of this source."""
        return merged_ranges(self.read_by(reader) for reader in self.readers if reader[0] == source)

    def read_by(self, reader: Reader) -> RangesOf:
        """Those that this one has read."""
        return merged_ranges((m.written or {}).get(reader, {}) for m in self._written)

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


Version = tuple[str, int]  # of a spec: the supervisor and the number


@dataclass(frozen=True)
class Reading:
    """Records that are read with a spec of their own: of another topic, or with the version that had stored them."""

    source: int
    version: Version | None  # None: the rewind's
    ranges: RangesOf

    @property
    def records(self) -> int:
        return sum(map(offsets.count, self.ranges.values()))


@dataclass(frozen=True)
class Readers:
    """How records are read: the chosen ones with the rewind's spec, the others with it too, or with their own."""

    source: int
    version: Version | None = None  # the rewind's
    # By task, with what the records are read that it has read and nobody has chosen. None: the rewind's spec reads all.
    versions: Mapping[str, Version] | None = None
    # Which of the records that somebody has read are chosen.
    chosen: Callable[[Reader], RangesOf] = lambda reader: {}

    def readings(self, groups: Sequence[Group]) -> list[Reading]:
        """The first is the rewind's own, which may have no ranges."""
        found: dict[tuple[int, Version | None], list[RangesOf]] = {(self.source, None): []}
        for group in groups:
            for reader in group.readers:
                ranges = group.read_by(reader)
                source, task = reader
                if self.versions is None or self.versions[task] == self.version:
                    found.setdefault((source, None), []).append(ranges)
                    continue
                others = without(ranges, self.chosen(reader))
                found.setdefault((source, None), []).append(without(ranges, others))
                found.setdefault((source, self.versions[task]), []).append(others)
        merged = [Reading(source, version, merged_ranges(some)) for (source, version), some in found.items()]
        first, *others_ = merged
        return [first, *sorted((r for r in others_ if r.ranges), key=lambda r: (r.source, r.version or ("", 0)))]


@dataclass(frozen=True)
class PartPlan:
    """What one transaction will replace."""

    segments: tuple[uuid.UUID, ...]
    ranges: RangesOf  # of the rewind's source, with its spec
    rows: int  # of the segments
    before: dict[str, int]  # what the records were counted as
    span: Span | None = None
    others: tuple[Reading, ...] = ()

    @property
    def start(self) -> datetime | None:
        return None if self.span is None else self.span[0]

    @property
    def end(self) -> datetime | None:
        return None if self.span is None else self.span[1]

    @property
    def records(self) -> int:
        return sum(map(offsets.count, self.ranges.values())) + sum(reading.records for reading in self.others)


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


def with_versions(group: Group, known: Collection[str]) -> Group:
    """Refused where nobody knows with which spec version one of its records was read: ``known`` names tasks."""
    if group.refusal or {task for _, task in group.readers} <= set(known):
        return group
    return replace(group, refusal="It is no longer known which spec version has read some of its other records.")


@dataclass(frozen=True)
class Log:
    """What Kafka has of a topic, by partition."""

    starts: Mapping[int, int]
    ends: Mapping[int, int]
    problem: str = ""  # why it can't be read


def within_log(group: Group, logs: Mapping[int, Log]) -> Group:
    """Refused where Kafka does not have all of its records any more. ``logs``: by source."""
    if group.refusal:
        return group
    for source in sorted({source for source, _ in group.readers}):
        log = logs[source]
        refusal = log.problem or _refused_by(log, group.ranges(source))
        if refusal:
            return replace(group, refusal=refusal)
    return group


def _refused_by(log: Log, wanted: RangesOf) -> str:
    for partition, ranges in sorted(wanted.items()):
        low, high = log.starts.get(partition), log.ends.get(partition)
        if low is None or high is None:
            return f"The topic has no partition {partition} now."
        first, last = ranges[0][0], ranges[-1][1]
        if first < low:
            gone = f"offsets {first:,} to {min(low, last) - 1:,} of partition {partition}"
            return f"Kafka no longer has {gone}: the log begins at {low:,}."
        if last > high:
            return f"Kafka has lost offsets of partition {partition}: the log ends at {high:,}."
    return ""


def parts_of(groups: Sequence[Group], loose: Loose, readers: Readers) -> list[PartPlan]:
    """What can be recomputed, cut by interval: groups that share one go together. The oldest interval comes first."""
    good = [g for g in groups if g.used and not g.refusal]
    by_interval: dict[Span, list[int]] = {}
    for n, group in enumerate(good):
        for member in group.used:
            if member.interval is not None:
                by_interval.setdefault(member.interval, []).append(n)
    numbers = {n: uuid.UUID(int=n) for n in range(len(good))}
    together = connected(([numbers[n] for n in some] for some in by_interval.values()), numbers.values())
    parts = [_part([good[pk.int] for pk in sorted(some)], readers) for some in together]
    parts.sort(key=lambda part: part.span or ())
    ranges = merged_ranges([loose.thrown_away, loose.unparseable])
    if ranges:
        count = sum(offsets.count(some) for some in loose.thrown_away.values())
        before = {"polled": count, "thrown_away": count} if count else {}
        parts.append(PartPlan((), ranges, 0, before))
    return parts


def _part(groups: Sequence[Group], readers: Readers) -> PartPlan:
    used = sorted((m for g in groups for m in g.used), key=lambda m: (m.interval or (), m.id))
    spans = [m.interval for m in used if m.interval is not None]
    own, *others = readers.readings(groups)
    records = sum(offsets.count(some) for reading in (own, *others) for some in reading.ranges.values())
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
        ranges=own.ranges,
        others=tuple(others),
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


def without(ranges: RangesOf, others: RangesOf) -> RangesOf:
    """What of these the others leave."""
    left = {p: offsets.subtracted(some, others.get(p, [])) for p, some in ranges.items()}
    return {p: some for p, some in left.items() if some}
