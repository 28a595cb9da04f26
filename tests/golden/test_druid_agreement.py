"""Ours beside a real Druid's recorded answers: as many cases agree as the docs say."""

from __future__ import annotations

import pytest

from tests.support.druid_agreement import RECORDED, counted
from tests.support.druid_corpus import cases
from tests.support.druid_tables import TABLES, written


def test_what_is_asked_was_recorded() -> None:
    asked: dict[str, list[str]] = {}
    for case in cases():
        asked.setdefault(case.section, []).append(case.name)
    assert {section: list(RECORDED[section]) for section in asked} == asked
    assert RECORDED["druid"] == "33.0.0"


@pytest.mark.parametrize("name", TABLES)
def test_as_many_cases_agree_as_the_docs_say(name: str) -> None:
    assert written(name).splitlines() == TABLES[name]().splitlines()


def test_nothing_means_something_else() -> None:
    assert sum(count["other"] for count in counted().values()) == 0
