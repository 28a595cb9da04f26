"""What became of a batch of payloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ingestion.decode.payloads import empty_reason
from ingestion.rows import ROW, join_rows, row_indexes
from ingestion.specs.inputs.io_config import Tombstones


@dataclass(frozen=True)
class Decoded:
    """Every index 0..len(payloads)-1 is in exactly one of the six."""

    # Column 0 is ``__row`` (int32, index into the payloads, ascending), column 1 ``__time`` (timestamp[ms, UTC]), then
    # dimensions and metrics: string, list of strings, int64, double, bool, or ``arrow.json`` for JSON text; last, if
    # rollup needs it, ``__record_time``. Take the index with ``row_indexes(rows)``: records may hold a field named
    # ``__row`` too, which is then a column of its own further right (the segment has it, as ``__row``).
    rows: pa.Table
    # What is wrong, and where, in one line without the payload.
    unparseable: dict[int, str] = field(default_factory=dict)
    filtered: list[int] = field(default_factory=list)  # dropped by transformSpec.filter
    outside_window: list[int] = field(default_factory=list)  # too late or too early
    tombstones: list[int] = field(default_factory=list)  # without a payload
    # Killed the decoder's process, or hung in it; only from ``IsolatedDecoder``.
    crashed: dict[int, str] = field(default_factory=dict)
    # Of the rows' records, those with a field that could not be stored as its type says, and what is wrong with it.
    processed_with_error: dict[int, str] = field(default_factory=dict)

    def with_tombstones(self, handling: Tombstones) -> Decoded:
        """Moves tombstones where the ioConfig wants them: those that go into quarantine are unparseable."""
        if handling != "quarantine" or not self.tombstones:
            return self
        unparseable = self.unparseable | dict.fromkeys(self.tombstones, empty_reason(None))
        return replace(self, unparseable=dict(sorted(unparseable.items())), tombstones=[])

    def moved(self, by: Sequence[int]) -> Decoded:
        """Replaces index ``i`` by ``by[i]`` (ascending) everywhere."""
        places = np.asarray(by, dtype=np.int32)
        index = pa.array(places[row_indexes(self.rows)], pa.int32())
        return Decoded(
            rows=self.rows.set_column(0, ROW, index),
            unparseable={by[i]: text for i, text in self.unparseable.items()},
            filtered=[by[i] for i in self.filtered],
            outside_window=[by[i] for i in self.outside_window],
            tombstones=[by[i] for i in self.tombstones],
            crashed={by[i]: text for i, text in self.crashed.items()},
            processed_with_error={by[i]: text for i, text in self.processed_with_error.items()},
        )


def join_decoded(parts: Sequence[Decoded]) -> Decoded:
    """One result of several that share no index; columns get the type that holds what all parts hold."""
    rows = join_rows([p.rows for p in parts])
    order = np.argsort(row_indexes(rows), kind="stable")
    return Decoded(
        rows=rows.take(pa.array(order)),
        unparseable={i: text for p in parts for i, text in p.unparseable.items()},
        filtered=sorted(i for p in parts for i in p.filtered),
        outside_window=sorted(i for p in parts for i in p.outside_window),
        tombstones=sorted(i for p in parts for i in p.tombstones),
        crashed={i: text for p in parts for i, text in p.crashed.items()},
        processed_with_error={i: text for p in parts for i, text in p.processed_with_error.items()},
    )
