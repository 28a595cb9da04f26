"""A datasource's quarantine taken out as a file, or purged: by hand, and by the site's rules for age and size.

What a replay holds is never purged. The audit trail says who did what.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.datasources.masking import require_record_access
from controlplane.datasources.models import Datasource
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.quarantine.selectors.filters import (
    Choice,
    QuarantineFilter,
    chosen_records,
    count_matching,
    export_chunks,
    filter_records,
)
from controlplane.sources.models import SourceEvent
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require

State = QuarantinedRecord.State
_ABOVE_CAP = """
    SELECT id FROM (
        SELECT id, sum(coalesce(octet_length(payload), 0)) OVER (ORDER BY id DESC) AS upto
        FROM quarantine_quarantinedrecord WHERE datasource_id = %s
    ) sized WHERE upto > %s ORDER BY id DESC LIMIT 1
"""


def export(*, user: User, datasource: Datasource, wanted: QuarantineFilter) -> Iterator[bytes]:
    """All that match and are there now, payloads and all, as newline-delimited JSON in chunks.

    Raises ``NotAllowed``.
    """
    require(user, Action.VIEW, datasource.team)
    require_record_access(user, datasource, "the export")
    records = filter_records(datasource, wanted)
    counts = count_matching(records)
    record_action(
        user,
        datasource,
        "export",
        records=counts.records,
        **wanted.described(),
    )
    return export_chunks(records.filter(pk__lte=counts.max_id))


def purge(*, user: User, datasource: Datasource, choice: Choice) -> int:
    """Delete records, payloads and all, for good; returns how many. Raises ``NotAllowed``, ``InvalidInput``.

    What became of them stays known, and that they were in quarantine; an entry of the audit trail says who did it.
    """
    require(user, Action.ADMINISTER, datasource.team)
    with transaction.atomic():
        records = _delete(chosen_records(datasource, choice))
        if records:
            record_action(
                user,
                datasource,
                "purge",
                records=records,
                **choice.described(),
            )
    return records


def purge_by_rules(*, retention: timedelta, most_bytes: int, now: datetime | None = None) -> int:
    """Delete what is older than ``retention``, and of each datasource the oldest beyond ``most_bytes``; how many."""
    before = (now or timezone.now()) - retention
    datasource_ids = QuarantinedRecord.objects.order_by().values("datasource").distinct()
    return sum(
        _purge_datasource(d, before, most_bytes)
        for d in Datasource.objects.filter(pk__in=datasource_ids).select_related("team")
    )


@transaction.atomic
def _purge_datasource(datasource: Datasource, before: datetime, most_bytes: int) -> int:
    records = QuarantinedRecord.objects.filter(datasource=datasource)
    old = _purge_and_report(
        datasource, records.filter(created_at__lt=before), "they were older than HEADGATE_QUARANTINE_RETENTION"
    )
    if count_matching(records).size_bytes <= most_bytes:
        return old
    with connection.cursor() as cursor:
        cursor.execute(_ABOVE_CAP, [datasource.pk, most_bytes])
        row = cursor.fetchone()
    reason = "there was more than HEADGATE_QUARANTINE_MEBIBYTES allows"
    return old + (_purge_and_report(datasource, records.filter(pk__lte=row[0]), reason) if row else 0)


def _purge_and_report(datasource: Datasource, expired: QuerySet[QuarantinedRecord], reason: str) -> int:
    """Delete, and say so where it is seen: with an alarm if some had never left the quarantine."""
    unread = expired.filter(state=State.KEPT).count()
    records = _delete(expired)
    if records:
        SourceEvent.objects.create(
            datasource=datasource,
            kind=SourceEvent.Kind.PURGED,
            alarm=unread > 0,
            detail=f"{records} quarantined records were purged, {unread} of them never replayed: {reason}.",
        )
        record_action(
            None,
            datasource,
            "retention",
            records=records,
            reason=reason,
        )
    return records


def _delete(records: QuerySet[QuarantinedRecord]) -> int:
    return records.exclude(state=State.REPLAYING).delete()[0]


def record_action(user: User | None, datasource: Datasource, action: str, **detail: Any) -> None:
    """Add an entry; see ``audit.record``."""
    audit.record(
        user=user, team=datasource.team, target="quarantine", target_id=datasource.name, action=action, **detail
    )
