"""Tasks: the list, and one with its live counters, indexers, parse errors and log."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from controlplane.common.errors import Unavailable
from controlplane.quarantine.selectors.lists import list_faulty, list_quarantined_by
from controlplane.quarantine.selectors.task_errors import error_groups
from controlplane.tasks import bounded_reads, services
from controlplane.tasks.logs import search_log
from controlplane.tasks.models import Task
from controlplane.tasks.phases import phases_of
from controlplane.tasks.quota_use import pool_of_team
from controlplane.tasks.selectors import Report, get_task, list_tasks, task_log_tail, task_report
from controlplane.tasks.slots import slots_for
from controlplane.tasks.spare_reports import waiting_applications
from controlplane.teams.permissions import Action, may
from frontend.actions import TaskActions
from frontend.counters import sum_of
from frontend.filters import LogFilter, TaskFilter
from frontend.live.shared_parts import shared
from frontend.paging import keyset_page
from frontend.phase_bars import bars_of
from frontend.record_tables import FAULTY, QUARANTINED
from frontend.tables import Column, Shape
from frontend.task_names import short_name
from frontend.task_progress import progress_of
from frontend.team_scope import reach_of
from frontend.views.common import PageRequest, act, page, rest_address

ERRORS_PER_PAGE = 20
TASKS = Shape(
    "tasks",
    (
        Column("task", "Task", sorts="created_at", descending_first=True, fixed=True),
        Column("status", "Status", sorts="status"),
        Column("lasted", "Lasted"),
        Column("published", "Published", number=True),
        Column("unparseable", "Unparseable", number=True),
        Column("segments", "Segments", number=True),
        Column("datasource", "Datasource"),
        Column("supervisor", "Supervisor", sorts="supervisor_id"),
        Column("team", "Team"),
        Column("kind", "Kind", sorts="kind", is_shown=False),
    ),
    default="-task",
    tie_breakers=("-created_at", "-id"),
)
FILTERS = ("status", "datasource", "supervisor", "kind", "search")


@page
@shared
def index(request: PageRequest) -> HttpResponse:
    """All the user may see, the newest first."""
    filters = TaskFilter(request.GET)
    filter_values, team = {name: filters.chosen(name) for name in FILTERS}, reach_of(request).team
    tasks, table = list_tasks(request.user, **filter_values, team=team), TASKS.table_for(request.GET)
    context = {
        "filters": filters,
        "page": keyset_page(tasks, table.order, request.GET.get("cursor")),
        "filtered": any(filter_values.values()),
        "pool": pool_of_team(team),
        "table": table,
        "clear": reverse("frontend:tasks"),
        "rest": rest_address("api:tasks", **filter_values, team=team),
    }
    return render(request, "tasks/list.html", context)


@page
def capacity(request: PageRequest) -> HttpResponse:
    """Who has the places of the pool, and who waits for some."""
    places = slots_for(request.user)
    spares = waiting_applications()
    context = {"places": places, "pool": places.pool, "spares": spares, "rest": rest_address("api:capacity")}
    return render(request, "tasks/capacity.html", context)


@page
def detail(request: PageRequest, task_id: str) -> HttpResponse:
    """One task, whole."""
    task = get_task(request.user, task_id)
    rest = rest_address("api:task", task.id)
    context = {"task": task, "rest": rest, **_log(request, task), **_head(request, task), **_live(request, task)}
    return render(request, "tasks/detail.html", context)


@page
def live(request: PageRequest, task_id: str) -> HttpResponse:
    """What changes while it runs; with it the buttons, once they are not those that ``head`` of the address names.

    When it has ended the whole page is loaded again, for its last state.
    """
    task = get_task(request.user, task_id)
    if task.ended:
        return HttpResponseClientRefresh()
    return render(
        request, "tasks/live.html", {"task": task, "again": True, **_head(request, task), **_live(request, task)}
    )


@page
def errors(request: PageRequest, task_id: str) -> HttpResponse:
    """Its poison records, or with ``kind=faulty`` those that were stored with a faulty field, in pages."""
    task = get_task(request.user, task_id)
    faulty = request.GET.get("kind") == "faulty"
    records: QuerySet[Any] = (
        list_faulty(request.user, task.id) if faulty else list_quarantined_by(request.user, task.id)
    )
    table = (FAULTY if faulty else QUARANTINED).without_columns("choose").table_for(request.GET)
    rows = keyset_page(records, table.order, request.GET.get("cursor"), ERRORS_PER_PAGE)
    crumbs = [("Tasks", reverse("frontend:tasks")), (short_name(task.id), _url(task))]
    quarantine = rest_address("api:quarantine", task.datasource.name, task=task.id)
    rest = rest_address("api:report", task.id) if faulty else quarantine
    context = {"task": task, "page": rows, "table": table, "faulty": faulty, "crumbs": crumbs, "rest": rest}
    return render(request, "tasks/errors.html", context)


@page
def log(request: PageRequest, task_id: str) -> HttpResponse:
    """The end of its log, or the lines of it that the address asks for."""
    task = get_task(request.user, task_id)
    return render(request, "tasks/_log.html", {"task": task, **_log(request, task)})


@page
def confirm(request: PageRequest, task_id: str, action: str) -> HttpResponse:
    """The question before an action, as a page of its own: for browsers without scripts."""
    task = get_task(request.user, task_id)
    chosen = TaskActions.for_user(request.user, task).get(action)
    if chosen is None:
        raise Http404("This action is not available now.")
    crumbs = [("Tasks", reverse("frontend:tasks")), (short_name(task.id), _url(task))]
    context = {"action": chosen, "back": _url(task), "crumbs": crumbs}
    return render(request, "confirm.html", context)


@require_POST
@page
def stop(request: PageRequest, task_id: str) -> HttpResponse:
    """Give back what is held and end."""
    task = get_task(request.user, task_id)
    return act(request, lambda: services.stop_task(user=request.user, task=task), "The task is stopping.", _url(task))


@require_POST
@page
def finish(request: PageRequest, task_id: str) -> HttpResponse:
    """Publish what is held and end."""
    task = get_task(request.user, task_id)
    return act(
        request,
        lambda: services.stop_task(user=request.user, task=task, finish=True),
        "The task publishes what it holds and ends.",
        _url(task),
    )


def _log(request: PageRequest, task: Task) -> dict[str, Any]:
    filters = LogFilter(request.GET)
    text, level = filters.chosen("log_text"), filters.chosen("log_level")
    query = urlencode({"log_text": text, "log_level": level}) if text or level else ""
    context: dict[str, Any] = {"log_filters": filters, "log": "", "found": None, "log_query": query}
    try:
        if not query:
            return {**context, "log": task_log_tail(task)}
        log_search = search_log(task, text, level)
    except Unavailable as problem:
        return {**context, "log_problem": problem.detail}
    return {**context, "log": log_search.text, "found": log_search}


def _url(task: Task) -> str:
    return reverse("frontend:task", args=[task.id])


def _head(request: PageRequest, task: Task) -> dict[str, Any]:
    actions = TaskActions.for_user(request.user, task)
    return {
        "actions": list(actions.values()),
        "head": "-".join([task.status, *actions]),
        "may_operate": may(request.user, Action.OPERATE, task.datasource.team),
    }


def _live(request: PageRequest, task: Task) -> dict[str, Any]:
    report, progress = task_report(request.user, task), progress_of(task.observation)
    quarantine = f"{_url(task)}#parse-errors"
    segments = reverse("frontend:datasource-segments", args=[task.datasource.name])
    urls = {
        "published": segments,
        "unparseable": quarantine,
        "quarantined": quarantine,
        "processed_with_error": f"{reverse('frontend:task-errors', args=[task.id])}?kind=faulty",
        "thrown_away": f"{_url(task)}#spec",
    }
    return {
        "report": report,
        "phases": bars_of(phases_of(task, [row.fence for row in report.indexers if row.fence]), timezone.now()),
        "groups": error_groups(request.user, task.id) if report.parse_exceptions else [],
        "totals": report.totals,
        "sum": sum_of(report.totals, urls),
        "progress": progress,
        "bounded": bounded_reads.progress_of(task) if task.is_bounded else None,
        "all_published": task.is_bounded or (progress is not None and progress.complete and _has_published(report)),
    }


def _has_published(report: Report) -> bool:
    """By it, or by those before it: then there is nothing for it."""
    return report.totals.published > 0 or [reason.code for reason in report.reasons] == ["caught_up"]
