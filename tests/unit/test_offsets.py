"""The algebra of half-open offset ranges, held against sets of offsets."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ingestion.specs.offsets import Range, count, expanded, merged, ranges_of, subtracted

OFFSETS = st.lists(st.integers(0, 60), max_size=40)
BOUNDS = st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda r: (r[0], r[0] + r[1]))
RANGES = st.lists(BOUNDS, max_size=12)  # in any order, overlapping, touching, empty


def offsets_in(ranges: list[Range]) -> set[int]:
    return {offset for start, end in ranges for offset in range(start, end)}


def assert_least(ranges: list[Range]) -> None:
    """Sorted, none empty, and none touches the next: there is no shorter list of the same offsets."""
    assert all(start < end for start, end in ranges)
    assert all(one[1] < two[0] for one, two in pairwise(ranges))


def test_examples() -> None:
    assert ranges_of([]) == []
    assert ranges_of([7]) == [(7, 8)]
    assert ranges_of([3, 1, 2, 2, 9]) == [(1, 4), (9, 10)]
    assert ranges_of([0, 1, 3]) == [(0, 2), (3, 4)]
    assert merged([(5, 7), (0, 2), (2, 3), (6, 9), (4, 4)]) == [(0, 3), (5, 9)]
    assert subtracted([(0, 10)], [(3, 5), (8, 20)]) == [(0, 3), (5, 8)]
    assert subtracted([(0, 10)], [(0, 10)]) == []
    assert subtracted([(0, 3), (5, 8)], [(2, 6)]) == [(0, 2), (6, 8)]
    assert count([(0, 3), (5, 8)]) == 6
    assert list(expanded([(0, 3), (5, 6)])) == [0, 1, 2, 5]


def test_offsets_of_any_size() -> None:
    top = 2**63 - 2
    assert ranges_of([top, top - 1, 0]) == [(0, 1), (top - 1, top + 1)]


@given(OFFSETS)
def test_ranges_of_holds_exactly_the_offsets(offsets: list[int]) -> None:
    ranges = ranges_of(offsets)
    assert_least(ranges)
    assert list(expanded(ranges)) == sorted(set(offsets))
    assert count(ranges) == len(set(offsets))


@given(RANGES)
def test_merged_holds_the_same_offsets(ranges: list[Range]) -> None:
    assert_least(merged(ranges))
    assert offsets_in(merged(ranges)) == offsets_in(ranges)
    assert merged(merged(ranges)) == merged(ranges) == ranges_of(offsets_in(ranges))


@given(RANGES, RANGES)
def test_subtracted_is_the_difference(ranges: list[Range], holes: list[Range]) -> None:
    rest = subtracted(ranges, holes)
    assert_least(rest)
    assert offsets_in(rest) == offsets_in(ranges) - offsets_in(holes)


@given(RANGES, RANGES)
def test_what_is_taken_away_and_what_is_left_make_the_whole(ranges: list[Range], holes: list[Range]) -> None:
    left = subtracted(ranges, holes)
    taken = subtracted(ranges, left)
    assert count(left) + count(taken) == count(merged(ranges))
    assert merged([*left, *taken]) == merged(ranges)
