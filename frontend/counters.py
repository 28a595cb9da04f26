"""A report's counters as the pages show them: each with its meaning and a link to what is behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.publishing.selectors.totals import Totals
from ingestion.specs.counters import Counter, Detail, Outcome, Surplus, counters_of


@dataclass(frozen=True)
class ShownCounter:
    """One number of a report."""

    name: str
    label: str
    value: int
    help: str
    url: str  # empty where there is nothing behind it
    is_problem: bool


@dataclass(frozen=True)
class Sum:
    """Polled, with the rows beyond one a record, its seven parts, and whether they are equal."""

    polled: int
    surplus: list[ShownCounter]
    outcomes: list[ShownCounter]
    details: list[ShownCounter]
    adds_up: bool
    missing: int  # what the parts lack (or exceed, negative)

    @property
    def surplus_shown(self) -> list[ShownCounter]:
        return [c for c in self.surplus if c.value]

    @property
    def shown(self) -> list[ShownCounter]:
        """Outcomes that some record had, and published ones always: a sum needs a first part."""
        return [c for c in self.outcomes if c.value or c.name == "published"]

    @property
    def zeros(self) -> list[ShownCounter]:
        return [c for c in self.outcomes if c not in self.shown]

    @property
    def details_shown(self) -> list[ShownCounter]:
        return [c for c in self.details if c.value]

    @property
    def details_zero(self) -> list[ShownCounter]:
        return [c for c in self.details if not c.value]


def sum_of(totals: Totals, urls: Mapping[str, str], others: str = "") -> Sum:
    """The totals, ready to be shown.

    ``urls``: a counter's name to the page behind it; ``others``: the page behind all that count any polled record.
    """
    counters = counters_of(Totals)
    outcomes = [_shown(totals, urls.get(c.name, others), c) for c in counters if isinstance(c, Outcome)]
    surplus = [_shown(totals, urls.get(c.name, ""), c) for c in counters if isinstance(c, Surplus)]
    details = [
        _shown(totals, urls.get(c.name, "" if c.outcomes else others), c) for c in counters if isinstance(c, Detail)
    ]
    return Sum(totals.polled, surplus, outcomes, details, totals.adds_up, totals.polled - totals.ended)


def _shown(totals: Totals, url: str, counter: Counter) -> ShownCounter:
    value = int(getattr(totals, counter.name))
    return ShownCounter(counter.name, counter.label, value, counter.meaning, url, counter.is_problem and value > 0)
