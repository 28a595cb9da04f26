"""A supervisor's rewinds. What one would read and replace is shown before it begins."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from controlplane.common.errors import HeadgateError, InvalidInput, NotAllowed, NotFound
from controlplane.datasources.masking import hidden_columns
from controlplane.publishing.models import Rewind
from controlplane.publishing.rewind_changes import shown_changes
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.rewinds import (
    LISTED,
    RewindPlan,
    cancel_rewind,
    get_rewind,
    preview_rewind,
    rewinds_of,
    start_rewind,
    undo_rewind,
    version_before,
)
from controlplane.supervisors.selectors import get_supervisor
from controlplane.teams.permissions import Action, require
from frontend.rewind_form import RewindForm
from frontend.rewind_rows import RewindRow
from frontend.views.common import PageRequest, act, page
from frontend.views.supervisors import frame

SHOWN = 500  # rows of a table
TEMPLATE = "supervisors/rewinds.html"
IDS = "rewind_%s"  # the questions of the page's head have fields of similar names
_CHANGES = {
    "undo": (undo_rewind, "The old segments are in use again."),
    "cancel": (cancel_rewind, "Its waiting parts are cancelled. What is done stays."),
}


@require_http_methods(["GET", "HEAD", "POST"])
@page
def rewinds(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """List them. A choice is shown first, with what can't be recomputed; a POST without ``preview`` begins it."""
    supervisor = get_supervisor(request.user, supervisor_id)
    asked = request.POST if request.method == "POST" else request.GET
    is_filled = any(asked.get(name) for name in RewindForm.base_fields) or "preview" in asked
    form = RewindForm(asked if is_filled else None, supervisor=supervisor, auto_id=IDS)
    if request.method == "POST":
        require(request.user, Action.ADMINISTER, supervisor.datasource.team)
        if "preview" not in asked:
            return _change(request, supervisor, form)
    context = {**_listed(request, supervisor), **_question(request, supervisor), "form": form}
    if not form.is_bound:
        return render(request, TEMPLATE, context)
    if not form.is_valid():
        return render(request, TEMPLATE, context, status=400)
    try:
        plan = preview_rewind(user=request.user, supervisor=supervisor, asked=form.asked())
    except (NotFound, NotAllowed):
        raise
    except HeadgateError as error:
        return render(request, TEMPLATE, {**context, "problem": error})
    return render(request, TEMPLATE, {**context, **_preview(plan, form)})


def _listed(request: PageRequest, supervisor: Supervisor) -> dict[str, Any]:
    rows = [RewindRow.of(rewind) for rewind in rewinds_of(supervisor)[:LISTED]]
    shown = _shown(request.GET, rows)
    framed = frame(request, supervisor, "rewinds")
    hidden = hidden_columns(request.user, supervisor.datasource)
    changed = [
        (part, column)
        for part in (shown.parts if shown else [])
        for column in shown_changes(part.changes, hidden)["columns"]
    ]
    unnamed = sum(part.changes.get("more", 0) for part in (shown.parts if shown else []))
    return {
        **framed,
        "hears": framed["hears"] or (f"supervisor:{supervisor.pk}" if any(row.can_cancel for row in rows) else ""),
        "here": _url(supervisor),
        "rewinds": rows,
        "shown": shown,
        "parts": shown.parts[:SHOWN] if shown else [],
        "changed": changed[:SHOWN],
        "changed_more": max(0, len(changed) - SHOWN) + unnamed,
        "more_parts": max(0, len(shown.parts) - SHOWN) if shown else 0,
        "before": version_before(shown.rewind) if shown and shown.can_undo and framed["may_administer"] else None,
    }


def _shown(asked: QueryDict, rows: list[RewindRow]) -> RewindRow | None:
    """The one that the address names, else the newest."""
    number = next((asked[name] for name in ("rewind", "undo", "cancel") if name in asked), None)
    if number is None:
        return rows[0] if rows else None
    for row in rows:
        if str(row.rewind.pk) == number:
            return row
    raise Http404("There is no such rewind.")


def _question(request: PageRequest, supervisor: Supervisor) -> dict[str, Any]:
    """Before an undo or a cancellation."""
    name = next((name for name in _CHANGES if name in request.GET), "")
    if name:
        require(request.user, Action.ADMINISTER, supervisor.datasource.team)
    return {"question": name}


def _preview(plan: RewindPlan, form: RewindForm) -> dict[str, Any]:
    refused = [(g.used, sum(member.rows for member in g.used), g.refusal) for g in plan.refused]
    return {
        "plan": plan,
        "plan_parts": plan.parts[:SHOWN],
        "plan_more": max(0, len(plan.parts) - SHOWN),
        "plan_rows": sum(part.rows for part in plan.parts),
        "refused": refused[:SHOWN],
        "refused_more": max(0, len(refused) - SHOWN),
        "sent": form.sent(plan.version.version),
    }


def _change(request: PageRequest, supervisor: Supervisor, form: RewindForm) -> HttpResponse:
    """Undo or cancel the one that is named, or begin another."""
    back = _url(supervisor)
    name = next((name for name in _CHANGES if name in request.POST), None)
    if name is not None:
        change, done = _CHANGES[name]
        rewind = _rewind(request, supervisor, request.POST[name])
        return act(request, lambda: change(user=request.user, rewind=rewind), done, f"{back}?rewind={rewind.pk}")
    how = {name: name in request.POST for name in ("only_possible", "dry_run")}

    def begin() -> RewindPlan:
        if not form.is_bound or not form.is_valid():
            raise InvalidInput("The choice was not understood. Nothing was changed.")
        return start_rewind(user=request.user, supervisor=supervisor, asked=form.asked(**how))

    done = "A dry run begins. It replaces nothing." if how["dry_run"] else "A rewind begins."
    return act(request, begin, done, back)


def _rewind(request: PageRequest, supervisor: Supervisor, number: str) -> Rewind:
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        raise Http404("There is no such rewind.")
    return get_rewind(request.user, supervisor, int(number))


def _url(supervisor: Supervisor) -> str:
    return reverse("frontend:supervisor-rewinds", args=[supervisor.pk])
