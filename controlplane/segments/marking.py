"""Marks segments unused, used again, and given up: interval by interval, under the locks that publishes take.

Receipts and settled ranges stay what they are: a record whose segment is not in use has ended all the same, and is not
read again. What is marked goes on in the next publishes' place: an interval keeps its version and its numbers.

Locks are taken in the order of a publish: the intervals' rows, by time; then the segments' rows. Some hundred intervals
are one transaction, and some thousand segments of them, so that publishes never wait for a datasource of a million
segments; asked again, what a dead process has left undone is done.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet

from controlplane.common.database import Cursor, clock, cursor
from controlplane.datasources.models import Datasource
from controlplane.segments.models import Removal, Segment

INTERVALS_PER_TRANSACTION = 200  # intervals of one transaction
MAX_SEGMENTS = 5_000  # of one transaction
Bounds = tuple[datetime, datetime]


@dataclass(frozen=True)
class SegmentSelection:
    """Which segments of a datasource: those for which all that is given holds; without anything, all of them."""

    # Those whose interval lies within [start, end).
    start: datetime | None = None
    end: datetime | None = None
    ids: frozenset[uuid.UUID] | None = None
    versions: frozenset[str] | None = None
    excluded_ids: frozenset[uuid.UUID] = frozenset()
    # Of these intervals, whatever else is given.
    intervals: tuple[tuple[datetime, datetime], ...] | None = None

    def segments(self, datasource: Datasource) -> QuerySet[Segment]:
        """They, in use or not."""
        segments = Segment.objects.filter(datasource=datasource)
        if self.intervals is not None:
            segments = segments.filter(interval_start__in=[start for start, _ in self.intervals])
        if self.start is not None:
            segments = segments.filter(interval_start__gte=self.start)
        if self.end is not None:
            segments = segments.filter(interval_end__lte=self.end)
        if self.ids is not None:
            segments = segments.filter(pk__in=self.ids)
        return segments if self.versions is None else segments.filter(version__in=self.versions)


@dataclass(frozen=True)
class Amount:
    """Segments, and what they hold."""

    segments: int = 0
    rows: int = 0
    size_bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.segments + other.segments, self.rows + other.rows, self.size_bytes + other.size_bytes)


_LOCK = """
    SELECT i.start, i."end" FROM segments_interval i
    JOIN unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS w(start, stop)
      ON i.start = w.start AND i."end" = w.stop
    WHERE i.datasource_id = %(datasource)s ORDER BY 1, 2 FOR UPDATE OF i
"""
# Of these intervals, whose rows are locked by then, some segments.
_UPDATE_SOME = """
    WITH picked AS (
        SELECT s.id FROM segments_segment s JOIN segments_interval i
          ON i.datasource_id = s.datasource_id AND i.start = s.interval_start AND i."end" = s.interval_end
        WHERE s.datasource_id = %(datasource)s AND (s.interval_start, s.interval_end) IN (
            SELECT * FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]))
        AND (%(ids)s::uuid[] IS NULL OR s.id = ANY (%(ids)s::uuid[]))
        AND (%(versions)s::text[] IS NULL OR s.version = ANY (%(versions)s::text[]))
        AND NOT s.id = ANY (%(without)s::uuid[])
        AND {which} LIMIT %(most)s FOR UPDATE OF s
    )
    UPDATE segments_segment s SET {set} FROM picked WHERE s.id = picked.id
    RETURNING s.interval_start, s.interval_end, s.rows, s.size_bytes
"""
_OUT_OF_USE = "used = false, unused_at = %(now)s, removal_id = %(removal)s"
_UNUSED = _UPDATE_SOME.format(which="s.used", set=_OUT_OF_USE)
# Its rows are in no other segment, its file is there, and its version is the one that the interval shows.
_USED = _UPDATE_SOME.format(
    which="NOT s.used AND s.removal_id IS NOT NULL AND s.kill_began_at IS NULL AND s.version = i.version"
    " AND NOT EXISTS (SELECT FROM segments_removal r WHERE r.id = s.removal_id AND r.rewound)",
    set="used = true, used_again_at = %(now)s, removal_id = NULL",
)
_GIVEN_UP = _UPDATE_SOME.format(which="NOT s.used AND s.kill_began_at IS NULL", set="kill_began_at = %(now)s")
# Who comes late may come to a datasource that was made anew, and has segments of its own by then.
_IS_CLEARED = "EXISTS (SELECT FROM datasources_datasource d WHERE d.id = s.datasource_id AND d.clearing)"
_LOST = _UPDATE_SOME.format(which=f"s.used AND {_IS_CLEARED}", set=f"kill_began_at = %(now)s, {_OUT_OF_USE}")
_LOST_TOO = _UPDATE_SOME.format(
    which=f"NOT s.used AND s.kill_began_at IS NULL AND {_IS_CLEARED}", set="kill_began_at = %(now)s"
)
_SUM_UP = """
    UPDATE segments_interval i
    SET segments = t.n, rows = t.rows, size_bytes = t.size, min_time = t.low, max_time = t.high,
        revision = i.revision + 1
    FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS w(start, stop), LATERAL (
        SELECT count(*) AS n, coalesce(sum(s.rows), 0) AS rows, coalesce(sum(s.size_bytes), 0) AS size,
               min(s.min_time) AS low, max(s.max_time) AS high
        FROM segments_segment s WHERE s.datasource_id = %(datasource)s AND s.interval_start = w.start
          AND s.interval_end = w.stop AND s.used
    ) t
    WHERE i.datasource_id = %(datasource)s AND i.start = w.start AND i."end" = w.stop
"""


ShouldContinue = Callable[[], bool]


def _always() -> bool:
    return True


def mark_unused(
    datasource: Datasource, chosen: SegmentSelection, *, by: str, what: str, go_on: ShouldContinue = _always
) -> Amount:
    """Take those out of use; how many were. ``by`` and ``what`` say who and why, to whoever looks for a row of them.

    ``go_on``: asked before each transaction; what is left stays when it says no.
    """
    return _mark_all(datasource, chosen, Q(used=True), _removal_mark(_UNUSED, datasource, by, what), go_on)


def mark_used(datasource: Datasource, chosen: SegmentSelection) -> Amount:
    """Put those into use again that were marked unused and can be; how many were.

    Passed over are segments that others have replaced, that a rewind has taken out of use, that are being deleted, and
    those of another version than the interval's: they would show rows twice, or not at all. The caller has made sure
    that the files are there.
    """
    return _mark_all(datasource, chosen, Q(used=False), _statement_mark(_USED))


def give_up(datasource: Datasource, chosen: SegmentSelection, *, go_on: ShouldContinue = _always) -> Amount:
    """Have the files of unused segments deleted as soon as no reader's lease holds them. They are lost from now on.

    ``go_on``: see ``mark_unused``.
    """
    return _mark_all(datasource, chosen, Q(used=False, kill_began_at=None), _statement_mark(_GIVEN_UP), go_on)


def give_up_all(datasource: Datasource, *, by: str, what: str, seconds: float) -> bool:
    """Give up all segments of one that is being cleared, in use or not, for about so long; whether none is left that
    is not given up.
    """
    until = time.monotonic() + seconds

    def go_on() -> bool:
        return time.monotonic() <= until

    _mark_all(datasource, SegmentSelection(), Q(used=True), _removal_mark(_LOST, datasource, by, what), go_on)
    _mark_all(datasource, SegmentSelection(), Q(used=False, kill_began_at=None), _statement_mark(_LOST_TOO), go_on)
    return not Segment.objects.filter(datasource=datasource, kill_began_at=None).exists()


Mark = Callable[[Cursor, dict[str, Any]], list[Any]]


def _statement_mark(statement: str) -> Mark:
    return lambda c, values: c.execute(statement, values).fetchall()


def _removal_mark(statement: str, datasource: Datasource, by: str, what: str) -> Mark:
    """Its first transaction notes who and why, and each what it has marked."""
    removal: list[Removal] = []

    def mark(c: Cursor, values: dict[str, Any]) -> list[Any]:
        removal_row = removal[0] if removal else Removal(datasource=datasource, by=by[:200], what=what[:500])
        if not removal:
            removal_row.created_at = values["now"]
            removal_row.save()
            removal.append(removal_row)
        marked = c.execute(statement, {**values, "removal": removal_row.pk}).fetchall()
        amount = _amount(marked)
        Removal.objects.filter(pk=removal_row.pk).update(
            segments=F("segments") + amount.segments,
            rows=F("rows") + amount.rows,
            size_bytes=F("size_bytes") + amount.size_bytes,
        )
        return marked

    return mark


def _amount(marked: Sequence[Any]) -> Amount:
    return Amount(len(marked), sum(rows for *_, rows, _ in marked), sum(size for *_, size in marked))


def _mark_all(
    datasource: Datasource, chosen: SegmentSelection, which: Q, mark: Mark, go_on: ShouldContinue = _always
) -> Amount:
    done = Amount()
    for places in _interval_batches(datasource, chosen, which):
        is_finished = False
        while not is_finished:
            if not go_on():
                return done
            amount = _mark_some(datasource, chosen, places, mark)
            done, is_finished = done + amount, amount.segments < MAX_SEGMENTS
    return done


def _interval_batches(datasource: Datasource, chosen: SegmentSelection, which: Q) -> Iterator[list[Bounds]]:
    """The intervals in which something may change, in the order of time, some hundred at once."""
    intervals = chosen.segments(datasource).filter(which).values_list("interval_start", "interval_end").distinct()
    chosen_intervals = None if chosen.intervals is None else set(chosen.intervals)
    places_of = intervals.order_by("interval_start", "interval_end")
    remaining = iter([place for place in places_of if chosen_intervals is None or place in chosen_intervals])
    while places := list(islice(remaining, INTERVALS_PER_TRANSACTION)):
        yield places


def lock_intervals(datasource: Datasource, places: Sequence[Bounds]) -> None:
    """Lock the rows of those of these intervals that are there, by time, in the caller's transaction."""
    starts, ends = [start for start, _ in places], [end for _, end in places]
    with cursor() as c:
        c.execute(_LOCK, {"datasource": datasource.pk, "starts": starts, "ends": ends}).fetchall()


@transaction.atomic
def _mark_some(datasource: Datasource, chosen: SegmentSelection, places: Sequence[Bounds], mark: Mark) -> Amount:
    values = {
        "datasource": datasource.pk,
        "starts": [start for start, _ in places],
        "ends": [end for _, end in places],
        "ids": None if chosen.ids is None else list(chosen.ids),
        "versions": None if chosen.versions is None else list(chosen.versions),
        "without": list(chosen.excluded_ids),
        "most": MAX_SEGMENTS,
    }
    with cursor() as c:
        c.execute(_LOCK, values).fetchall()
        marked = mark(c, {**values, "now": clock()})
        changed = sorted({(start, end) for start, end, *_ in marked})
        if not changed:
            return Amount()
        starts, ends = zip(*changed, strict=True)
        c.execute(_SUM_UP, {"datasource": datasource.pk, "starts": list(starts), "ends": list(ends)})
    return _amount(marked)
