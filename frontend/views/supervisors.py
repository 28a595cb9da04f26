"""Supervisors: the list, one with its state and actions, its spec's versions."""

from __future__ import annotations

from typing import Any

from django.forms import Form
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.supervisors import resetting, services
from controlplane.supervisors.history import change_of, history, tombstone_of
from controlplane.supervisors.lag import lag_now
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.scaling import auto_scaler, replicas, task_count
from controlplane.supervisors.selectors import (
    current_tasks,
    get_supervisor,
    list_supervisors,
    supervisor_totals,
    why_nothing,
)
from controlplane.tasks.capacity import lacks_overlap
from controlplane.tasks.selectors import list_tasks
from controlplane.teams.permissions import Action, may
from frontend.actions import SupervisorActions
from frontend.counters import sum_of
from frontend.forms import ResetForm, ScaleForm, SupervisorFilter
from frontend.paging import numbered_page
from frontend.progress import Progress, progress_of
from frontend.views.common import PageRequest, act, page
from frontend.windows import WINDOWS

TASKS_SHOWN = 10
ACTIONS_SHOWN = 5


@page
def index(request: PageRequest) -> HttpResponse:
    """All the user may see."""
    filters = SupervisorFilter(request.GET)
    supervisors = list_supervisors(request.user, search=filters.chosen("search"), state=filters.chosen("state"))
    rows = numbered_page(supervisors, request.GET.get("page"))
    return render(request, "supervisors/list.html", {"filters": filters, "page": rows})


@page
def detail(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """One supervisor: what it does now, why nothing comes if nothing comes, and what it has done."""
    supervisor = get_supervisor(request.user, supervisor_id)
    context = {**frame(request, supervisor, "overview"), **_live(request, supervisor), "windows": WINDOWS}
    return render(request, "supervisors/detail.html", context)


@page
def live(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """What changes by itself; with it the page's head, once it is not the one that ``head`` of the address names."""
    supervisor = get_supervisor(request.user, supervisor_id)
    context = {**frame(request, supervisor, "overview"), **_live(request, supervisor), "again": True}
    return render(request, "supervisors/live.html", context)


@page
def spec(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """The versions of its spec: one as JSON, and what changed since the one before."""
    supervisor = get_supervisor(request.user, supervisor_id)
    versions = list(history(supervisor))
    shown = _asked_version(request, versions)
    context = {
        **frame(request, supervisor, "spec"),
        "versions": [(v, tombstone_of(v)) for v in versions],
        "shown": shown,
        "before": shown.version - 1,
        "change": change_of(shown),
    }
    return render(request, "supervisors/spec.html", context)


def _asked_version(request: PageRequest, versions: list[SpecVersion]) -> SpecVersion:
    asked = request.GET.get("version")
    for version in versions:
        if asked is None or str(version.version) == asked:
            return version
    raise Http404("There is no such version.")


@page
def confirm(request: PageRequest, supervisor_id: str, action: str) -> HttpResponse:
    """The question before an action, as a page of its own: for browsers without scripts."""
    supervisor = get_supervisor(request.user, supervisor_id)
    chosen = SupervisorActions.for_user(request.user, supervisor).get(action)
    if chosen is None:
        raise Http404("There is nothing to do here now.")
    context = {"action": chosen, "back": _url(supervisor), "crumbs": [("Supervisors", reverse("frontend:supervisors"))]}
    return render(request, "confirm.html", context)


@require_POST
@page
def suspend(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """Stop its task; keep everything else."""
    supervisor = get_supervisor(request.user, supervisor_id)
    done = f"{supervisor.id} is suspended; its task publishes what it holds and ends."
    return act(request, lambda: services.suspend(user=request.user, supervisor=supervisor), done, _url(supervisor))


@require_POST
@page
def resume(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """Start again after a suspension."""
    supervisor = get_supervisor(request.user, supervisor_id)
    done = f"{supervisor.id} is resumed; a task starts within seconds."
    return act(request, lambda: services.resume(user=request.user, supervisor=supervisor), done, _url(supervisor))


@require_POST
@page
def terminate(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """End it for good; segments stay."""
    supervisor = get_supervisor(request.user, supervisor_id)
    done = f"{supervisor.id} is terminated. Its segments stay."
    return act(request, lambda: services.terminate(user=request.user, supervisor=supervisor), done, _url(supervisor))


@require_POST
@page
def scale(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """Change how many indexers it keeps: a new version of the spec."""
    supervisor = get_supervisor(request.user, supervisor_id)
    form = ScaleForm(request.POST)
    if not form.is_valid():
        return _asked_again(request, supervisor, "scale", form)
    count = form.cleaned_data["task_count"]
    done = f"{supervisor.id} now keeps {count} indexer{'s' if count != 1 else ''}."
    return act(
        request,
        lambda: services.scale(user=request.user, supervisor=supervisor, task_count=count),
        done,
        _url(supervisor),
    )


@require_POST
@page
def handoff(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """Publish early, with the next task up before this one stops."""
    supervisor = get_supervisor(request.user, supervisor_id)
    done = f"{supervisor.id} hands off: the next task is started, and this one publishes then."
    return act(request, lambda: resetting.hand_off(user=request.user, supervisor=supervisor), done, _url(supervisor))


@require_POST
@page
def reset(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """Move stored offsets, or forget them all."""
    supervisor = get_supervisor(request.user, supervisor_id)
    form = ResetForm(request.POST)
    if not form.is_valid():
        return _asked_again(request, supervisor, "reset", form)
    offsets = form.cleaned_data["offsets"]

    def move() -> None:
        if offsets:
            resetting.reset_offsets(user=request.user, supervisor=supervisor, offsets=offsets)
        else:
            resetting.reset(user=request.user, supervisor=supervisor)

    which = f"of {len(offsets)} partition{'s' if len(offsets) != 1 else ''}" if offsets else "of all partitions"
    return act(request, move, f"The stored offsets {which} are reset.", _url(supervisor))


def _asked_again(request: PageRequest, supervisor: Supervisor, action: str, form: Form) -> HttpResponse:
    chosen = SupervisorActions.for_user(request.user, supervisor).get(action)
    if chosen is None:
        return redirect(_url(supervisor))
    context = {"action": chosen.with_form(form), "back": _url(supervisor)}
    return render(request, "confirm.html", context, status=400)


def _url(supervisor: Supervisor) -> str:
    return reverse("frontend:supervisor", args=[supervisor.id])


def frame(request: PageRequest, supervisor: Supervisor, tab: str) -> dict[str, Any]:
    """What every page of a supervisor shows around its own part."""
    actions = SupervisorActions.for_user(request.user, supervisor)
    return {
        "supervisor": supervisor,
        "tab": tab,
        "in_share_group": supervisor.io_config.traits.in_share_group,
        "actions": list(actions.values()),
        "head": "-".join([str(supervisor.version), *actions]),
        "may_administer": may(request.user, Action.ADMINISTER, supervisor.datasource.team),
    }


def _live(request: PageRequest, supervisor: Supervisor) -> dict[str, Any]:
    tasks_now = current_tasks(supervisor)
    task = tasks_now[0] if tasks_now else None
    scaler = auto_scaler(supervisor)
    wanted = task_count(supervisor)
    totals = supervisor_totals(supervisor)
    tasks = f"{reverse('frontend:tasks')}?supervisor={supervisor.id}"
    quarantine = reverse("frontend:datasource-quarantine", args=[supervisor.datasource.name])
    segments = reverse("frontend:datasource-segments", args=[supervisor.datasource.name])
    urls = {"published": segments, "rolled_up": segments, "unparseable": quarantine, "quarantined": quarantine}
    reasons, seen = why_nothing(supervisor), progress_of(task.observation) if task else None
    return {
        "task": task,
        "current": tasks_now,
        "tasks": list_tasks(request.user, supervisor=supervisor.id)[:TASKS_SHOWN],
        "progress": seen,
        "scaler": scaler,
        "scale_actions": supervisor.scale_actions.all()[:ACTIONS_SHOWN] if scaler else [],
        "wanted": wanted,
        "lacks_overlap": "" if supervisor.terminated_at else lacks_overlap(wanted * replicas(supervisor)),
        "reasons": reasons,
        "all_published": bool(reasons) and _all_published(supervisor, seen, totals.published),
        "totals": totals,
        "sum": sum_of(totals, urls, others=tasks),
    }


def _all_published(supervisor: Supervisor, seen: Progress | None, published: int) -> bool:
    """Whether something is published and nothing waits, as last seen, by its task or while none runs."""
    if seen is None:
        lag = lag_now(supervisor).lag
        return bool(published) and lag == 0
    return bool(published) and seen.complete
