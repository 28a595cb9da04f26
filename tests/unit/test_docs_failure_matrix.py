"""The failure matrix in the documentation names the tests that show each row, and each of them names its row."""

from __future__ import annotations

from pathlib import Path

from tests.support.named_rows import claimed, shown

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "failure-matrix.md").read_text()


def test_every_row_has_its_tests_and_every_test_its_row() -> None:
    assert claimed(PAGE) == shown("failure matrix")


def test_no_row_is_left_out() -> None:
    assert sorted(claimed(PAGE)) == [*range(1, 29), *range(30, 38)]
