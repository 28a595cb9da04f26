"""Every place that adds counters up, answers with them, shows or explains them takes them from one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db.models import BigIntegerField

from controlplane.api.druid import shapes
from controlplane.api.v1.serializers.totals import RatesSerializer, TotalsSerializer
from controlplane.embedded.demo import report
from controlplane.publishing.models import IndexerFence
from controlplane.publishing.selectors.totals import Totals, columns_of
from controlplane.tasks.diagnosis import UNSTORED
from frontend.counters import sum_of
from ingestion.specs.counters import (
    COUNTERS,
    IN_DRUID,
    OUTCOMES,
    UNPUBLISHED,
    Counter,
    Counters,
    Counts,
    Detail,
    Size,
    Unpublished,
    counters_of,
)
from tests.support.pages import codes, rows, section

PROJECT = Path(__file__).resolve().parents[2]
NAMES = {counter.name for counter in COUNTERS}
SUMS = [name for name, field in Totals.model_fields.items() if field.annotation is int]
STORED = {"published", "rolled_up"}
NUMBERS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def guide() -> str:
    return section("Reading a report", (PROJECT / "docs" / "guide.md").read_text())


def test_each_field_is_a_counter_with_words() -> None:
    assert (
        ["polled", *(counter.name for counter in COUNTERS)] == list(Counts.model_fields) == list(Counters.model_fields)
    )
    assert all(counter.label and counter.meaning.endswith(".") for counter in COUNTERS)
    outcomes = {outcome.name for outcome in OUTCOMES}
    assert all(set(counter.outcomes) <= outcomes for counter in COUNTERS if isinstance(counter, Detail))


def test_polled_is_the_sum_of_the_outcomes() -> None:
    each: dict[str, Any] = {outcome.name: 2**n for n, outcome in enumerate(OUTCOMES)}
    assert Counters(polled=2 ** len(OUTCOMES) - 1, **each).adds_up
    for name in each:
        with pytest.raises(ValueError, match="ended"):
            Counters(polled=2 ** len(OUTCOMES) - 1, **{**each, name: 0})


def test_a_record_with_several_rows_is_one_record() -> None:
    three = Counters(polled=2, published=2, rolled_up=1, further_rows=2, unparseable=1, quarantined=1)
    assert (three.ended, three.stored, three.adds_up) == (2, 1, True)
    shown = sum_of(Totals(**three.model_dump()), {})
    assert (shown.missing, [c.value for c in shown.surplus_shown]) == (0, [2])


def test_what_ends_without_a_publish_is_told_of() -> None:
    assert set(Unpublished.model_fields) == set(UNPUBLISHED)


def test_each_is_a_column_of_an_indexers_row() -> None:
    columns = {field.name for field in IndexerFence._meta.concrete_fields if type(field) is BigIntegerField}
    assert columns - {"published_today"} == {column for name in SUMS for column in columns_of(name)}


def test_each_is_in_the_answers_of_rest() -> None:
    fields = TotalsSerializer().fields
    assert set(fields) == {*Totals.model_fields, "rows_per_s", "adds_up"}
    assert {counter.name: fields[counter.name].help_text for counter in COUNTERS} == {
        counter.name: counter.meaning for counter in COUNTERS
    }
    assert set(RatesSerializer().fields) == set(IN_DRUID)


def test_each_is_in_druids_answers() -> None:
    assert {c.name for c in COUNTERS if not isinstance(c, Size)} < set(shapes._COUNTER_NAMES)
    assert shapes.row_stats(dict.fromkeys(IN_DRUID, 1)) == {
        "processed": 1,  # of two, one with an error
        "processedBytes": 1,
        "processedWithError": 1,
        "thrownAway": 1,
        "unparseable": 1,
    }


def test_each_is_on_the_pages() -> None:
    shown = sum_of(Totals(), {})
    assert [counter.name for counter in (*shown.outcomes, *shown.surplus, *shown.details)] == [
        counter.name for counter in counters_of(Totals) if not isinstance(counter, Size)
    ]


def test_each_is_in_the_demos_report() -> None:
    assert set(report.SHOWN) <= NAMES
    assert set(report.ROWS) == {"polled", *report.SHOWN, "segments", "rows_per_s"}


def test_each_outcome_without_a_row_is_a_reason_why_nothing_is_shown() -> None:
    """By itself, or by its details."""

    def described(outcome: Counter) -> set[str]:
        details = {c.name for c in COUNTERS if isinstance(c, Detail) and c.outcomes == (outcome.name,)}
        return {outcome.name} if outcome.name in UNSTORED else details

    missing = [o.name for o in OUTCOMES if o.name not in STORED and not described(o) & set(UNSTORED)]
    assert missing == []
    assert set(UNSTORED) <= NAMES


def test_each_is_explained_in_the_guide() -> None:
    explained = {codes(row[0])[0]: row[1] for row in rows(guide())}
    for counter in counters_of(Totals):
        assert explained[counter.name].startswith(counter.meaning), f"{counter.name} means: {counter.meaning}"
    assert list(explained)[1 : len(OUTCOMES) + 1] == [outcome.name for outcome in OUTCOMES]


@pytest.mark.parametrize("page", ["docs/guide.md", "README.md"])
def test_as_many_outcomes_as_there_are(page: str) -> None:
    assert NUMBERS[len(OUTCOMES)] in (PROJECT / page).read_text()
