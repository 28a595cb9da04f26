"""What holds a group of Kafka's: supervisors that name it, tasks by hand while they run, and progress that is kept."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import F, Q, QuerySet

from controlplane.datasources.groups import held_by
from controlplane.segments.models import Source
from controlplane.supervisors.models import SpecVersion
from controlplane.tasks.models import Task

_NAMED = "spec__spec__ioConfig__groupId"
_UNNAMED = Q(**{"spec__spec__ioConfig__assignment": "consumer_group", f"{_NAMED}__isnull": True})


@held_by
def holders(group: str, since: datetime | None) -> list[QuerySet[Any, Any]]:
    """The keys of the datasources that a group is held for. A consumer group without a name is called as its owner."""
    supervised = SpecVersion.objects.filter(version=F("supervisor__version"), supervisor__terminated_at=None)
    by_hand = Task.objects.active().filter(supervisor_id="")
    kept = Source.objects.filter(kind=Source.Kind.SHARE_GROUP, group=group, current=True)
    if since is not None:
        supervised = supervised.filter(supervisor__created_at__lt=since)
        by_hand = by_hand.filter(created_at__lt=since)
        kept = kept.filter(created_at__lt=since)
    named = Q(**{_NAMED: group})
    return [
        supervised.filter(named | _UNNAMED & Q(supervisor=group)).values("supervisor__datasource"),
        by_hand.filter(named | _UNNAMED & Q(datasource__name=group)).values("datasource"),
        kept.values("datasource"),
    ]
