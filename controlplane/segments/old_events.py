"""Events that say how ingestion went, and that nobody needs any more."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from controlplane.segments.event_models import PASSING
from controlplane.segments.models import SourceEvent

_AT_ONCE = 10_000


def drop_old(retention: timedelta) -> int:
    """Delete those that are older; how many. Alarms that nobody has acknowledged stay."""
    old = SourceEvent.objects.filter(kind__in=PASSING, created_at__lt=timezone.now() - retention)
    gone = 0
    while chosen := list(
        old.exclude(alarm=True, acknowledged_at=None).order_by().values_list("pk", flat=True)[:_AT_ONCE]
    ):
        gone += SourceEvent.objects.filter(pk__in=chosen).delete()[0]
    return gone
