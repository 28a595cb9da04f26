"""Datasources with what they hold and how many tasks fill them."""

from __future__ import annotations

from django.db.models import Count, F, Max, Min, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from controlplane.common.text import storable
from controlplane.datasources.models import Datasource
from controlplane.datasources.selectors import get_by_name
from controlplane.segments.models import DaySum
from controlplane.tasks.models import Task
from controlplane.teams.models import User


def list_datasources(user: User, *, search: str = "", team: str = "") -> QuerySet[Datasource]:
    """The user's datasources by name; of one team, if it is named.

    Adds team_name, rows, segment_count, size_bytes, min_time, max_time, active_tasks.
    """
    if not storable(search):
        return Datasource.objects.none()
    datasources = Datasource.objects.visible_to(user).present()
    if team:
        datasources = datasources.filter(team__name=team)
    return _with_sums(datasources.filter(name__icontains=search) if search else datasources)


def get_datasource(user: User, name: str) -> Datasource:
    """One of the user's, also one that was deleted, with the sums of ``list_datasources``. Raises ``NotFound``."""
    return get_by_name(_with_sums(Datasource.objects.visible_to(user)), name)


def _with_sums(datasources: QuerySet[Datasource]) -> QuerySet[Datasource]:
    # Each apart: in one join with the intervals the tasks would be counted once for each of them.
    tasks = Task.objects.active().filter(datasource=OuterRef("pk")).order_by().values("datasource")
    active = tasks.annotate(n=Count("pk")).values("n")
    return (
        datasources.select_related("team")
        .annotate(
            team_name=F("team__name"),
            rows=Coalesce(_over_intervals(Sum("rows")), 0),
            segment_count=Coalesce(_over_intervals(Sum("segments")), 0),
            size_bytes=Coalesce(_over_intervals(Sum("size_bytes")), 0),
            min_time=_over_intervals(Min("min_time")),
            max_time=_over_intervals(Max("max_time")),
            active_tasks=Coalesce(Subquery(active), 0),
        )
        .order_by("name")
    )


def _over_intervals(aggregate: Sum | Min | Max) -> Subquery:
    day_sums = DaySum.objects.filter(datasource=OuterRef("pk")).order_by().values("datasource")
    return Subquery(day_sums.annotate(of_all=aggregate).values("of_all"))
