"""Datasources: the list, and one with its totals, timeline, columns, events and progress."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.datasources.models import Datasource
from controlplane.segments.selectors import datasource_schema, datasource_totals, list_events, progress
from controlplane.supervisors.selectors import list_supervisors
from controlplane.tasks.datasources import get_datasource, list_datasources
from controlplane.tasks.selectors import list_tasks
from controlplane.teams.permissions import Action, may
from frontend.counters import Sum, sum_of
from frontend.forms import DatasourceFilter
from frontend.paging import keyset_page, numbered_page
from frontend.views.common import PageRequest, page

ALARMS_SHOWN = 5
TASKS_SHOWN = 5


@page
def index(request: PageRequest) -> HttpResponse:
    """All the user may see."""
    filters = DatasourceFilter(request.GET)
    datasources = list_datasources(request.user, search=filters.chosen("search"))
    rows = numbered_page(datasources, request.GET.get("page"))
    return render(request, "datasources/list.html", {"filters": filters, "page": rows})


@page
def detail(request: PageRequest, name: str) -> HttpResponse:
    """One datasource: what came in, how it ended, and when in time it lies."""
    datasource = get_datasource(request.user, name)
    return render(request, "datasources/detail.html", _overview(request, datasource))


@page
def totals(request: PageRequest, name: str) -> HttpResponse:
    """The totals, and with them all else of the page that may have changed, for a page that keeps them fresh.

    Alarms only when the last is not the one that ``head`` of the address names.
    """
    datasource = get_datasource(request.user, name)
    return render(request, "datasources/live.html", {**_overview(request, datasource), "again": True})


def _overview(request: PageRequest, datasource: Datasource) -> dict[str, Any]:
    alarms = list(list_events(datasource).filter(alarm=True)[:ALARMS_SHOWN])
    return {
        **frame(request, datasource, "overview"),
        **_totals(datasource),
        "alarms": alarms,
        "head": str(alarms[0].pk) if alarms else "",  # they are read out when they come, and not again with each answer
        "supervisors": list_supervisors(request.user).filter(datasource=datasource),
        "tasks": list_tasks(request.user, datasource=datasource.name)[:TASKS_SHOWN],
    }


@page
def columns(request: PageRequest, name: str) -> HttpResponse:
    """The columns of its segments."""
    datasource = get_datasource(request.user, name)
    context = {**frame(request, datasource, "columns"), "columns": datasource_schema(datasource)}
    return render(request, "datasources/columns.html", context)


@page
def events(request: PageRequest, name: str) -> HttpResponse:
    """What an operator must know: topics made again, gaps, repairs."""
    datasource = get_datasource(request.user, name)
    rows = keyset_page(list_events(datasource), ["-id"], request.GET.get("cursor"))
    return render(request, "datasources/events.html", {**frame(request, datasource, "events"), "page": rows})


@page
def progress_by_partition(request: PageRequest, name: str) -> HttpResponse:
    """How far each partition has come."""
    datasource = get_datasource(request.user, name)
    context = {**frame(request, datasource, "progress"), "partitions": progress(datasource)}
    return render(request, "datasources/progress.html", context)


def frame(request: PageRequest, datasource: Datasource, tab: str) -> dict[str, Any]:
    """What every page of a datasource shows around its own part."""
    return {
        "datasource": datasource,
        "tab": tab,
        "may_operate": may(request.user, Action.OPERATE, datasource.team),
        "may_administer": may(request.user, Action.ADMINISTER, datasource.team),
    }


def _totals(datasource: Datasource) -> dict[str, Any]:
    totals = datasource_totals(datasource)
    return {"totals": totals, "sum": _sum(datasource, totals)}


def _sum(datasource: Datasource, totals: Any) -> Sum:
    def of(view: str) -> str:
        return reverse(f"frontend:datasource-{view}", args=[datasource.name])

    tasks = f"{reverse('frontend:tasks')}?datasource={datasource.name}"
    urls = {"published": of("segments"), "rolled_up": of("segments")}
    urls |= {"unparseable": of("quarantine"), "quarantined": of("quarantine"), "duplicates": of("progress")}
    return sum_of(totals, urls, others=tasks)
