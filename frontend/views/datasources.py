"""Datasources: the list, and one with its totals, timeline, columns, events and progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from controlplane.common.health import Health
from controlplane.datasources.models import Datasource
from controlplane.publishing.selectors.progress import progress
from controlplane.publishing.selectors.published import rows_per_s
from controlplane.publishing.selectors.totals import datasource_totals
from controlplane.segments.selectors.gaps import gaps
from controlplane.segments.selectors.main_range import bulk_of
from controlplane.sources.events import list_events
from controlplane.supervisors.completeness import Completeness, completeness, completeness_of
from controlplane.supervisors.health_facts import HealthFacts
from controlplane.supervisors.health_queries import health_facts
from controlplane.supervisors.health_rules import filling_text, health_of
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import list_supervisors
from controlplane.tasks.datasources import get_datasource, list_datasources
from controlplane.tasks.selectors import list_tasks
from controlplane.teams.permissions import Action, may
from frontend.counters import Sum, sum_of
from frontend.filters import DatasourceFilter, EventFilter
from frontend.freshness import freshness_of
from frontend.live.shared_parts import shared
from frontend.paging import keyset_page, numbered_page
from frontend.tables import Column, Shape
from frontend.team_scope import reach_of
from frontend.views.common import PageRequest, page, rest_address

BY_FRESHNESS = "complete_until"  # no field: it is what Kafka and the metadata store say together
LIST = Shape(
    "datasources",
    (
        Column("name", "Name", sorts="name", fixed=True),
        Column("freshness", "Freshness", sorts=BY_FRESHNESS),
        Column("complete", "Complete until"),
        Column("rate", "Rows/s", number=True),
        Column("rows", "Rows", sorts="rows", number=True, descending_first=True),
        Column("segments", "Segments", sorts="segment_count", number=True, descending_first=True),
        Column("size", "Size", sorts="size_bytes", number=True, descending_first=True),
        Column("earliest", "First row", sorts="min_time", is_shown=False),
        Column("latest", "Last row", sorts="max_time", descending_first=True),
        Column("tasks", "Active tasks", sorts="active_tasks", number=True, descending_first=True),
        Column("team", "Team", sorts="team_name"),
    ),
    default="name",
    tie_breakers=("name",),
)
NOT_SORTABLE = "Too many events to sort by this. Filter them first"
EVENTS = Shape(
    "events",
    (
        Column("when", "When", sorts="id", descending_first=True, fixed=True),
        Column("what", "What", unsortable_reason=NOT_SORTABLE),
        Column("detail", "Detail"),
        Column("topic", "Topic", unsortable_reason=NOT_SORTABLE),
        Column("task", "Task", unsortable_reason=NOT_SORTABLE),
    ),
    default="-when",
    tie_breakers=("-id",),
)
PROGRESS = Shape(
    "progress",
    (
        Column("topic", "Topic", sorts="source.topic", fixed=True),
        Column("reader", "Reader", sorts="source.group"),
        Column("partition", "Partition", sorts="partition", number=True, fixed=True),
        Column("settled", "Settled", sorts="settled", number=True, descending_first=True),
        Column("upto", "Up to", sorts="settled_upto", number=True, descending_first=True),
        Column("open", "Open", sorts="open_offsets", number=True, descending_first=True),
        Column("start", "Log start", sorts="log_start_offset", number=True, descending_first=True),
        Column("end", "Log end", sorts="end_offset", number=True, descending_first=True),
        Column("lag", "Lag", sorts="lag", number=True, descending_first=True),
        Column("looked", "Checked", sorts="observed_at", descending_first=True),
    ),
    default="topic",
    tie_breakers=("source.topic", "-source.current", "source.group", "-source.pk", "partition"),
)
PARTITIONS_PER_PAGE = 100
ALARMS_SHOWN = 5
TASKS_SHOWN = 5


@page
@shared
def index(request: PageRequest) -> HttpResponse:
    """All the user may see."""
    filters = DatasourceFilter(request.GET)
    table = LIST.table_for(request.GET)
    filter_values = {"search": filters.chosen("search"), "team": reach_of(request).team}
    queryset = list_datasources(request.user, **filter_values)
    order = table.order[0]
    if order.removeprefix("-") == BY_FRESHNESS:
        ordered: list[Datasource] | QuerySet[Datasource] = _by_freshness(list(queryset.order_by("name")), order)
    else:
        ordered = queryset.order_by(*table.ordering)
    rows = numbered_page(ordered, request.GET.get("page"))
    context = {
        "filters": filters,
        "filtered": bool(filter_values["search"]),
        "clear": reverse("frontend:datasources"),
        "table": table,
        "page": rows,
        "lines": _lines(list(rows)),
        "rest": rest_address("api:datasources", **filter_values),
    }
    return render(request, "datasources/list.html", context)


@dataclass(frozen=True)
class Line:
    """One datasource of the list."""

    datasource: Datasource
    complete: Completeness
    freshness: Health
    rows_per_s: float | None


def _lines(datasources: list[Datasource]) -> list[Line]:
    now, complete = timezone.now(), completeness_of(datasources)
    rates = rows_per_s(d.pk for d in datasources)
    return [Line(d, complete[d.pk], freshness_of(complete[d.pk], now), rates.get(d.pk)) for d in datasources]


def _by_freshness(datasources: list[Datasource], field: str) -> list[Datasource]:
    """The one that is furthest behind first, with ``-`` last; those of which nothing is known at the end."""
    complete_until = {key: state.complete_until for key, state in completeness_of(datasources).items()}
    dated = [(at, d) for d in datasources if (at := complete_until[d.pk]) is not None]
    dated.sort(key=lambda pair: pair[0], reverse=field.startswith("-"))
    return [d for _, d in dated] + [d for d in datasources if complete_until[d.pk] is None]


@page
def detail(request: PageRequest, name: str) -> HttpResponse:
    """One datasource: what came in, how it ended, and when in time it lies."""
    datasource = get_datasource(request.user, name)
    context = {**_overview(request, datasource), "bulk": bulk_of(datasource)}
    return render(request, "datasources/detail.html", context)


@page
def totals(request: PageRequest, name: str) -> HttpResponse:
    """The totals, and with them all else of the page that may have changed, for a page that keeps them fresh.

    Alarms only when the last is not the one that ``head`` of the address names.
    """
    datasource = get_datasource(request.user, name)
    return render(request, "datasources/live.html", {**_overview(request, datasource), "again": True})


def _overview(request: PageRequest, datasource: Datasource) -> dict[str, Any]:
    alarms = list(list_events(request.user, datasource).filter(alarm=True, acknowledged_at=None)[:ALARMS_SHOWN])
    window = urlencode({name: request.GET[name] for name in ("from", "to") if request.GET.get(name)})
    table_url = reverse("frontend:datasource-intervals", args=[datasource.name])
    readers = _readers(request, datasource)
    return {
        **frame(request, datasource, "overview"),
        **_totals(datasource),
        "gaps": gaps(datasource),
        "alarms": alarms,
        "head": str(alarms[0].pk) if alarms else "",  # they are read out when they come, and not again with each answer
        "supervisors": [(supervisor, health_of(facts)) for supervisor, facts in readers],
        "filling": [(supervisor, text) for supervisor, facts in readers if (text := filling_text(facts))],
        "tasks": list_tasks(request.user, datasource=datasource.name)[:TASKS_SHOWN],
        "timeline_url": reverse("frontend:datasource-timeline", args=[datasource.name]),
        "segments_url": reverse("frontend:datasource-segments", args=[datasource.name]),
        "table_url": f"{table_url}?{window}" if window else table_url,
    }


def _readers(request: PageRequest, datasource: Datasource) -> list[tuple[Supervisor, HealthFacts]]:
    supervisors = list(list_supervisors(request.user).filter(datasource=datasource))
    facts = health_facts(request.user, supervisors)
    return [(supervisor, facts[supervisor.pk]) for supervisor in supervisors]


@page
def events(request: PageRequest, name: str) -> HttpResponse:
    """What an operator must know: topics made again, gaps, repairs."""
    datasource = get_datasource(request.user, name)
    filters, table = EventFilter(request.GET), EVENTS.table_for(request.GET)
    queryset = list_events(request.user, datasource, kind=filters.chosen("kind"), alarm=filters.alarms)
    parameters = {name: filters.chosen(name) for name in filters.fields}
    context = {
        **frame(request, datasource, "events", **parameters),
        "filters": filters,
        "filtered": any(parameters.values()),
        "clear": reverse("frontend:datasource-events", args=[name]),
        "table": table,
        "page": keyset_page(queryset, table.order, request.GET.get("cursor")),
    }
    return render(request, "datasources/events.html", context)


@page
def progress_by_partition(request: PageRequest, name: str) -> HttpResponse:
    """How far each partition has come."""
    datasource = get_datasource(request.user, name)
    table = PROGRESS.table_for(request.GET)
    rows = numbered_page(table.arranged(progress(datasource)), request.GET.get("page"), PARTITIONS_PER_PAGE)
    shown = frame(request, datasource, "progress")
    readers = {r.source.pk: r.supervisor.pk for r in shown["complete"].readers if r.source is not None}
    context = {**shown, "table": table, "page": rows, "readers": readers}
    return render(request, "datasources/progress.html", context)


def frame(request: PageRequest, datasource: Datasource, tab: str, **query: str) -> dict[str, Any]:
    """What every page of a datasource shows around its own part. ``asked``: what its REST address asks for, too."""
    complete = completeness(datasource)
    return {
        "datasource": datasource,
        "tab": tab,
        "crumbs": [("Datasources", reverse("frontend:datasources"))],
        "rest": rest_address(REST[tab], datasource.name, **query),
        "complete": complete,
        "fresh": freshness_of(complete, timezone.now()),
        "may_operate": may(request.user, Action.OPERATE, datasource.team),
        "may_administer": may(request.user, Action.ADMINISTER, datasource.team),
    }


# What each tab shows, over REST.
REST = {
    "overview": "api:datasource",
    "rows": "api:rows",
    "intervals": "api:timeline",
    "segments": "api:segments",
    "compaction": "api:compaction",
    "retention": "api:segments-unused",
    "columns": "api:datasource",
    "profile": "api:profile",
    "quarantine": "api:quarantine",
    "progress": "api:progress",
    "events": "api:events",
}


def _totals(datasource: Datasource) -> dict[str, Any]:
    totals = datasource_totals(datasource)
    return {"totals": totals, "sum": _sum(datasource, totals)}


def _sum(datasource: Datasource, totals: Any) -> Sum:
    def url_of(view: str) -> str:
        return reverse(f"frontend:datasource-{view}", args=[datasource.name])

    tasks = f"{reverse('frontend:tasks')}?datasource={datasource.name}"
    urls = {"published": url_of("segments"), "rolled_up": url_of("segments")}
    urls |= {"unparseable": url_of("quarantine"), "quarantined": url_of("quarantine"), "duplicates": url_of("progress")}
    return sum_of(totals, urls, others=tasks)
