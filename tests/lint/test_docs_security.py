"""The security checklist in the documentation names the tests that show each row, and each of them names its row."""

from __future__ import annotations

from tests.lint.sources import PROJECT, no_faults, text_of
from tests.lint.test_docs_failure_matrix import faults_of_rows
from tests.support.named_rows import claimed

PAGE = text_of(PROJECT / "docs" / "security-checklist.md")


def test_every_row_has_its_tests_and_every_test_its_row() -> None:
    no_faults(
        faults_of_rows(PAGE, "security checklist"), "docs/security-checklist.md and the docstrings of tests differ"
    )


def test_no_row_is_left_out() -> None:
    assert sorted(claimed(PAGE)) == [*range(1, len(claimed(PAGE)) + 1)]
