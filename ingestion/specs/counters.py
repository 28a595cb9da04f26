"""The counters of records: each is a field of ``Counts``, with its label and meaning.

Code that sums, returns, shows or explains counters takes names and texts from here. In the metadata store each
counter is a column of an indexer's row. Counters that heartbeats report have two columns (``_before``, ``_now``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, Field, model_validator

from ingestion.specs.base import Message


@dataclass(frozen=True)
class Counter:
    """The label and the meaning of a counter."""

    label: str
    meaning: str
    unpublished: bool = False  # counts records that are in no publish, which heartbeats tell of
    is_problem: bool = False  # if it is above zero
    druid: str = ""  # in which of Druid's row stats it is
    name: str = ""  # of its field


@dataclass(frozen=True)
class Outcome(Counter):
    """A counter of one outcome of records. All outcomes together are the polled records."""


@dataclass(frozen=True)
class Detail(Counter):
    """A counter of records that an outcome counts too: one of ``outcomes`` or, if they are empty, any."""

    outcomes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Surplus(Counter):
    """A counter of rows after the first of a record. The outcomes count both records and these rows."""


@dataclass(frozen=True)
class Size(Counter):
    """A counter of bytes."""


Count = Annotated[int, Field(ge=0)]


class Counts(Message):
    """The number of records by outcome. ``polled`` counts deliveries: a released record is delivered again.

    The outcomes count all rows of a stored record, so that their sum is ``polled`` plus ``further_rows``.
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
    filtered: Annotated[Count, Detail("Filtered", "Thrown away by the spec's filter.", outcomes=("thrown_away",))] = 0
    outside_window: Annotated[
        Count,
        Detail(
            "Too late or too early",
            "Thrown away because their time is outside the spec's time window.",
            outcomes=("thrown_away",),
        ),
    ] = 0
    tombstones: Annotated[
        Count, Detail("Tombstones", "Thrown away because they have no value.", outcomes=("thrown_away",))
    ] = 0
    processed_with_error: Annotated[
        Count,
        Detail(
            "With a faulty field",
            "Stored, but a field did not fit its type and is null.",
            outcomes=("published", "rolled_up"),
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
            outcomes=("unparseable",),
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
    """The counters of one or several batches, in which every polled record has an outcome."""

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
    """Counters of the epoch's records that had an outcome without a publish."""

    released: Count = 0
    redundant: Count = 0
    redelivered: Count = 0
