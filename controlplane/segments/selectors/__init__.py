"""Reads of segments: the timeline, lists, progress, and what became of a record.

Those that take a datasource or a source trust the caller to have got it from a selector that filters by user.
"""

from controlplane.segments.selectors.columns import datasource_schema, widest
from controlplane.segments.selectors.fate import Fate, FateSegment, FateSource, record_fate
from controlplane.segments.selectors.lag_series import LagPoint, LagSeries, lag_samples, lag_series
from controlplane.segments.selectors.lists import (
    get_quarantined,
    list_events,
    list_faulty,
    list_quarantined,
    list_quarantined_by,
    list_segments,
)
from controlplane.segments.selectors.progress import PartitionProgress, progress
from controlplane.segments.selectors.published import Rates, first_published, rates
from controlplane.segments.selectors.timeline import Bar, Timeline, timeline
from controlplane.segments.selectors.totals import Totals, datasource_totals, totals_of, totals_of_one

__all__ = [
    "Bar",
    "Fate",
    "FateSegment",
    "FateSource",
    "LagPoint",
    "LagSeries",
    "PartitionProgress",
    "Rates",
    "Timeline",
    "Totals",
    "datasource_schema",
    "datasource_totals",
    "first_published",
    "get_quarantined",
    "lag_samples",
    "lag_series",
    "list_events",
    "list_faulty",
    "list_quarantined",
    "list_quarantined_by",
    "list_segments",
    "progress",
    "rates",
    "record_fate",
    "timeline",
    "totals_of",
    "totals_of_one",
    "widest",
]
