"""What holds a group of Kafka's: supervisors that name it, manual tasks while they run, and progress that is kept."""

from __future__ import annotations

from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import F, Q, QuerySet

from controlplane.datasources.groups import register_group_holders
from controlplane.sources.models import Source
from controlplane.supervisors.models import SpecVersion
from controlplane.tasks.models import Task
from ingestion.specs.inputs.sources import all_traits

_IO_CONFIG_PATH = "spec__spec__ioConfig__"
_GROUP_ID_PATH = f"{_IO_CONFIG_PATH}groupId"


@register_group_holders
def holders(group: str, since: datetime | None) -> list[QuerySet[Any, Any]]:
    """The keys of the datasources that a group is held for. A consumer group without a name is called as its owner."""
    supervised = SpecVersion.objects.filter(version=F("supervisor__version"), supervisor__terminated_at=None)
    manual = Task.objects.active().filter(supervisor_id="")
    sources = Source.objects.filter(kind__in=_share_group_kinds(), group=group, current=True)
    if since is not None:
        supervised = supervised.filter(supervisor__created_at__lt=since)
        manual = manual.filter(created_at__lt=since)
        sources = sources.filter(created_at__lt=since)
    named, unnamed = Q(**{_GROUP_ID_PATH: group}), _without_group_id()
    return [
        supervised.filter(named | unnamed & Q(supervisor=group)).values("supervisor__datasource"),
        manual.filter(named | unnamed & Q(datasource__name=group)).values("datasource"),
        sources.values("datasource"),
    ]


def _share_group_kinds() -> set[str]:
    return {traits.progress.kind for traits in all_traits() if traits.in_share_group}


def _without_group_id() -> Q:
    """The spec has a group and does not name it."""
    forms = [{**traits.unnamed_group, "groupId__isnull": True} for traits in all_traits() if traits.unnamed_group]
    return reduce(or_, (Q(**{_IO_CONFIG_PATH + name: value for name, value in form.items()}) for form in forms))
