"""Alarms of late, of many datasources at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from controlplane.segments.models import SourceEvent
from controlplane.teams.models import User

MOST_ALARMS = 200


def new_alarms(user: User, datasources: Sequence[int], since: datetime) -> list[SourceEvent]:
    """That nobody has acknowledged: the newest first, each with its datasource; no more than a person would read."""
    alarms = SourceEvent.objects.filter(datasource__in=datasources, alarm=True, acknowledged_at=None)
    alarms = alarms.filter(created_at__gte=since).shown_to(user)
    return list(alarms.select_related("datasource").order_by("-id")[:MOST_ALARMS])
