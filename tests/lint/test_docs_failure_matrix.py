"""The failure matrix in the documentation names the tests that show each row, and each of them names its row."""

from __future__ import annotations

from collections.abc import Iterator

from tests.lint.sources import PROJECT, no_faults, text_of
from tests.support.named_rows import claimed, shown

PAGE = text_of(PROJECT / "docs" / "failure-matrix.md")


def test_every_row_has_its_tests_and_every_test_its_row() -> None:
    no_faults(faults_of_rows(PAGE, "failure matrix"), "docs/failure-matrix.md and the docstrings of tests differ")


def faults_of_rows(page: str, name: str) -> Iterator[str]:
    """Each test that only the row names, or that only its own docstring assigns to the row."""
    rows, tests = claimed(page), shown(name)
    for number in sorted(rows.keys() | tests.keys()):
        in_row, in_docstrings = rows.get(number, set()), tests.get(number, set())
        if not in_row:
            yield f"row {number}: is not on the page"
        yield from (
            f"row {number}: no docstring of {'::'.join(test)} names it" for test in sorted(in_row - in_docstrings)
        )
        yield from (f"row {number}: lacks {'::'.join(test)}" for test in sorted(in_docstrings - in_row))


def test_no_row_is_left_out() -> None:
    assert sorted(claimed(PAGE)) == [*range(1, 47)]
