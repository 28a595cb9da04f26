"""A report's counters as the pages show them: each with its meaning and a link to what is behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.segments.selectors import Totals

# The seven ways in which a record can end; together they are what was polled.
OUTCOMES = (
    ("published", "Published", "Rows in segments."),
    ("rolled_up", "Rolled up", "Merged into a published row."),
    ("thrown_away", "Thrown away", "By the filter, for a time that is too late or too early, or for want of a value."),
    ("unparseable", "Unparseable", "Could not be read; kept in the quarantine."),
    ("duplicates", "Duplicates dropped", "Delivered again, but settled already."),
    ("released", "Released", "Given up undecided; they are read again."),
    ("redundant", "Redundant", "Read by a replica too late: another one had published them."),
)
DETAILS = (
    ("filtered", "Filtered", "Of those thrown away: by the spec's filter."),
    ("outside_window", "Too late or too early", "Of those thrown away: outside the spec's time window."),
    ("tombstones", "Tombstones", "Of those thrown away: records without a value."),
    ("processed_with_error", "With a faulty field", "Stored, but a field did not fit its type and is null."),
    ("redelivered", "Redelivered", "Polled with a delivery count above 1."),
    ("quarantined", "Quarantined", "Poison records, kept whole before they were rejected."),
    ("replayed", "Replayed", "Taken from the quarantine later, and ingested as the replay's report says."),
)
# A number above zero here is worth a look.
_WORRYING = frozenset({"unparseable", "quarantined", "processed_with_error"})


@dataclass(frozen=True)
class Counter:
    """One number of a report."""

    name: str
    label: str
    value: int
    help: str
    url: str  # empty where there is nothing behind it
    worrying: bool


@dataclass(frozen=True)
class Sum:
    """Polled, its seven parts, and whether they are equal."""

    polled: int
    outcomes: list[Counter]
    details: list[Counter]
    adds_up: bool
    missing: int  # what the parts lack (or exceed, negative)


def sum_of(totals: Totals, urls: Mapping[str, str]) -> Sum:
    """The totals, ready to be shown. ``urls``: a counter's name to the page behind it."""
    outcomes = [_counter(totals, urls, *row) for row in OUTCOMES]
    details = [_counter(totals, urls, *row) for row in DETAILS]
    return Sum(totals.polled, outcomes, details, totals.adds_up, totals.polled - sum(c.value for c in outcomes))


def _counter(totals: Totals, urls: Mapping[str, str], name: str, label: str, text: str) -> Counter:
    value = int(getattr(totals, name))
    return Counter(name, label, value, text, urls.get(name, ""), name in _WORRYING and value > 0)
