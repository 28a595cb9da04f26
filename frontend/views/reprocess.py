"""Fixing a cause: a spec edited beside records of it, tried on them, and submitted with a replay of them all."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.common.errors import HeadgateError, NotAllowed, NotFound
from controlplane.common.spec_text import spec_text
from controlplane.datasources.models import Datasource
from controlplane.quarantine.selectors.filters import Choice, QuarantineFilter
from controlplane.supervisors.reprocess import (
    SHOWN,
    ReprocessTarget,
    Trial,
    replay_changed,
    reprocess_target,
    submit_and_replay,
    try_spec,
)
from controlplane.tasks.causes import get_cause
from controlplane.tasks.datasources import get_datasource
from controlplane.teams.permissions import Action, may, require
from frontend.payload import payload_of
from frontend.quarantine_forms import ReprocessForm
from frontend.views.common import PageRequest, page, render_problem
from frontend.views.datasources import frame

MAX_ROWS = 9  # of one record, that are shown

TEMPLATE, ASK = "quarantine/fix.html", "quarantine/fix_confirm.html"


@page
def fix(request: PageRequest, name: str) -> HttpResponse:
    """The spec beside records; tried, or with the question whether to submit it."""
    datasource = get_datasource(request.user, name)
    target = _read_target(request, datasource)
    form = ReprocessForm(
        request.POST or None, initial={"document": spec_text(target.spec)}, nonce=str(request.csp_nonce)
    )
    context = _context(request, datasource, target, form)
    if request.method != "POST":
        return render(request, TEMPLATE, context)
    if not form.is_valid():
        return render(request, TEMPLATE, context, status=400)
    is_confirm = "confirm" in request.POST
    require(request.user, _required_action(target) if is_confirm else Action.OPERATE, datasource.team)
    try:
        tried = try_spec(user=request.user, datasource=datasource, found=target, document=form.cleaned_data["document"])
    except HeadgateError as error:
        return _render_refused(request, context, error)
    if is_confirm and context["may_submit"]:
        return render(request, ASK, {**context, "tried": tried, "document": form.data["document"]})
    return render(request, TEMPLATE, {**context, "tried": tried, "lines": _lines(tried)})


def _read_target(request: PageRequest, datasource: Datasource) -> ReprocessTarget:
    return reprocess_target(request.user, datasource, request.GET.get("cause", ""), request.GET.get("task", ""))


def _required_action(target: ReprocessTarget) -> Action:
    """To submit the spec: a supervisor is changed by it, unless the records are of files."""
    return Action.OPERATE if target.reader else Action.ADMINISTER


def _render_refused(request: PageRequest, context: dict[str, Any], error: HeadgateError) -> HttpResponse:
    """The page as it was, with what is wrong with the spec where it is wrong."""
    if isinstance(error, NotFound | NotAllowed):
        raise error
    faults = [{"pointer": f.pointer, "message": f.message} for f in error.errors]
    return render_problem(request, TEMPLATE, {**context, "faults": faults}, error)


def _context(
    request: PageRequest, datasource: Datasource, target: ReprocessTarget, form: ReprocessForm
) -> dict[str, Any]:
    return {
        **frame(request, datasource, "quarantine"),
        "found": target,
        "form": form,
        "faults": [],
        "described": get_cause(request.user, datasource, target.cause),
        "lines": [{"record": r, "payload": payload_of(r.payload), "error": r.error} for r in target.records[:SHOWN]],
        "may_try": may(request.user, Action.OPERATE, datasource.team),
        "may_submit": may(request.user, _required_action(target), datasource.team)
        and (target.supervisor or target.reader),
        "asked": urlencode({"cause": target.cause, **({"task": target.reader.task.pk} if target.reader else {})}),
        "back": f"{reverse('frontend:datasource-quarantine', args=[datasource.name])}?cause={target.cause}",
    }


def _lines(tried: Trial) -> list[dict[str, Any]]:
    return [
        {
            "record": record,
            "payload": payload_of(record.payload),
            "outcome": sampled.outcome,
            "error": sampled.error,
            "row": "\n".join(json.dumps(row, indent=1, ensure_ascii=False) for row in sampled.stored_rows[:MAX_ROWS]),
        }
        for record, sampled in tried.shown_records
    ]


@require_POST
@page
def submit(request: PageRequest, name: str) -> HttpResponse:
    """The new version, and the replay: both, or neither."""
    datasource = get_datasource(request.user, name)
    target = _read_target(request, datasource)
    require(request.user, _required_action(target), datasource.team)
    form = ReprocessForm(request.POST, nonce=str(request.csp_nonce))
    context = _context(request, datasource, target, form)
    if not form.is_valid():
        return render(request, TEMPLATE, context, status=400)
    upto = form.cleaned_data["upto"]
    upto = target.max_id if upto is None else upto
    arguments = {"user": request.user, "datasource": datasource, "document": form.cleaned_data["document"]}
    try:
        if target.reader:
            choice = Choice(filter=QuarantineFilter(cause=target.cause), max_id=upto)
            submitted_text, started = "", replay_changed(choice=choice, reader=target.reader, **arguments)
        else:
            supervisor, started = submit_and_replay(cause=target.cause, upto=upto, **arguments)
            submitted_text = f"Version {supervisor.version} of {supervisor.pk} was submitted; "
    except HeadgateError as error:
        return _render_refused(request, context, error)
    messages.success(request, f"{submitted_text}{started.records:,} records are being replayed with it.")
    return redirect("frontend:task", started.tasks[0].pk)
