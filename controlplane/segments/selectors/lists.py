"""Segments, quarantined records and events as lists, in orders that a cursor can follow."""

from __future__ import annotations

from datetime import datetime

from django.db.models import BinaryField, F, Func, IntegerField, QuerySet

from controlplane.common.errors import NotFound
from controlplane.datasources.models import Datasource
from controlplane.segments.models import FaultyRecord, QuarantinedRecord, Segment, SourceEvent
from controlplane.segments.selectors.quarantine import BIGGEST_KEY, EVERYTHING, QuarantineFilter, filtered

PREVIEW_BYTES = 4096


def list_segments(
    datasource: Datasource, *, interval_start: datetime | None = None, interval_end: datetime | None = None
) -> QuerySet[Segment]:
    """Used segments that touch ``[interval_start, interval_end)``, newest interval first; the id makes it stable."""
    segments = Segment.objects.filter(datasource=datasource, used=True).select_related("datasource")
    if interval_start is not None:
        segments = segments.filter(interval_end__gt=interval_start)
    if interval_end is not None:
        segments = segments.filter(interval_start__lt=interval_end)
    return segments.order_by("-interval_start", "-partition_num", "-id")


def list_quarantined(datasource: Datasource, wanted: QuarantineFilter = EVERYTHING) -> QuerySet[QuarantinedRecord]:
    """Poison records of a datasource that match, newest first, with their source.

    Payloads may be large: rows carry ``payload_start`` (4 KiB at most) and ``payload_size``; reading ``.payload``
    fetches the whole.
    """
    return _shown(filtered(datasource, wanted))


def list_quarantined_by(task_id: str) -> QuerySet[QuarantinedRecord]:
    """What a task put into quarantine, newest first."""
    return _shown(QuarantinedRecord.objects.filter(task_id=task_id))


def _shown(records: QuerySet[QuarantinedRecord]) -> QuerySet[QuarantinedRecord]:
    start = Func(F("payload"), 1, PREVIEW_BYTES, function="substring", output_field=BinaryField())
    size = Func(F("payload"), function="octet_length", output_field=IntegerField())
    records = records.select_related("source").defer("payload", "headers")
    return records.annotate(payload_start=start, payload_size=size).order_by("-id")


def list_faulty(task_id: str) -> QuerySet[FaultyRecord]:
    """Records of a task that were stored with a faulty field, newest first, with their source.

    As far as they were kept; with ``payload_start`` as above.
    """
    start = Func(F("payload"), 1, PREVIEW_BYTES, function="substring", output_field=BinaryField())
    records = FaultyRecord.objects.filter(task_id=task_id).select_related("source")
    return records.defer("payload").annotate(payload_start=start).order_by("-id")


def get_quarantined(datasource: Datasource, number: int) -> QuarantinedRecord:
    """One poison record, whole. Raises ``NotFound``."""
    record = list_quarantined(datasource).filter(pk=min(number, BIGGEST_KEY)).first()
    if record is None:
        raise NotFound(f"There is no quarantined record {number}.")
    return record


def list_events(datasource: Datasource, *, kind: str = "", alarm: bool | None = None) -> QuerySet[SourceEvent]:
    """What an operator must know about its sources, newest first; of one kind, with an alarm or without."""
    events = SourceEvent.objects.filter(datasource=datasource).select_related("source").order_by("-id")
    if kind:
        events = events.filter(kind=kind)
    return events if alarm is None else events.filter(alarm=alarm)
