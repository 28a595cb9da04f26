"""Tasks: the list, and one with its live counters, indexers, parse errors and log."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from controlplane.segments.selectors import list_faulty, list_quarantined_by
from controlplane.tasks import services
from controlplane.tasks.capacity import shown
from controlplane.tasks.models import Task
from controlplane.tasks.selectors import Report, get_task, list_tasks, task_log_tail, task_report
from controlplane.teams.permissions import Action, may
from frontend.actions import TaskActions
from frontend.counters import sum_of
from frontend.forms import TaskFilter
from frontend.paging import keyset_page
from frontend.progress import progress_of
from frontend.views.common import PageRequest, act, page

ERRORS_PER_PAGE = 20
ORDER = ("-created_at", "-id")


@page
def index(request: PageRequest) -> HttpResponse:
    """All the user may see, the newest first."""
    filters = TaskFilter(request.GET)
    names = ("status", "datasource", "supervisor", "kind", "search")
    tasks = list_tasks(request.user, **{name: filters.chosen(name) for name in names})
    rows = keyset_page(tasks, ORDER, request.GET.get("cursor"))
    filtered = any(filters.chosen(name) for name in names)
    context = {"filters": filters, "page": rows, "filtered": filtered, "pool": shown()}
    return render(request, "tasks/list.html", context)


@page
def detail(request: PageRequest, task_id: str) -> HttpResponse:
    """One task, whole."""
    task = get_task(request.user, task_id)
    context = {"task": task, "log": task_log_tail(task), **_head(request, task), **_live(task)}
    return render(request, "tasks/detail.html", context)


@page
def live(request: PageRequest, task_id: str) -> HttpResponse:
    """What changes while it runs; with it the buttons, once they are not those that ``head`` of the address names.

    When it has ended the whole page is loaded again, for its last state.
    """
    task = get_task(request.user, task_id)
    if task.ended:
        return HttpResponseClientRefresh()
    return render(request, "tasks/live.html", {"task": task, "again": True, **_head(request, task), **_live(task)})


@page
def errors(request: PageRequest, task_id: str) -> HttpResponse:
    """Its poison records, or with ``kind=faulty`` those that were stored with a faulty field, in pages."""
    task = get_task(request.user, task_id)
    faulty = request.GET.get("kind") == "faulty"
    records: QuerySet[Any] = list_faulty(task.id) if faulty else list_quarantined_by(task.id)
    rows = keyset_page(records, ["-id"], request.GET.get("cursor"), ERRORS_PER_PAGE)
    return render(request, "tasks/errors.html", {"task": task, "page": rows, "faulty": faulty})


@page
def log(request: PageRequest, task_id: str) -> HttpResponse:
    """The end of its log."""
    task = get_task(request.user, task_id)
    return render(request, "tasks/_log.html", {"task": task, "log": task_log_tail(task)})


@page
def confirm(request: PageRequest, task_id: str, action: str) -> HttpResponse:
    """The question before an action, as a page of its own: for browsers without scripts."""
    task = get_task(request.user, task_id)
    chosen = TaskActions.for_user(request.user, task).get(action)
    if chosen is None:
        raise Http404("There is nothing to do here now.")
    context = {"action": chosen, "back": _url(task), "crumbs": [("Tasks", reverse("frontend:tasks"))]}
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


def _url(task: Task) -> str:
    return reverse("frontend:task", args=[task.id])


def _head(request: PageRequest, task: Task) -> dict[str, Any]:
    actions = TaskActions.for_user(request.user, task)
    return {
        "actions": list(actions.values()),
        "head": "-".join([task.status, *actions]),
        "may_operate": may(request.user, Action.OPERATE, task.datasource.team),
    }


def _live(task: Task) -> dict[str, Any]:
    report, seen = task_report(task), progress_of(task.observation)
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
        "totals": report.totals,
        "sum": sum_of(report.totals, urls),
        "progress": seen,
        "all_published": seen is not None and seen.complete and _published(report),
    }


def _published(report: Report) -> bool:
    """By it, or by those before it: then there is nothing for it."""
    return report.totals.published > 0 or [reason.code for reason in report.reasons] == ["caught_up"]
