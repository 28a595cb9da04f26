"""Reads of segments: the timeline, lists, progress, and what became of a record.

Those that take a datasource or a source trust the caller to have got it from a selector that filters by user.
"""

from controlplane.segments.selectors.alarms import new_alarms
from controlplane.segments.selectors.bad_since import BadSince, bad_since
from controlplane.segments.selectors.columns import datasource_schema, widest
from controlplane.segments.selectors.day import DayPoint, Freshness, days_of, freshness, together
from controlplane.segments.selectors.fate import Fate, FateSegment, FateSource, record_fate
from controlplane.segments.selectors.gaps import Gap, Gaps, gaps
from controlplane.segments.selectors.lag_series import LagPoint, LagSeries, lag_samples, lag_series
from controlplane.segments.selectors.lag_trend import LagTrend, lag_trends, last_within
from controlplane.segments.selectors.layers import LAYERS, Layer, layers
from controlplane.segments.selectors.lineage import made_by_task, merged_by_task
from controlplane.segments.selectors.lists import (
    count_segments,
    get_event,
    get_quarantined,
    list_events,
    list_faulty,
    list_quarantined,
    list_quarantined_by,
    list_segments,
)
from controlplane.segments.selectors.planning import intervals_within, live_segments
from controlplane.segments.selectors.progress import PartitionProgress, progress
from controlplane.segments.selectors.published import Rates, first_published, rates, rows_per_s
from controlplane.segments.selectors.task_errors import ErrorGroup, error_groups
from controlplane.segments.selectors.timeline import Bar, BarState, Ongoing, Timeline, timeline
from controlplane.segments.selectors.totals import (
    Totals,
    datasource_totals,
    how_far_by_task,
    totals_by_task,
    totals_of,
    totals_of_one,
)

__all__ = [
    "LAYERS",
    "BadSince",
    "Bar",
    "BarState",
    "DayPoint",
    "ErrorGroup",
    "Fate",
    "FateSegment",
    "FateSource",
    "Freshness",
    "Gap",
    "Gaps",
    "LagPoint",
    "LagSeries",
    "LagTrend",
    "Layer",
    "Ongoing",
    "PartitionProgress",
    "Rates",
    "Timeline",
    "Totals",
    "bad_since",
    "count_segments",
    "datasource_schema",
    "datasource_totals",
    "days_of",
    "error_groups",
    "first_published",
    "freshness",
    "gaps",
    "get_event",
    "get_quarantined",
    "how_far_by_task",
    "intervals_within",
    "lag_samples",
    "lag_series",
    "lag_trends",
    "last_within",
    "layers",
    "list_events",
    "list_faulty",
    "list_quarantined",
    "list_quarantined_by",
    "list_segments",
    "live_segments",
    "made_by_task",
    "merged_by_task",
    "new_alarms",
    "progress",
    "rates",
    "record_fate",
    "rows_per_s",
    "timeline",
    "together",
    "totals_by_task",
    "totals_of",
    "totals_of_one",
    "widest",
]
