"""Which segments somebody means: Druid's ``interval`` with ``versions``, or ``segmentIds``."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from django.db.models import Q

from controlplane.common.errors import FieldError, InvalidInput
from controlplane.common.text import storable
from controlplane.datasources.models import Datasource
from controlplane.segments.marking import SegmentSelection
from controlplane.segments.models import Segment
from ingestion.specs.schema.intervals import interval_ms

MAX_IDS = 10_000
_BATCH_SIZE = 500
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_IDENTIFIER = re.compile(r"([0-9T:.Z-]{1,40})_([0-9T:.Z-]{1,40})_([^_]{1,30})(?:_(\d{1,9}))?", re.ASCII)


def interval_bounds(interval: str, field: str = "interval") -> tuple[datetime, datetime]:
    """The interval's start and end. Raises ``InvalidInput``."""
    try:
        start, end = (_EPOCH + timedelta(milliseconds=ms) for ms in interval_ms(interval))
    except (ValueError, OverflowError):
        raise _fault(field, "must be like 2025-06-01/2025-07-01 or 2025-06-01/P1M") from None
    if start == end:
        raise _fault(field, "is empty: its end must be after its start")
    return start, end


def select_segments(
    datasource: Datasource,
    *,
    interval: str | None = None,
    segment_ids: Sequence[str] | None = None,
    versions: Sequence[str] | None = None,
    everything: bool = False,
) -> SegmentSelection:
    """Those whose interval lies within the one given, of these versions if there are some; those named; or all.

    A segment is named by Druid's identifier or by Headgate's id; one that there is not is passed over. Raises
    ``InvalidInput``.
    """
    if sum((interval is not None, segment_ids is not None, everything)) != 1:
        raise InvalidInput("Give an interval or segment ids, not both.")
    if versions is not None and interval is None:
        raise InvalidInput("Give versions only with an interval.")
    if everything:
        return SegmentSelection()
    if segment_ids is not None:
        return SegmentSelection(ids=frozenset(existing_ids(datasource, segment_ids)))
    start, end = interval_bounds(interval or "")
    return SegmentSelection(start=start, end=end, versions=None if versions is None else frozenset(_storable(versions)))


def _storable(texts: Sequence[str]) -> list[str]:
    return [text for text in texts if storable(text)]


def existing_ids(datasource: Datasource, identifiers: Sequence[str]) -> list[uuid.UUID]:
    """The ids of those that there are. Raises ``InvalidInput`` for too many, and for what is no id."""
    if len(identifiers) > MAX_IDS:
        raise _fault("segmentIds", f"must be {MAX_IDS:,} at most")
    ids = [uuid.UUID(text) for text in identifiers if _is_uuid(text)]
    conditions = [_identifier_filter(datasource, text, n) for n, text in enumerate(identifiers) if not _is_uuid(text)]
    mine = Segment.objects.filter(datasource=datasource)
    existing = list(mine.filter(pk__in=ids).values_list("pk", flat=True))
    for first in range(0, len(conditions), _BATCH_SIZE):
        condition = Q()
        for single in conditions[first : first + _BATCH_SIZE]:
            condition |= single
        existing += mine.filter(condition).values_list("pk", flat=True)
    return existing


def _is_uuid(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text) is not None


def _identifier_filter(datasource: Datasource, text: str, at: int) -> Q:
    """Where a segment of that identifier is. Raises ``InvalidInput``."""
    match = _IDENTIFIER.fullmatch(text.removeprefix(f"{datasource.name}_"))
    times = [_time(match[1]), _time(match[2])] if match and text.startswith(f"{datasource.name}_") else []
    if match is None or None in times or not times or not storable(text):
        raise _fault(f"segmentIds[{at}]", f"{text[:200]!r} is not the id of a segment of {datasource.name}")
    return Q(
        interval_start=times[0],
        interval_end=times[1],
        version=match[3],
        partition_num=min(int(match[4] or 0), 2**31 - 1),
    )


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _fault(path: str, message: str) -> InvalidInput:
    pointer = "/" + path.replace("[", "/").replace("]", "")
    return InvalidInput("The choice of segments has errors.", [FieldError(pointer, message, path)])
