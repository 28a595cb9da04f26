"""Supervisors: the list, one with its state and actions, its spec's versions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.forms import Form
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from controlplane.supervisors import offset_reset, services
from controlplane.supervisors.autoscaler import auto_scaler, replicas, task_count
from controlplane.supervisors.bounded import bounded_progress
from controlplane.supervisors.drain import drain_of
from controlplane.supervisors.health_queries import health_by_supervisor, health_facts, with_health
from controlplane.supervisors.health_rules import health_of
from controlplane.supervisors.lag import lag_now
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import (
    current_tasks,
    get_supervisor,
    list_supervisors,
    supervisor_totals,
    visible_children,
    why_nothing,
)
from controlplane.supervisors.states import Detail
from controlplane.supervisors.timeline_annotations import runs
from controlplane.supervisors.trends import trends
from controlplane.supervisors.unread_times import countdown_of
from controlplane.tasks.selectors import list_tasks
from controlplane.tasks.slot_waits import overlap_warning
from controlplane.teams.permissions import Action, may
from frontend.actions import SupervisorActions
from frontend.chart_windows import WINDOWS
from frontend.counters import sum_of
from frontend.filters import SupervisorFilter
from frontend.forms import ScaleForm
from frontend.live.shared_parts import shared
from frontend.paging import numbered_page
from frontend.run_bars import Drawing, drawing_of
from frontend.tables import Column, Shape
from frontend.task_progress import Progress, progress_of
from frontend.team_scope import reach_of
from frontend.views.common import PageRequest, act, page, rest_address
from frontend.views.tasks import TASKS

TABLE = Shape(
    "supervisors",
    (
        Column("supervisor", "Supervisor", sorts="id", fixed=True),
        Column("state", "State", sorts="druid_state"),
        Column("lag", "Lag", number=True),
        Column("lag_chart", "Lag, last hour"),
        Column("rate", "Rows/s", number=True),
        Column("rate_chart", "Rows/s, last hour"),
        Column("topic", "Topic"),
        Column("datasource", "Datasource", sorts="datasource__name", is_shown=False),
        Column("team", "Team", sorts="datasource__team__name"),
        Column("indexers", "Indexers", number=True),
        Column("version", "Spec", sorts="version", number=True, descending_first=True),
        Column("task", "Current task"),
        Column("since", "Since", sorts="created_at", descending_first=True, is_shown=False),
    ),
    default="supervisor",
    tie_breakers=("id",),
)
TASKS_SHOWN = 10
# What each tab shows, over REST.
REST = {
    "overview": "api:supervisor",
    "share-group": "api:share-group",
    "lag": "api:lag-series",
    "autoscaler": "api:scale-actions",
    "backfills": "api:backfills",
    "rewinds": "api:rewinds",
    "spec": "api:versions",
}
RUNS_SHOWN = timedelta(hours=6)
PARTITIONS_OFFERED = 256
ACTIONS_SHOWN = 5


@page
@shared
def index(request: PageRequest) -> HttpResponse:
    """All the user may see."""
    filters, table = SupervisorFilter(request.GET), TABLE.table_for(request.GET)
    filter_values, team = {name: filters.chosen(name) for name in ("search", "state", "health")}, reach_of(request).team
    supervisors = list_supervisors(request.user, filter_values["search"], filter_values["state"], team=team).order_by(
        *table.order
    )
    if filter_values["health"]:
        supervisors = with_health(request.user, supervisors, filter_values["health"])
    rows = numbered_page(supervisors, request.GET.get("page"))
    context = {
        "filters": filters,
        "page": rows,
        "filtered": any(filter_values.values()),
        "table": table,
        "trends": trends(list(rows)),
        "health_by_id": health_by_supervisor(request.user, rows.object_list),
        "clear": reverse("frontend:supervisors"),
        "rest": rest_address("api:supervisors", **filter_values, team=team),
    }
    return render(request, "supervisors/list.html", context)


@page
def detail(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """One supervisor: what it does now, why nothing comes if nothing comes, and what it has done."""
    supervisor = get_supervisor(request.user, supervisor_id)
    context = {
        **_live(request, supervisor),
        "windows": WINDOWS,
        "lag_url": reverse("frontend:supervisor-lag-data", args=[supervisor.id]),
        "tables_url": reverse("frontend:supervisor-lag", args=[supervisor.id]),
    }
    return render(request, "supervisors/detail.html", context)


@page
def live(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """What changes by itself; with it the page's head, once it is not the one that ``head`` of the address names."""
    supervisor = get_supervisor(request.user, supervisor_id)
    context = {**_live(request, supervisor), "again": True}
    return render(request, "supervisors/live.html", context)


@page
def confirm(request: PageRequest, supervisor_id: str, action: str) -> HttpResponse:
    """The question before an action, as a page of its own: for browsers without scripts."""
    supervisor = get_supervisor(request.user, supervisor_id)
    chosen = SupervisorActions.for_user(request.user, supervisor).get(action)
    if chosen is None:
        raise Http404("This action is not available now.")
    crumbs = [("Supervisors", reverse("frontend:supervisors")), (supervisor.id, url_of(supervisor))]
    context = {"action": chosen, "back": url_of(supervisor), "crumbs": crumbs}
    return render(request, "confirm.html", context)


@require_POST
@page
def suspend(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """Stop its task; keep everything else."""
    supervisor = get_supervisor(request.user, supervisor_id)
    done = f"{supervisor.id} is suspended. Its task publishes what it holds and ends."
    return act(request, lambda: services.suspend(user=request.user, supervisor=supervisor), done, url_of(supervisor))


@require_POST
@page
def resume(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """Start again after a suspension."""
    supervisor = get_supervisor(request.user, supervisor_id)
    done = f"{supervisor.id} is resumed. A task starts within seconds."
    return act(request, lambda: services.resume(user=request.user, supervisor=supervisor), done, url_of(supervisor))


@require_POST
@page
def terminate(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """End it for good; segments stay."""
    supervisor = get_supervisor(request.user, supervisor_id)
    done = f"{supervisor.id} is terminated. Its segments stay."
    return act(request, lambda: services.terminate(user=request.user, supervisor=supervisor), done, url_of(supervisor))


@require_POST
@page
def scale(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """Change how many indexers it keeps: a new version of the spec."""
    supervisor = get_supervisor(request.user, supervisor_id)
    form = ScaleForm(request.POST)
    if not form.is_valid():
        return ask_again(request, supervisor, "scale", form)
    count = form.cleaned_data["task_count"]
    done = f"{supervisor.id} now keeps {count} indexer{'s' if count != 1 else ''}."
    return act(
        request,
        lambda: services.scale(user=request.user, supervisor=supervisor, task_count=count),
        done,
        url_of(supervisor),
    )


@require_POST
@page
def handoff(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """Publish early, with the next task up before this one stops."""
    supervisor = get_supervisor(request.user, supervisor_id)
    done = f"{supervisor.id} hands off. The next task starts, then the current one publishes."
    return act(
        request, lambda: offset_reset.hand_off(user=request.user, supervisor=supervisor), done, url_of(supervisor)
    )


def ask_again(request: PageRequest, supervisor: Supervisor, action: str, form: Form) -> HttpResponse:
    """The question before an action, with what is wrong with its form."""
    chosen = SupervisorActions.for_user(request.user, supervisor).get(action)
    if chosen is None:
        return redirect(url_of(supervisor))
    context = {"action": chosen.with_form(form), "back": url_of(supervisor)}
    return render(request, "confirm.html", context, status=400)


def url_of(supervisor: Supervisor) -> str:
    """Of its page."""
    return reverse("frontend:supervisor", args=[supervisor.id])


def frame(request: PageRequest, supervisor: Supervisor, tab: str) -> dict[str, Any]:
    """What every page of a supervisor shows around its own part."""
    actions = SupervisorActions.for_user(request.user, supervisor)
    facts = health_facts(request.user, [supervisor])[supervisor.pk]
    return {
        "supervisor": supervisor,
        "tab": tab,
        "rest": rest_address(REST[tab], supervisor.id),
        "partition_choices": range(min(supervisor.partitions or 0, PARTITIONS_OFFERED)),
        "in_share_group": supervisor.io_config.traits.in_share_group and supervisor.io_config.topicPattern is None,
        "actions": list(actions.values()),
        "health": health_of(facts),
        "drain": drain_of(facts, supervisor) if supervisor.terminated_at is None else None,
        "head": "-".join([str(supervisor.version), *actions]),
        "may_administer": may(request.user, Action.ADMINISTER, supervisor.datasource.team),
        "hears": _live_topics(supervisor),
    }


def _live_topics(supervisor: Supervisor) -> str:
    """What its parts follow; nothing once it is terminated and its tasks have ended. Of topics the datasource tells."""
    if supervisor.terminated_at is not None and supervisor.detailed_state == Detail.TERMINATED:
        return ""
    topic = f"supervisor:{supervisor.id}"
    return topic if supervisor.io_config.topicPattern is None else f"{topic} datasource:{supervisor.datasource.name}"


def _live(request: PageRequest, supervisor: Supervisor) -> dict[str, Any]:
    framed = frame(request, supervisor, "overview")
    tasks_now, topics = current_tasks(supervisor), visible_children(request.user, supervisor)
    task = tasks_now[0] if tasks_now else None
    scaler = auto_scaler(supervisor)
    indexers_wanted = task_count(supervisor)
    totals = supervisor_totals(supervisor)
    tasks = f"{reverse('frontend:tasks')}?supervisor={supervisor.id}"
    quarantine = reverse("frontend:datasource-quarantine", args=[supervisor.datasource.name])
    segments = reverse("frontend:datasource-segments", args=[supervisor.datasource.name])
    urls = {"published": segments, "rolled_up": segments, "unparseable": quarantine, "quarantined": quarantine}
    unread = countdown_of(supervisor)
    reasons, progress = why_nothing(supervisor, framed["health"]), progress_of(task.observation) if task else None
    return {
        **framed,
        "task": task,
        "topics": topics,
        "topic_health": health_by_supervisor(request.user, topics),
        "current": tasks_now,
        "table": TASKS.static,
        "runs": _runs(supervisor),
        "tasks": list_tasks(request.user, supervisor=supervisor.id)[:TASKS_SHOWN],
        "progress": progress,
        "bounded": bounded_progress(supervisor) if supervisor.io_config.boundedStreamConfig else None,
        "members_unknown": str(task.observation.get("members_unknown") or "") if task else "",
        "scaler": scaler,
        "scale_actions": supervisor.scale_actions.all()[:ACTIONS_SHOWN] if scaler else [],
        "wanted": indexers_wanted,
        "lacks_overlap": "" if supervisor.terminated_at else overlap_warning(indexers_wanted * replicas(supervisor)),
        "reasons": reasons,
        "causes": {reason.cause for reason in reasons},
        "unread": unread,
        "unread_is_short": unread is not None and unread.is_short(settings.RETENTION_WARNING, timezone.now()),
        "all_published": bool(reasons) and _all_published(supervisor, progress, totals.published),
        "totals": totals,
        "sum": sum_of(totals, urls, others=tasks),
    }


def _runs(supervisor: Supervisor) -> Drawing:
    now = timezone.now()
    return drawing_of(runs(supervisor, now - RUNS_SHOWN, now), now - RUNS_SHOWN, now)


def _all_published(supervisor: Supervisor, progress: Progress | None, published: int) -> bool:
    """Whether something is published and nothing waits, as last seen, by its task or while none runs."""
    if progress is None:
        lag = lag_now(supervisor).lag
        return bool(published) and lag == 0
    return bool(published) and progress.complete
