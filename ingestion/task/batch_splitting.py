"""A publish that is refused for what it says is never sent again unchanged: the batch is cut up until the records at
fault stand alone. These go into quarantine with the refusal, and the rest is published.

A refusal is not always a record's fault. When many records in a row were refused, each by itself, and nothing was taken
in between, or when not even a bare place in the quarantine is taken, the task fails with the refusal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from structlog.typing import FilteringBoundLogger

from ingestion.client.errors import Unacceptable
from ingestion.rows import ROW, row_indexes
from ingestion.sources.base import Batch
from ingestion.specs import offsets
from ingestion.specs.messages.protocol import Advance, Outcomes
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.task.errors import Refused
from ingestion.task.ledger import STORED, Ledger

MAX_IN_A_ROW = 100
_LAST_OFFSET = 2**63 - 1


@dataclass(frozen=True)
class Part:
    """A batch, or a run of its records, and their rows: None when there are none."""

    ledger: Ledger
    rows: pa.Table | None

    def halves(self, named: frozenset[str]) -> tuple[Part, Part]:
        """The first and the second half of the records, each with what belongs to its offsets.

        ``named``: columns that rows have whether they hold something or not; others go when they are empty.
        """
        first, second = split_ledger(self.ledger)
        middle = len(first.batch)
        return (
            Part(first, self._rows(0, middle, named)),
            Part(second, self._rows(middle, len(self.ledger.batch), named)),
        )

    def _rows(self, start: int, stop: int, named: frozenset[str]) -> pa.Table | None:
        if self.rows is None:
            return None
        indexes = row_indexes(self.rows)
        inside = (indexes >= start) & (indexes < stop)
        rows = self.rows.filter(pa.array(inside))
        rows = rows.set_column(0, ROW, pa.array(indexes[inside] - start, pa.int32()))
        columns = [
            i
            for i, name in enumerate(rows.column_names)
            if i < 2 or name in named or rows.column(i).null_count < rows.num_rows
        ]
        return rows.select(columns)


Register = Callable[[Part], bool]


class Refusals:
    """What becomes of refused publishes of one indexer. ``in_a_row``: records that were refused since the last one that
    was not."""

    def __init__(self, schema: DataSchema, log: FilteringBoundLogger) -> None:
        dimensions = schema.dimensionsSpec.dimensions
        self._column_names = frozenset([*(d.name for d in dimensions), *(m.name for m in schema.metricsSpec)])
        self._log = log
        self.in_a_row = 0

    def registered(self, part: Part, register: Register) -> bool:
        """Register all of the part, in its order, in as many publishes as it takes.

        ``register`` publishes a part. False: it went no further, since what is left has to be read again.
        Raises ``Refused`` and whatever ``register`` does but ``Unacceptable``.
        """
        try:
            is_registered = register(part)
        except Unacceptable as refusal:
            self._log.warning("a publish was refused", records=len(part.ledger.batch), reason=str(refusal))
            if len(part.ledger.batch) > 1:
                return all(self.registered(half, register) for half in part.halves(self._column_names))
            return self._quarantined(part, str(refusal), register)
        if part.ledger.indexes(STORED).size:
            self.in_a_row = 0
        return is_registered

    def _quarantined(self, part: Part, reason: str, register: Register) -> bool:
        self.in_a_row += 1
        if not len(part.ledger.batch) or self.in_a_row > MAX_IN_A_ROW:
            raise Refused(f"Publishes are refused, but not because of a record: {reason}")
        part.ledger.mark_unparseable({0: f"its publish was refused: {reason}"}, "refused")
        try:
            return register(Part(part.ledger, None))
        except Unacceptable as second_error:
            self._log.warning("a quarantined record was refused", reason=str(second_error))
        try:
            return register(Part(part.ledger.without_payloads(), None))
        except Unacceptable as second_error:
            raise Refused(
                f"Publishes are refused, even of a quarantined record without its payload: {second_error}"
            ) from second_error


def split_ledger(ledger: Ledger) -> tuple[Ledger, Ledger]:
    """The first and the second half of the records; their outcomes are the ledger's own."""
    middle = len(ledger.batch) // 2
    first, second = split_batch(ledger.batch, middle)
    return ledger.part(first, 0), ledger.part(second, middle)


def split_batch(batch: Batch, middle: int) -> tuple[Batch, Batch]:
    """The records before ``middle`` and those from there on. The offsets of each partition are cut where its first
    record of the second half is; what has none there stays with the first half."""
    cuts = {p: _split_offset(batch, p, middle) for p in {*batch.extra, *batch.progress}}
    return (
        _slice_batch(batch, 0, middle, {p: (0, cut) for p, cut in cuts.items()}),
        _slice_batch(batch, middle, len(batch), {p: (cut, _LAST_OFFSET) for p, cut in cuts.items()}),
    )


def _split_offset(batch: Batch, partition: int, middle: int) -> int:
    """The offset at which the second half begins."""
    after = batch.offsets[middle:][batch.partitions[middle:] == partition]
    if not len(after):
        return _LAST_OFFSET
    before = batch.offsets[:middle][batch.partitions[:middle] == partition]
    return int(after[0]) if len(before) else 0


def _slice_batch(batch: Batch, start: int, stop: int, within: dict[int, offsets.Range]) -> Batch:
    def sliced(column: Any) -> list[Any]:
        return [column[i] for i in range(start, stop)]

    extra = {p: _clip_outcomes(outcomes, within[p]) for p, outcomes in batch.extra.items()}
    progress = {p: _clip_advance(advance, within[p]) for p, advance in batch.progress.items()}
    return replace(
        batch,
        partitions=batch.partitions[start:stop],
        offsets=batch.offsets[start:stop],
        delivery_counts=batch.delivery_counts[start:stop],
        payloads=sliced(batch.payloads),
        keys=sliced(batch.keys),
        timestamps_ms=sliced(batch.timestamps_ms),
        headers=sliced(batch.headers) if batch.headers else (),
        extra={p: outcomes for p, outcomes in extra.items() if outcomes != Outcomes()},
        progress={p: advance for p, advance in progress.items() if advance.start < advance.end},
    )


def _clip_outcomes(outcomes: Outcomes, within: offsets.Range) -> Outcomes:
    beyond = [(0, within[0]), (within[1], _LAST_OFFSET)]
    return Outcomes(**{name: offsets.subtracted(ranges, beyond) for name, ranges in outcomes})


def _clip_advance(advance: Advance, within: offsets.Range) -> Advance:
    start, end = max(advance.start, within[0]), min(advance.end, within[1])
    return advance.model_copy(update={"start": start, "end": max(start, end)})
