"""What of given offsets is not settled, from the first such offset to where something settled follows.

A claim asks for it: an indexer reads one piece of a partition at a time, and so never what others have settled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controlplane.common.database import cursor
from controlplane.publishing.models import OFFSET_BITS

# Both look-ups walk an index. Ranges that touch are passed one by one, until they are folded.
_AROUND = f"""
    SELECT w.place, c.high, n.low FROM (
        SELECT place, key << {OFFSET_BITS} AS base, start
        FROM unnest(%s::int4[], %s::int8[], %s::int8[]) AS w(place, key, start)
    ) w LEFT JOIN LATERAL (
        SELECT upper(span) - w.base AS high FROM publishing_settledrange WHERE span @> w.base + w.start
    ) c ON true LEFT JOIN LATERAL (
        SELECT lower(span) - w.base AS low FROM publishing_settledrange
        WHERE lower(span) > w.base + w.start AND lower(span) < w.base + (1::int8 << {OFFSET_BITS})
        ORDER BY lower(span) LIMIT 1
    ) n ON true
"""


@dataclass(frozen=True)
class Piece:
    """Offsets of one progress key."""

    key: int
    start: int
    end: int


def first_unsettled(wanted: Sequence[Piece]) -> list[Piece | None]:
    """Of each of these, its first unsettled offsets; None when all of it is settled."""
    found: list[Piece | None] = [None] * len(wanted)
    starts = {place: piece.start for place, piece in enumerate(wanted) if piece.start < piece.end}
    while starts:
        columns = (list(starts), [wanted[place].key for place in starts], list(starts.values()))
        with cursor() as c:
            rows = c.execute(_AROUND, columns).fetchall()
        next_starts = {}
        for place, covered_until, next_settled in rows:
            piece = wanted[place]
            if covered_until is None:
                end = piece.end if next_settled is None else min(piece.end, next_settled)
                found[place] = Piece(piece.key, starts[place], end)
            elif covered_until < piece.end:
                next_starts[place] = covered_until
        starts = next_starts
    return found
