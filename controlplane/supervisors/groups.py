"""What holds a group of Kafka's: supervisors that name it, manual tasks while they run, and progress that is kept."""

from __future__ import annotations

from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import F, Q, QuerySet

from controlplane.datasources.groups import held_by
from controlplane.sources.models import Source
from controlplane.supervisors.models import SpecVersion
from controlplane.tasks.models import Task
from ingestion.specs.inputs.sources import all_traits

_READS = "spec__spec__ioConfig__"
_NAMED = f"{_READS}groupId"


@held_by
def holders(group: str, since: datetime | None) -> list[QuerySet[Any, Any]]:
    """The keys of the datasources that a group is held for. A consumer group without a name is called as its owner."""
    supervised = SpecVersion.objects.filter(version=F("supervisor__version"), supervisor__terminated_at=None)
    by_hand = Task.objects.active().filter(supervisor_id="")
    kept = Source.objects.filter(kind__in=_of_share_groups(), group=group, current=True)
    if since is not None:
        supervised = supervised.filter(supervisor__created_at__lt=since)
        by_hand = by_hand.filter(created_at__lt=since)
        kept = kept.filter(created_at__lt=since)
    named, unnamed = Q(**{_NAMED: group}), _unnamed()
    return [
        supervised.filter(named | unnamed & Q(supervisor=group)).values("supervisor__datasource"),
        by_hand.filter(named | unnamed & Q(datasource__name=group)).values("datasource"),
        kept.values("datasource"),
    ]


def _of_share_groups() -> set[str]:
    return {traits.progress.kind for traits in all_traits() if traits.in_share_group}


def _unnamed() -> Q:
    """The spec has a group and does not name it."""
    forms = [{**traits.unnamed_group, "groupId__isnull": True} for traits in all_traits() if traits.unnamed_group]
    return reduce(or_, (Q(**{_READS + name: value for name, value in form.items()}) for form in forms))
