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
from controlplane.common.specjson import spec_text
from controlplane.datasources.models import Datasource
from controlplane.quarantine.selectors.filters import Choice, QuarantineFilter
from controlplane.supervisors.reprocess import (
    SHOWN,
    ReprocessTarget,
    Tried,
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
from frontend.views.common import PageRequest, page, refused
from frontend.views.datasources import frame

MOST_ROWS = 9  # of one record, that are shown

TEMPLATE, ASK = "quarantine/fix.html", "quarantine/fix_confirm.html"


@page
def fix(request: PageRequest, name: str) -> HttpResponse:
    """The spec beside records; tried, or with the question whether to submit it."""
    datasource = get_datasource(request.user, name)
    found = _asked_for(request, datasource)
    form = ReprocessForm(
        request.POST or None, initial={"document": spec_text(found.spec)}, nonce=str(request.csp_nonce)
    )
    context = _shown(request, datasource, found, form)
    if request.method != "POST":
        return render(request, TEMPLATE, context)
    if not form.is_valid():
        return render(request, TEMPLATE, context, status=400)
    asks = "confirm" in request.POST
    require(request.user, _needs(found) if asks else Action.OPERATE, datasource.team)
    try:
        tried = try_spec(user=request.user, datasource=datasource, found=found, document=form.cleaned_data["document"])
    except HeadgateError as error:
        return _refused(request, context, error)
    if asks and context["may_submit"]:
        return render(request, ASK, {**context, "tried": tried, "document": form.data["document"]})
    return render(request, TEMPLATE, {**context, "tried": tried, "lines": _lines(tried)})


def _asked_for(request: PageRequest, datasource: Datasource) -> ReprocessTarget:
    return reprocess_target(request.user, datasource, request.GET.get("cause", ""), request.GET.get("task", ""))


def _needs(found: ReprocessTarget) -> Action:
    """To submit the spec: a supervisor is changed by it, unless the records are of files."""
    return Action.OPERATE if found.reader else Action.ADMINISTER


def _refused(request: PageRequest, context: dict[str, Any], error: HeadgateError) -> HttpResponse:
    """The page as it was, with what is wrong with the spec where it is wrong."""
    if isinstance(error, NotFound | NotAllowed):
        raise error
    faults = [{"pointer": f.pointer, "message": f.message} for f in error.errors]
    return refused(request, TEMPLATE, {**context, "faults": faults}, error)


def _shown(request: PageRequest, datasource: Datasource, found: ReprocessTarget, form: ReprocessForm) -> dict[str, Any]:
    return {
        **frame(request, datasource, "quarantine"),
        "found": found,
        "form": form,
        "faults": [],
        "described": get_cause(request.user, datasource, found.cause),
        "lines": [{"record": r, "payload": payload_of(r.payload), "error": r.error} for r in found.records[:SHOWN]],
        "may_try": may(request.user, Action.OPERATE, datasource.team),
        "may_submit": may(request.user, _needs(found), datasource.team) and (found.supervisor or found.reader),
        "asked": urlencode({"cause": found.cause, **({"task": found.reader.task.pk} if found.reader else {})}),
        "back": f"{reverse('frontend:datasource-quarantine', args=[datasource.name])}?cause={found.cause}",
    }


def _lines(tried: Tried) -> list[dict[str, Any]]:
    return [
        {
            "record": record,
            "payload": payload_of(record.payload),
            "outcome": sampled.outcome,
            "error": sampled.error,
            "row": "\n".join(json.dumps(row, indent=1, ensure_ascii=False) for row in sampled.stored_rows[:MOST_ROWS]),
        }
        for record, sampled in tried.shown
    ]


@require_POST
@page
def submit(request: PageRequest, name: str) -> HttpResponse:
    """The new version, and the replay: both, or neither."""
    datasource = get_datasource(request.user, name)
    found = _asked_for(request, datasource)
    require(request.user, _needs(found), datasource.team)
    form = ReprocessForm(request.POST, nonce=str(request.csp_nonce))
    context = _shown(request, datasource, found, form)
    if not form.is_valid():
        return render(request, TEMPLATE, context, status=400)
    upto = form.cleaned_data["upto"]
    upto = found.upto if upto is None else upto
    given = {"user": request.user, "datasource": datasource, "document": form.cleaned_data["document"]}
    try:
        if found.reader:
            choice = Choice(filter=QuarantineFilter(cause=found.cause), upto=upto)
            said, started = "", replay_changed(choice=choice, reader=found.reader, **given)
        else:
            supervisor, started = submit_and_replay(cause=found.cause, upto=upto, **given)
            said = f"Version {supervisor.version} of {supervisor.pk} was submitted; "
    except HeadgateError as error:
        return _refused(request, context, error)
    messages.success(request, f"{said}{started.records:,} records are being replayed with it.")
    return redirect("frontend:task", started.tasks[0].pk)
