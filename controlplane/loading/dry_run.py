"""What a change of a spec would do to the newest records: two samples of the same records, side by side. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from ingestion.specs.messages.sampling import STORED, SampleAnswer, SampledRecord

MAX_CELLS = 50  # of one record, that are shown


@dataclass(frozen=True)
class ChangedCell:
    """A column whose value differs; None where there is none."""

    column: str
    before: Any
    after: Any


@dataclass(frozen=True)
class ChangedRecord:
    """A record that fares otherwise."""

    before: SampledRecord
    after: SampledRecord
    cells: list[ChangedCell]  # of the first of its rows that does

    @property
    def kind(self) -> str:
        """``changes`` its row, is ``gained`` as a row, or no longer one: it ``fails`` or is ``dropped``."""
        had, has = self.before.outcome in STORED, self.after.outcome in STORED
        if had and has:
            return "changes"
        if has:
            return "gained"
        return "fails" if self.after.outcome == "unparseable" else "dropped"


@dataclass(frozen=True)
class DryRun:
    """The records that fare otherwise, and how many there are of each kind."""

    records: int
    changed: list[ChangedRecord]
    counts: dict[str, int]
    rows_before: int
    rows_after: int


def compare_samples(before: SampleAnswer, after: SampleAnswer) -> DryRun:
    """Of the records that both show."""
    pairs = list(zip(before.records, after.records, strict=False))
    changed = [changed for pair in pairs if (changed := _changed_record(*pair)) is not None]
    counts = Counter(record.kind for record in changed)
    return DryRun(len(pairs), changed, dict(counts), _row_count(before), _row_count(after))


def _row_count(answer: SampleAnswer) -> int:
    if answer.rollup is not None:
        return len(answer.rollup)
    return sum(max(1, len(record.stored_rows)) for record in answer.records if record.outcome in STORED)


def _changed_record(before: SampledRecord, after: SampledRecord) -> ChangedRecord | None:
    pairs = [(before.row, after.row), *zip_longest(before.stored_rows, after.stored_rows)]
    cells = next((cells for had, has in pairs if (cells := [*_changed_cells(had or {}, has or {})])), [])
    if before.outcome == after.outcome and not cells:
        return None
    if before.outcome not in STORED and after.outcome not in STORED and before.outcome == after.outcome:
        return None
    return ChangedRecord(before, after, cells[:MAX_CELLS])


def _changed_cells(before: dict[str, Any], after: dict[str, Any]) -> Iterator[ChangedCell]:
    for column in dict.fromkeys([*before, *after]):
        if before.get(column) != after.get(column):
            yield ChangedCell(column, before.get(column), after.get(column))
