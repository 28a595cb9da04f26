"""A report's counters: each explained, linked, and together what was polled."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.publishing.selectors.totals import Totals
from frontend.counters import sum_of
from ingestion.specs.counters import OUTCOMES


def test_the_outcomes_are_those_that_sum_to_polled() -> None:
    each: dict[str, Any] = {outcome.name: 1 for outcome in OUTCOMES}
    ones = Totals(**each, polled=len(OUTCOMES))
    assert ones.adds_up
    assert sum_of(ones, {}).missing == 0


@pytest.mark.parametrize(("polled", "missing"), [(5, 2), (3, 0), (1, -2)])
def test_what_is_missing_is_said(polled: int, missing: int) -> None:
    shown = sum_of(Totals(polled=polled, published=2, unparseable=1), {})
    assert (shown.missing, shown.adds_up) == (missing, missing == 0)


def test_poison_is_worrying_only_when_there_is_some() -> None:
    def worrying(totals: Totals) -> set[str]:
        shown = sum_of(totals, {})
        return {c.name for c in (*shown.outcomes, *shown.details) if c.is_problem}

    assert worrying(Totals()) == set()
    assert worrying(Totals(polled=2, published=1, unparseable=1, quarantined=1)) == {"unparseable", "quarantined"}


def test_a_counter_leads_to_what_is_behind_it() -> None:
    shown = sum_of(Totals(), {"published": "/segments/"})
    assert [(c.name, c.url) for c in shown.outcomes if c.url] == [("published", "/segments/")]
    assert all(c.help.endswith(".") for c in (*shown.outcomes, *shown.details))
