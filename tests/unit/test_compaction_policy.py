"""Which segments are merged when: a table of what is seen and what is chosen."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.compaction.policy import (
    AGE,
    AT_ONCE_FILES,
    FILES,
    QUIET,
    REST_TIER,
    Candidate,
    Limits,
    choose,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIMITS = Limits(target_rows=64_000, target_bytes=64_000_000)
SMALL, MIDDLE, LARGE, FULL = 400, 3_900, 20_000, 32_000  # the first three are below a 128th, a 16th, a half


def seen(
    count: int, rows: int = SMALL, age: timedelta = timedelta(minutes=1), kind: str | None = "a"
) -> list[Candidate]:
    return [Candidate(uuid.uuid4(), rows, 10 * rows, NOW - age, kind) for _ in range(count)]


@pytest.mark.parametrize(
    ("segments", "tiers", "reason"),
    [
        (seen(1), [], "It has one segment"),
        (seen(FILES - 1), [], f"15 segments of a similar size, merged when there are {FILES}"),
        (seen(FILES, age=AGE - timedelta(seconds=10)), [], "merged in 10 s, or when there are 200"),
        (seen(FILES, age=AGE), [5], ""),
        (seen(AT_ONCE_FILES, rows=50, age=timedelta()), [4], ""),
        (seen(15, MIDDLE) + seen(15), [], "15 segments of a similar size"),
        (seen(16, MIDDLE), [6], ""),
        (seen(4, LARGE, age=timedelta()), [7], ""),  # together they are as large as wanted
        (seen(3, LARGE), [], "3 segments of a similar size"),
        (seen(50, FULL), [], "Its segments are large enough."),
        (seen(20) + seen(16, MIDDLE) + seen(4, LARGE), [5, 6, 7], ""),
        (seen(3, age=QUIET), [], "merged when there are 16"),
        (seen(3, age=QUIET) + seen(1, MIDDLE, QUIET), [REST_TIER], ""),
        (seen(3, age=QUIET) + seen(1, MIDDLE, timedelta(minutes=9)), [], "nothing has been added for 10 minutes"),
        (seen(20, kind=None), [], "20 segments whose task's schema is no longer known are not merged."),
        (
            seen(3, FULL) + seen(1, kind=None),
            [],
            "1 segment whose task's schema is no longer known is not merged.",
        ),
        (seen(1) + seen(4, FULL), [], "1 segment of a similar size"),
        (seen(10) + seen(10, kind="b"), [], "not merged with each other"),
        (seen(20) + seen(10, kind="b"), [5], ""),
    ],
)
def test_what_is_merged_and_why_not(segments: list[Candidate], tiers: list[int], reason: str) -> None:
    choice = choose(segments, NOW, LIMITS)
    assert [g.tier for g in choice.groups] == tiers
    assert reason in (choice.health.cause if choice.health else "")
    assert bool(choice.health) != bool(tiers)
    for group in choice.groups:
        assert {s.kind for s in group.segments} == {group.kind}


def test_a_tier_has_one_job_at_a_time_and_its_segments_are_in_no_other() -> None:
    segments = seen(40) + seen(16, MIDDLE)
    busy = choose(segments, NOW, LIMITS, busy={5}, taken={s.id for s in segments[:20]})
    assert [g.tier for g in busy.groups] == [6]
    assert choose(segments, NOW, LIMITS, busy={REST_TIER}).groups == ()


def test_a_group_makes_one_segment_of_no_more_than_the_target() -> None:
    [group] = choose(seen(300, rows=900, age=timedelta()), NOW, LIMITS).groups
    assert len(group.segments) == 71  # 71 × 900 rows are below 64,000
    few = Limits(target_rows=64_000, target_bytes=64_000_000, max_input_bytes=100_000)
    [group] = choose(seen(300), NOW, few).groups
    assert sum(s.size_bytes for s in group.segments) == 100_000 == 25 * 4_000


@pytest.mark.parametrize(("per_minute", "rows"), [(3600, 3300), (1000, 5900), (60, 500), (12, 40)])
def test_however_it_comes_in_a_row_is_merged_four_times_at_most_and_segments_level_off(
    per_minute: int, rows: int
) -> None:
    """Twenty minutes of an interval; a round every ten seconds, and jobs that take ten seconds."""
    dice = random.Random(1)
    limits = Limits()
    segments: dict[uuid.UUID, Candidate] = {}
    written = came = 0
    counts = []
    jobs: list[tuple[int, tuple[Candidate, ...]]] = []
    for step in range(120):
        now = NOW + timedelta(seconds=10 * step)
        for _tier, inputs in jobs:
            merged = sum(s.rows for s in inputs)
            for s in inputs:
                del segments[s.id]
            made = Candidate(uuid.uuid4(), merged, 20 * merged, now, "a")
            segments[made.id] = made
            written += merged
        for _ in range(per_minute // 6):
            count = dice.randint(1, 2 * rows)
            came += count
            one = Candidate(uuid.uuid4(), count, 20 * count, now - timedelta(seconds=dice.random() * 10), "a")
            segments[one.id] = one
        jobs = [(g.tier, g.segments) for g in choose(list(segments.values()), now, limits).groups]
        counts.append(len(segments))
    assert sum(s.rows for s in segments.values()) == came
    assert written <= 4 * came
    assert max(counts[-30:]) <= 1.5 * max(counts[30:60]) + 10
