"""Ours beside a real Druid's recorded answers: as many cases agree as the docs say."""

from __future__ import annotations

import pytest

from tests.support.druid_agreement import PAGE, RECORDED, counted, line
from tests.support.druid_corpus import cases

SECTIONS = list(dict.fromkeys(case.section for case in cases()))


def test_what_is_asked_was_recorded() -> None:
    asked: dict[str, list[str]] = {}
    for case in cases():
        asked.setdefault(case.section, []).append(case.name)
    assert {section: list(RECORDED[section]) for section in asked} == asked
    assert RECORDED["druid"] == "33.0.0"


@pytest.mark.parametrize("section", SECTIONS)
def test_as_many_cases_agree_as_the_docs_say(section: str) -> None:
    assert line(section, counted(section)[section]) in PAGE.read_text(encoding="utf-8").splitlines()
