"""Segments as lists, in orders that a cursor can follow."""

from __future__ import annotations

import uuid
from datetime import datetime

from controlplane.common.errors import NotFound
from controlplane.datasources.masked_querysets import ConcealingQuerySet
from controlplane.datasources.models import Datasource
from controlplane.segments.models import KilledSegment, Segment
from controlplane.segments.selectors.planning import live_segments
from controlplane.segments.selectors.sums import window_sums


def list_segments(
    datasource: Datasource,
    *,
    interval_start: datetime | None = None,
    interval_end: datetime | None = None,
    as_of: datetime | None = None,
) -> ConcealingQuerySet[Segment]:
    """Used segments that touch ``[interval_start, interval_end)``, newest interval first; the id makes it stable.

    ``as_of``: those that were used at that time.
    """
    segments = live_segments(datasource, interval_start, interval_end, as_of).select_related("datasource")
    return segments.order_by("-interval_start", "-partition_num", "-id")


def count_segments(
    datasource: Datasource, *, interval_start: datetime | None = None, interval_end: datetime | None = None
) -> int:
    """How many ``list_segments`` gives, by the sums of intervals: at once, however many."""
    return window_sums(datasource, interval_start, interval_end).segments


def killed_segment(datasource: Datasource, identifier: str) -> KilledSegment:
    """What is left of one whose file was deleted, by Headgate's id. Raises ``NotFound``."""
    try:
        segment = KilledSegment.objects.select_related("datasource", "removal").get(
            pk=uuid.UUID(identifier), datasource=datasource
        )
    except (KilledSegment.DoesNotExist, ValueError):
        raise NotFound(f"There is no segment {identifier[:200]!r} of {datasource.name}.") from None
    return segment
