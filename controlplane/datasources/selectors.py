"""Reads of datasources. Segments, writers and tasks are reached by relation name: their apps lie above this one."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Max, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from controlplane.common.errors import NotFound
from controlplane.common.text import storable
from controlplane.datasources.models import Datasource
from controlplane.teams.models import User

SCHEMA_SEGMENTS = 1000
_ACTIVE = ("PENDING", "RUNNING")  # of tasks.models.Status


@dataclass(frozen=True)
class Totals:
    """What became of all records of some writers, summed. ``polled`` counts deliveries: a released record comes again.

    ``replayed``: of the unparseable, how many a replay took from the quarantine since; the replay counts them too.
    ``rows_per_s``: published rows over the time from the first start to the last publish; None before that.
    """

    polled: int = 0
    published: int = 0
    rolled_up: int = 0
    thrown_away: int = 0
    unparseable: int = 0
    duplicates: int = 0
    released: int = 0
    redundant: int = 0
    redelivered: int = 0
    quarantined: int = 0
    filtered: int = 0
    outside_window: int = 0
    tombstones: int = 0
    processed_with_error: int = 0
    input_bytes: int = 0
    segments: int = 0
    size_bytes: int = 0
    publishes: int = 0
    replayed: int = 0
    started_at: datetime | None = None
    first_publish_at: datetime | None = None
    last_publish_at: datetime | None = None

    @property
    def ended(self) -> int:
        """Records by outcome, summed: each polled record has exactly one."""
        settled = self.published + self.rolled_up + self.thrown_away + self.unparseable + self.duplicates
        return settled + self.released + self.redundant

    @property
    def adds_up(self) -> bool:
        return self.polled == self.ended

    @property
    def once(self) -> Totals:
        """For sums over more than one task: what was replayed counts as it ended last, and once."""
        return replace(
            self,
            polled=self.polled - self.replayed,
            unparseable=self.unparseable - self.replayed,
            quarantined=self.quarantined - self.replayed,
        )

    @property
    def rows_per_s(self) -> float | None:
        since = self.started_at or self.first_publish_at
        if since is None or self.last_publish_at is None:
            return None
        seconds = (self.last_publish_at - since).total_seconds()
        return self.published / seconds if seconds > 0 else None


_PLAIN_SUMS = (
    "published",
    "rolled_up",
    "thrown_away",
    "unparseable",
    "duplicates",
    "quarantined",
    "filtered",
    "outside_window",
    "tombstones",
    "processed_with_error",
    "input_bytes",
    "segments",
    "size_bytes",
    "publishes",
    "replayed",
)


def totals_of(writers: QuerySet[Any]) -> Totals:
    """Sum rows of ``segments.Writer`` in one query. What ended without a publish counts as polled too."""
    released = Sum("released_before") + Sum("released_now")
    redundant = Sum("redundant_before") + Sum("redundant_now")
    again = Sum("redelivered") + Sum("redelivered_before") + Sum("redelivered_now")
    sums = {f"sum_{name}": Coalesce(Sum(name), 0) for name in _PLAIN_SUMS}
    found = writers.aggregate(
        **sums,
        sum_polled=Coalesce(Sum("polled") + released + redundant, 0),
        sum_released=Coalesce(released, 0),
        sum_redundant=Coalesce(redundant, 0),
        sum_redelivered=Coalesce(again, 0),
        sum_started_at=Min("started_at"),
        sum_first_publish_at=Min("first_publish_at"),
        sum_last_publish_at=Max("last_publish_at"),
    )
    return Totals(**{name.removeprefix("sum_"): value for name, value in found.items()})


def list_datasources(user: User, *, search: str = "") -> QuerySet[Datasource]:
    """The user's datasources by name.

    Adds team_name, rows, segment_count, size_bytes, min_time, max_time, active_tasks.
    """
    if not storable(search):
        return Datasource.objects.none()
    found = Datasource.objects.visible_to(user)
    return _described(found.filter(name__icontains=search) if search else found)


def get_datasource(user: User, name: str) -> Datasource:
    """One of ``list_datasources``, with its sums. Raises ``NotFound``."""
    return _only(list_datasources(user), name)


def find_datasource(user: User, name: str) -> Datasource:
    """A datasource without its sums, which cost a pass over its segments. Raises ``NotFound``."""
    return _only(Datasource.objects.visible_to(user).select_related("team"), name)


def datasource_totals(datasource: Datasource) -> Totals:
    """What became of all records of all the datasource's tasks."""
    return totals_of(datasource.writers.all()).once


def datasource_schema(datasource: Datasource) -> list[dict[str, Any]]:
    """The columns of its latest segments (1000 at most): name, type, types, segments.

    ``type`` holds the values of all of them; ``types`` are those that segments have, more than one when they differ.
    """
    latest = datasource.segments.filter(used=True).order_by("-interval_start", "-partition_num")
    types: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for columns in latest.values_list("columns", flat=True)[:SCHEMA_SEGMENTS]:
        for column in columns:
            types.setdefault(column["name"], set()).add(column["type"])
            counts[column["name"]] = counts.get(column["name"], 0) + 1
    names = sorted(types, key=lambda name: (name != "__time", name))
    return [{"name": n, "type": widest(types[n]), "types": sorted(types[n]), "segments": counts[n]} for n in names]


def widest(types: Set[str]) -> str:
    """The type that holds the values of all these, as indexers have it when they meet them in one segment."""
    if len(types) == 1:
        return next(iter(types))
    if types == {"long", "double"}:
        return "double"
    return next((t for t in ("json", "strings") if t in types), "string")


def _only(among: QuerySet[Datasource], name: str) -> Datasource:
    found = among.filter(name=name).first() if storable(name) else None
    if found is None:
        raise NotFound(f"There is no datasource {name!r}.")
    return found


def _described(found: QuerySet[Datasource]) -> QuerySet[Datasource]:
    # Another join would multiply the intervals' rows, so the tasks are counted apart.
    tasks = Datasource.objects.filter(pk=OuterRef("pk")).order_by()
    active = tasks.annotate(n=Count("tasks", filter=Q(tasks__status__in=_ACTIVE))).values("n")
    return (
        found.select_related("team")
        .annotate(
            team_name=F("team__name"),
            rows=Coalesce(Sum("intervals__rows"), 0),
            segment_count=Coalesce(Sum("intervals__segments"), 0),
            size_bytes=Coalesce(Sum("intervals__size_bytes"), 0),
            min_time=Min("intervals__min_time"),
            max_time=Max("intervals__max_time"),
            active_tasks=Subquery(active),
        )
        .order_by("name")
    )
