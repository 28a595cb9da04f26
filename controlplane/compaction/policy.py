"""Which segments of an interval are merged now: by size. Pure; segments in, groups or health out.

A segment's size is its share of a target of rows or bytes, whichever is larger. From half of the target on it is left
alone for good; below that, each tier holds sizes of one to eight. Sixteen segments of a tier make one of a higher tier,
so that a row is merged once a tier at most: of a stream at full speed twice or three times, whatever comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from controlplane.common.health import Code, Health

TARGET_ROWS = 5_000_000
TARGET_BYTES = 512 * 1024 * 1024
MAX_INPUTS = 2_000
LARGE = 0.5  # of the target: as large as wanted
TIERS = tuple(LARGE / 8**n for n in range(7, -1, -1))  # a tier's segments are below this share, and not below the last
REST_TIER = len(TIERS)  # the tier of an interval that nothing is added to any more
MANUAL_TIER = REST_TIER + 1  # and of what somebody has asked for
AGE, FILES, AT_ONCE_FILES = timedelta(seconds=30), 16, 200  # so many at once; fewer when the oldest has that age
QUIET, QUIET_FILES = timedelta(minutes=10), 4


@dataclass(frozen=True)
class Candidate:
    """A segment in use."""

    id: UUID
    rows: int
    size_bytes: int
    created_at: datetime
    kind: str | None  # rows of one kind can be in one segment; None for what nobody knows
    partitioned: bool = False  # by what is wanted of its interval: it is not merged


@dataclass(frozen=True)
class Limits:
    """How large a segment is to become, and how much one job may read."""

    target_rows: int = TARGET_ROWS
    target_bytes: int = TARGET_BYTES
    max_input_bytes: int | None = None
    rewrites_whole: bool = False  # an interval is written anew as a whole once nothing is added to it any more

    def share(self, segment: Candidate) -> float:
        """Of the target; 1.0 is as large as wanted."""
        return max(segment.rows / self.target_rows, segment.size_bytes / self.target_bytes)

    def tier(self, segment: Candidate) -> int | None:
        """None for one that is large enough."""
        share = self.share(segment)
        return next((n for n, most in enumerate(TIERS) if share < most), None)


@dataclass(frozen=True)
class Group:
    """Segments that become one."""

    tier: int
    kind: str
    segments: tuple[Candidate, ...]


@dataclass(frozen=True)
class Choice:
    """What to merge of an interval now; and if it is nothing, why not."""

    groups: tuple[Group, ...] = ()
    health: Health | None = None
    rewrites_whole: bool = False  # all of it is written anew


@dataclass
class _Tiers:
    by_kind: dict[tuple[int, str], list[Candidate]] = field(default_factory=dict)
    unknown_schemas: int = 0
    large: int = 0


def choose(
    segments: Sequence[Candidate],
    now: datetime,
    limits: Limits,
    busy: Collection[int] = (),
    taken: Collection[UUID] = (),
) -> Choice:
    """``busy``: tiers that have a job already; ``taken``: the segments of those jobs."""
    if REST_TIER in busy:
        cause = "A job is rewriting its rows." if limits.rewrites_whole else "A job is merging its segments."
        return Choice(health=Health.of(Code.COMPACTING, cause))
    if limits.rewrites_whole and segments and not busy and _is_quiet(segments, now):
        return Choice(rewrites_whole=True)
    free = [s for s in segments if s.id not in taken]
    tiers = _sort_into_tiers(free, limits)
    groups = [
        _make_group(tier, kind, some, limits)
        for (tier, kind), some in sorted(tiers.by_kind.items())
        if tier not in busy and not _wait_reason(some, now, limits)
    ]
    if not groups and not busy and not limits.rewrites_whole:
        groups = list(_quiet_groups(tiers, now, limits))
    by_tier = {g.tier: g for g in groups if len(g.segments) > 1}
    return Choice(tuple(by_tier.values()), None if by_tier else _health(segments, tiers, now, limits, busy))


def _sort_into_tiers(segments: Iterable[Candidate], limits: Limits) -> _Tiers:
    tiers = _Tiers()
    for segment in sorted(segments, key=lambda s: s.created_at):
        tier = None if segment.partitioned else limits.tier(segment)
        if tier is None:
            tiers.large += 1
        elif segment.kind is None:
            tiers.unknown_schemas += 1
        else:
            tiers.by_kind.setdefault((tier, segment.kind), []).append(segment)
    return tiers


def _wait_reason(segments: Sequence[Candidate], now: datetime, limits: Limits) -> str:
    """Empty when it is time to merge these."""
    count = len(segments)
    if count >= AT_ONCE_FILES or sum(map(limits.share, segments)) >= 1:
        return ""
    if count < FILES:
        return f"{count} segment{'' if count == 1 else 's'} of a similar size, merged when there are {FILES}"
    wait = (AGE - (now - segments[0].created_at)).total_seconds()
    return (
        ""
        if wait <= 0
        else f"{count} segments of a similar size, merged in {wait:.0f} s, or when there are {AT_ONCE_FILES}"
    )


def _is_quiet(segments: Iterable[Candidate], now: datetime) -> bool:
    """Nothing has been added for a while."""
    return now - max(s.created_at for s in segments) >= QUIET


def _quiet_groups(tiers: _Tiers, now: datetime, limits: Limits) -> Iterable[Group]:
    """All that is small, once nothing has been added for a while."""
    for kind in sorted({kind for _, kind in tiers.by_kind}):
        some = sorted((s for (_, k), ss in tiers.by_kind.items() if k == kind for s in ss), key=lambda s: s.created_at)
        if len(some) >= QUIET_FILES and _is_quiet(some, now):
            yield _make_group(REST_TIER, kind, some, limits)
            return


def group_all(segments: Iterable[Candidate], limits: Limits) -> Sequence[Group]:
    """All that is not as large as wanted, whenever it came: the small ones together, one with too many rows cut up."""
    small: dict[str, list[Candidate]] = {}
    groups: list[Group] = []
    for segment in sorted(segments, key=lambda s: s.created_at):
        if segment.kind is not None and segment.rows > limits.target_rows:
            groups.append(Group(MANUAL_TIER, segment.kind, (segment,)))
        elif segment.kind is not None and limits.share(segment) < LARGE:
            small.setdefault(segment.kind, []).append(segment)
    for kind, waiting in sorted(small.items()):
        while waiting:
            group = _make_group(MANUAL_TIER, kind, waiting, limits)
            groups += [group] if len(group.segments) > 1 else []
            waiting = waiting[len(group.segments) :]
    return groups


def _make_group(tier: int, kind: str, segments: Sequence[Candidate], limits: Limits) -> Group:
    """The oldest, as many as make one segment."""
    chosen: list[Candidate] = []
    share, size_bytes = 0.0, 0
    for segment in segments[:MAX_INPUTS]:
        share += limits.share(segment)
        size_bytes += segment.size_bytes
        too_much = limits.max_input_bytes is not None and size_bytes > limits.max_input_bytes
        if share > 1 or too_much:
            break
        chosen.append(segment)
    return Group(tier, kind, tuple(chosen))


def _health(
    segments: Sequence[Candidate], tiers: _Tiers, now: datetime, limits: Limits, busy: Collection[int]
) -> Health:
    if busy:
        return Health.of(Code.COMPACTING, "A job is running.")
    if limits.rewrites_whole:
        cause = f"It is partitioned when nothing has been added for {QUIET.total_seconds() / 60:.0f} minutes."
        return Health.of(Code.WAITING_FOR_SEGMENTS, cause)
    if len(segments) == 1:
        return Health.of(Code.COMPACTED, "It has one segment.")
    if tiers.large == len(segments):
        return Health.of(Code.COMPACTED, "Its segments are large enough.")
    parts = [_wait_reason(some, now, limits) for _, some in sorted(tiers.by_kind.items())]
    if tiers.unknown_schemas:
        several, stay = ("", "is not merged") if tiers.unknown_schemas == 1 else ("s", "are not merged")
        parts.append(f"{tiers.unknown_schemas} segment{several} whose task's schema is no longer known {stay}")
    kinds = Counter(kind for _, kind in tiers.by_kind)
    if len(kinds) > 1:
        parts.append("segments of different metrics or rollup are not merged with each other")
    if sum(map(len, tiers.by_kind.values())) > 1:
        parts.append(
            f"small segments are merged when nothing has been added for {QUIET.total_seconds() / 60:.0f} minutes"
        )
    sentence = "; ".join(dict.fromkeys(p for p in parts if p)) or "there are no other segments to merge"
    return Health.of(Code.WAITING_FOR_SEGMENTS, f"{sentence[0].upper()}{sentence[1:]}.")
