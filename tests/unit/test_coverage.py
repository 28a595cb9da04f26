"""Coverage: ranges in cells, receipts of replays, and the drawing with its text."""

from __future__ import annotations

import pytest

from controlplane.publishing.selectors.coverage import (
    CELLS,
    STATES,
    PartitionCoverage,
    cells_from_receipts,
    count_by_cell,
)
from frontend.coverage_drawing import WORDS, Drawing, drawing_of
from frontend.templatetags.headgate import cover


@pytest.mark.parametrize(
    ("ranges", "start", "width", "expected"),
    [
        ([(0, 10)], 0, 10, {0: 10}),
        ([(5, 15)], 0, 10, {0: 5, 1: 5}),
        ([(100, 135)], 100, 10, {0: 10, 1: 10, 2: 10, 3: 5}),
        ([(3, 4), (7, 8), (1999, 2000)], 0, 10, {0: 2, 199: 1}),
        ([], 0, 1, {}),
        ([(0, 200)], 0, 1, dict.fromkeys(range(200), 1)),
    ],
)
def test_ranges_fall_into_cells(
    ranges: list[tuple[int, int]], start: int, width: int, expected: dict[int, int]
) -> None:
    assert {n: count for n, count in enumerate(count_by_cell(ranges, start, width)) if count} == expected


def test_millions_of_offsets_are_a_few_cells() -> None:
    cells = count_by_cell([(7, 10_000_000), (10_000_001, 20_000_000)], 0, 100_000)
    assert len(cells) == CELLS and sum(cells) == 19_999_992


def test_a_replay_takes_from_what_was_unparseable() -> None:
    cells = cells_from_receipts(
        [
            ("unparseable", False, 3, 10),
            ("stored", True, 3, 6),
            ("thrown_away", True, 3, 1),
            ("unparseable", True, 3, 3),
            ("duplicate", False, 3, 2),
        ]
    )
    assert {name: counts[3] for name, counts in cells.items() if counts[3]} == {
        "unparseable": 3,
        "stored": 6,
        "thrown_away": 1,
        "duplicate": 2,
    }


def drawn(**cells: dict[int, int]) -> Drawing:
    whole = {name: [0] * CELLS for name in (*STATES, "duplicate")}
    for name, counts in cells.items():
        for cell, count in counts.items():
            whole[name][cell] = count
    return drawing_of(PartitionCoverage(4, 1000, 3000, 10, whole, [(1015, 1018)], True))


def test_neighbours_that_look_alike_are_one_run_and_what_is_notable_is_marked() -> None:
    drawing = drawn(stored={0: 10, 1: 7, 2: 10}, hole={1: 3}, waiting=dict.fromkeys(range(3, 200), 10))
    assert [(r.x, r.width, r.state, r.mark) for r in drawing.runs] == [
        (0, 3, "stored", False),
        (3, 197, "waiting", False),
        (1, 1, "hole", True),
    ]


def test_the_drawing_says_the_same_in_words() -> None:
    drawing = drawn(stored={0: 10, 1: 7}, gap={5: 1200})
    assert drawing.text == "Partition 4, offsets 1,000 to 2,999: 17 stored, 1,200 removed before read."


def test_a_duplicate_is_a_mark_and_never_the_colour_of_a_cell() -> None:
    drawing = drawn(stored={0: 1}, duplicate={0: 9})
    assert [(r.state, r.mark) for r in drawing.runs] == [("stored", False), ("duplicate", True)]


def test_every_state_has_words_and_a_colour() -> None:
    assert set(WORDS) == {*STATES, "duplicate"}
    assert len({cover(state) for state in WORDS}) == len(WORDS)
