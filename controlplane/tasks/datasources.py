"""Datasources with what they hold and how many tasks fill them."""

from __future__ import annotations

from django.db.models import Count, F, Max, Min, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from controlplane.common.text import storable
from controlplane.datasources.models import Datasource
from controlplane.datasources.selectors import only_one_named
from controlplane.tasks.models import Task
from controlplane.teams.models import User


def list_datasources(user: User, *, search: str = "") -> QuerySet[Datasource]:
    """The user's datasources by name.

    Adds team_name, rows, segment_count, size_bytes, min_time, max_time, active_tasks.
    """
    if not storable(search):
        return Datasource.objects.none()
    datasources = Datasource.objects.visible_to(user)
    return _described(datasources.filter(name__icontains=search) if search else datasources)


def get_datasource(user: User, name: str) -> Datasource:
    """One of ``list_datasources``, with its sums. Raises ``NotFound``."""
    return only_one_named(list_datasources(user), name)


def _described(datasources: QuerySet[Datasource]) -> QuerySet[Datasource]:
    # Another join would multiply the intervals' rows, so the tasks are counted apart.
    tasks = Task.objects.active().filter(datasource=OuterRef("pk")).order_by().values("datasource")
    active = tasks.annotate(n=Count("pk")).values("n")
    return (
        datasources.select_related("team")
        .annotate(
            team_name=F("team__name"),
            rows=Coalesce(Sum("intervals__rows"), 0),
            segment_count=Coalesce(Sum("intervals__segments"), 0),
            size_bytes=Coalesce(Sum("intervals__size_bytes"), 0),
            min_time=Min("intervals__min_time"),
            max_time=Max("intervals__max_time"),
            active_tasks=Coalesce(Subquery(active), 0),
        )
        .order_by("name")
    )
