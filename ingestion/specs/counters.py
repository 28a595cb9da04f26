"""What is counted of records: each counter is a field of ``Counts``, with its label and meaning at it.

Whatever adds counters up, answers with them, shows or explains them takes names and words from here. In the metadata
store each is a column of an indexer's row; one that heartbeats tell has two (``_before`` and ``_now``) for that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, Field, model_validator

from ingestion.specs.base import Message


@dataclass(frozen=True)
class Counter:
    """Words for a number of records."""

    label: str
    meaning: str
    unpublished: bool = False  # counts records that are in no publish, which heartbeats tell of
    is_problem: bool = False  # if it is above zero
    druid: str = ""  # in which of Druid's row stats it is
    name: str = ""  # of its field


@dataclass(frozen=True)
class Outcome(Counter):
    """One of the ways in which a record can end; together they are what was polled."""


@dataclass(frozen=True)
class Detail(Counter):
    """It describes records that are counted in an outcome already: in these, or in whichever if none is named."""

    of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Surplus(Counter):
    """It counts rows that are no records of their own: the outcomes are the records' and these together."""


@dataclass(frozen=True)
class Size(Counter):
    """It counts their bytes."""


Count = Annotated[int, Field(ge=0)]


class Counts(Message):
    """How many records ended how. ``polled`` counts deliveries: a record that is released comes again.

    Of a record that is stored the rows are counted, so that the outcomes are ``polled`` and ``further_rows`` together.
    """

    polled: Count = 0
    published: Annotated[Count, Outcome("Published", "Rows in segments.", druid="processed")] = 0
    rolled_up: Annotated[Count, Outcome("Rolled up", "Merged into a published row.", druid="processed")] = 0
    thrown_away: Annotated[
        Count,
        Outcome(
            "Thrown away",
            "Dropped by the filter, too late or too early, or without a value.",
            druid="thrownAway",
        ),
    ] = 0
    unparseable: Annotated[
        Count, Outcome("Unparseable", "Could not be read. See the quarantine.", is_problem=True, druid="unparseable")
    ] = 0
    duplicates: Annotated[Count, Outcome("Duplicates dropped", "Delivered again although they were settled.")] = 0
    released: Annotated[
        Count, Outcome("Released", "Released without an outcome. They are read again.", unpublished=True)
    ] = 0
    redundant: Annotated[
        Count,
        Outcome("Redundant", "Read by a replica, but another replica published them first.", unpublished=True),
    ] = 0
    further_rows: Annotated[
        Count, Surplus("Further rows", "Rows after the first one in records that have several rows.")
    ] = 0
    filtered: Annotated[Count, Detail("Filtered", "Thrown away by the spec's filter.", of=("thrown_away",))] = 0
    outside_window: Annotated[
        Count,
        Detail(
            "Too late or too early",
            "Thrown away because their time is outside the spec's time window.",
            of=("thrown_away",),
        ),
    ] = 0
    tombstones: Annotated[
        Count, Detail("Tombstones", "Thrown away because they have no value.", of=("thrown_away",))
    ] = 0
    processed_with_error: Annotated[
        Count,
        Detail(
            "With a faulty field",
            "Stored, but a field did not fit its type and is null.",
            of=("published", "rolled_up"),
            is_problem=True,
            druid="processedWithError",
        ),
    ] = 0
    redelivered: Annotated[Count, Detail("Redelivered", "Polled with a delivery count above 1.", unpublished=True)] = 0
    quarantined: Annotated[
        Count,
        Detail(
            "Quarantined",
            "Unparseable records that were stored in the quarantine.",
            of=("unparseable",),
            is_problem=True,
        ),
    ] = 0
    input_bytes: Annotated[Count, Size("Input", "The size of the records' values.", druid="processedBytes")] = 0

    @property
    def ended(self) -> int:
        """How many of the polled records have an outcome: each has exactly one."""
        rows: int = sum(getattr(self, outcome.name) for outcome in OUTCOMES)
        return rows - self.further_rows

    @property
    def stored(self) -> int:
        """How many records have rows in segments."""
        return self.published + self.rolled_up - self.further_rows

    @property
    def adds_up(self) -> bool:
        return self.polled == self.ended


class Counters(Counts):
    """Of one batch, or of several: every record that was polled has ended."""

    @model_validator(mode="after")
    def _check_sum(self) -> Counters:
        if not self.adds_up:
            raise ValueError(f"polled {self.polled} records, but {self.ended} ended")
        return self

    def __add__(self, other: Counters) -> Counters:
        return Counters(**{name: getattr(self, name) + getattr(other, name) for name in Counters.model_fields})


def counters_of(model: type[BaseModel]) -> tuple[Counter, ...]:
    """The counters among a model's fields, in their order."""
    return tuple(
        replace(words, name=name)
        for name, field in model.model_fields.items()
        for words in field.metadata
        if isinstance(words, Counter)
    )


COUNTERS = counters_of(Counts)
OUTCOMES = tuple(counter for counter in COUNTERS if isinstance(counter, Outcome))
# Outcomes without a publish, and all that is counted of records without one.
UNPUBLISHED_OUTCOMES = tuple(outcome.name for outcome in OUTCOMES if outcome.unpublished)
UNPUBLISHED = tuple(counter.name for counter in COUNTERS if counter.unpublished)
# What a publish can bring.
PUBLISHED = tuple(name for name in Counts.model_fields if name not in UNPUBLISHED_OUTCOMES)
# What Druid counts as well: our name → that of its row stats.
IN_DRUID = {counter.name: counter.druid for counter in COUNTERS if counter.druid}


class Unpublished(Message):
    """What ended in an epoch without a publish."""

    released: Count = 0
    redundant: Count = 0
    redelivered: Count = 0
