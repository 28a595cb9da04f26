"""Quarantined and faulty records as lists, in orders that a cursor can follow."""

from __future__ import annotations

from django.db.models import BinaryField, F, Func, IntegerField, QuerySet

from controlplane.common.errors import NotFound
from controlplane.datasources.masked_querysets import ConcealingQuerySet
from controlplane.datasources.models import Datasource
from controlplane.quarantine.models import FaultyRecord, QuarantinedRecord
from controlplane.quarantine.selectors.filters import EVERYTHING, MAX_KEY, QuarantineFilter, filter_records
from controlplane.teams.models import User

PREVIEW_BYTES = 4096


def list_quarantined(
    user: User, datasource: Datasource, record_filter: QuarantineFilter = EVERYTHING
) -> QuerySet[QuarantinedRecord]:
    """Poison records of a datasource that match, newest first, with their source.

    Payloads may be large: rows carry ``payload_start`` (4 KiB at most) and ``payload_size``; reading ``.payload``
    fetches the whole. Nothing of them that the user may not see: see ``datasources.masking``.
    """
    return _with_preview(user, filter_records(datasource, record_filter))


def list_quarantined_by(user: User, task_id: str) -> QuerySet[QuarantinedRecord]:
    """What a task put into quarantine, newest first."""
    return _with_preview(user, QuarantinedRecord.objects.filter(task_id=task_id))


def _with_preview(user: User, records: ConcealingQuerySet[QuarantinedRecord]) -> QuerySet[QuarantinedRecord]:
    start = Func(F("payload"), 1, PREVIEW_BYTES, function="substring", output_field=BinaryField())
    size = Func(F("payload"), function="octet_length", output_field=IntegerField())
    shown = records.shown_to(user).select_related("source").defer("payload", "headers", "file_header")
    return shown.annotate(payload_start=start, payload_size=size).order_by("-id")


def list_faulty(user: User, task_id: str) -> QuerySet[FaultyRecord]:
    """Records of a task that were stored with a faulty field, newest first, with their source.

    As far as they were kept; with ``payload_start`` as above.
    """
    start = Func(F("payload"), 1, PREVIEW_BYTES, function="substring", output_field=BinaryField())
    records = FaultyRecord.objects.filter(task_id=task_id).shown_to(user).select_related("source")
    return records.defer("payload").annotate(payload_start=start).order_by("-id")


def get_quarantined(user: User, datasource: Datasource, number: int) -> QuarantinedRecord:
    """One poison record, whole. Raises ``NotFound``."""
    record = list_quarantined(user, datasource).filter(pk=min(number, MAX_KEY)).first()
    if record is None:
        raise NotFound(f"There is no quarantined record {number}.")
    return record
