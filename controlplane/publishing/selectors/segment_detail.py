"""One segment with all that is known of it: what it was made of, what took its place, which records are in it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.publishing.models import Receipt
from controlplane.segments.models import KilledSegment, Replacement, Segment

RELATIVES_SHOWN = 50
RANGES_SHOWN = 500


@dataclass(frozen=True)
class Relative:
    """A segment that this one was made of, or that was made of it."""

    id: uuid.UUID
    # The row while it is there; None once it is deleted.
    segment: Segment | None


@dataclass(frozen=True)
class Lineage:
    """A replacement, and its segments on the other side from the one that was asked about."""

    replacement: Replacement
    relatives: list[Relative]  # RELATIVES_SHOWN at most
    others: int  # more than these


@dataclass(frozen=True)
class RecordRange:
    """Offsets ``[start, end)`` whose rows were written into the segment by one publish."""

    topic: str
    partition: int
    start: int
    end: int
    publish_id: uuid.UUID

    @property
    def last(self) -> int:
        """The last offset."""
        return self.end - 1


@dataclass(frozen=True)
class SegmentDetail:
    """Where a segment's rows came from, and where they are."""

    made_by: Lineage | None  # of which others it was made; None: a task wrote it from records
    gone_to: Lineage | None  # what holds its rows since
    ranges: list[RecordRange]  # RANGES_SHOWN at most; empty for one that was made of others, or of folded receipts
    more_ranges: bool


def segment_detail(segment: Segment | KilledSegment) -> SegmentDetail:
    """The caller has made sure that the user may see its datasource."""
    # One transaction writes a replacement and what it made, with one time.
    made_by = Replacement.objects.filter(
        datasource=segment.datasource_id, created_at=segment.created_at, made__contains=[segment.pk]
    ).first()
    gone_to = None if segment.replaced_by is None else Replacement.objects.filter(pk=segment.replaced_by).first()
    ranges = [] if made_by is not None else _ranges(segment)
    return SegmentDetail(
        made_by=None if made_by is None else _lineage(made_by, made_by.taken),
        gone_to=None if gone_to is None else _lineage(gone_to, gone_to.made),
        ranges=ranges[:RANGES_SHOWN],
        more_ranges=len(ranges) > RANGES_SHOWN,
    )


def _lineage(replacement: Replacement, ids: Sequence[uuid.UUID]) -> Lineage:
    shown = ids[:RELATIVES_SHOWN]
    existing = Segment.objects.filter(pk__in=shown).select_related("datasource").in_bulk()
    return Lineage(replacement, [Relative(pk, existing.get(pk)) for pk in shown], len(ids) - len(shown))


def _ranges(segment: Segment | KilledSegment) -> list[RecordRange]:
    """One transaction writes a segment and its receipts, with one time: that finds them among millions."""
    receipts = Receipt.objects.filter(created_at=segment.created_at, segment_ids__contains=[str(segment.pk)])
    ordered = receipts.select_related("key__source").order_by("key__source__topic", "key__partition", "id")
    return [
        record_range for receipt in ordered[: RANGES_SHOWN + 1] for record_range in _receipt_ranges(receipt, segment.pk)
    ]


def _receipt_ranges(receipt: Receipt, segment: uuid.UUID) -> Iterable[RecordRange]:
    position = receipt.segment_ids.index(str(segment))
    stored: list[list[Any]] = [*receipt.outcomes.get("stored", []), *receipt.outcomes.get("further", [])]
    for start, end, index in sorted(stored):
        if index == position:
            yield RecordRange(receipt.key.source.topic, receipt.key.partition, start, end, receipt.publish_id)
