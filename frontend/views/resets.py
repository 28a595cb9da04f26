"""Resets of stored offsets: a position is shown by partition before it is stored."""

from __future__ import annotations

import json

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.common.errors import HeadgateError, NotAllowed, NotFound
from controlplane.supervisors import offset_reset, position_reset
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import get_supervisor
from frontend.forms import ResetForm, ShownReset
from frontend.views.common import PageRequest, act, error_text, page
from frontend.views.supervisors import ask_again, url_of
from ingestion.specs.kafka.positions import Position

SHOWN = 500  # partitions in a preview's table


@require_POST
@page
def reset(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """Move stored offsets, or forget them all. A position is shown first."""
    supervisor = get_supervisor(request.user, supervisor_id)
    if "topics" in request.POST:
        return _reset_as_shown(request, supervisor)
    form = ResetForm(request.POST)
    if not form.is_valid():
        return ask_again(request, supervisor, "reset", form)
    offsets, position = form.cleaned_data["offsets"], form.cleaned_data["position"]
    if position:
        return _preview(request, supervisor, position)

    def move() -> None:
        if offsets:
            offset_reset.reset_offsets(user=request.user, supervisor=supervisor, offsets=offsets)
        else:
            offset_reset.reset(user=request.user, supervisor=supervisor)

    which = f"of {len(offsets)} partition{'s' if len(offsets) != 1 else ''}" if offsets else "of all partitions"
    return act(request, move, f"The stored offsets {which} are reset.", url_of(supervisor))


def _preview(request: PageRequest, supervisor: Supervisor, position: Position) -> HttpResponse:
    back = url_of(supervisor)
    try:
        plan = position_reset.plan_reset(user=request.user, supervisor=supervisor, position=position)
    except (NotFound, NotAllowed):
        raise
    except HeadgateError as error:
        messages.error(request, error_text(error))
        return redirect(back)
    rows = [(topic, partition) for topic in plan.topics for partition in topic.partitions]
    context = {
        "supervisor": supervisor,
        "plan": plan,
        "rows": rows[:SHOWN],
        "more": max(0, len(rows) - SHOWN),
        "form": ShownReset(initial={"position": str(position), "topics": json.dumps(plan.offsets)}),
        "back": back,
        "crumbs": [("Supervisors", reverse("frontend:supervisors")), (supervisor.id, back)],
    }
    return render(request, "supervisors/reset.html", context)


def _reset_as_shown(request: PageRequest, supervisor: Supervisor) -> HttpResponse:
    form = ShownReset(request.POST)
    if not form.is_valid():
        messages.error(request, "The offsets were not understood. Nothing was changed.")
        return redirect(url_of(supervisor))
    position, offsets = form.cleaned_data["position"], form.cleaned_data["topics"]
    return act(
        request,
        lambda: position_reset.reset_to(user=request.user, supervisor=supervisor, position=position, offsets=offsets),
        f"The stored offsets are reset to {position}.",
        url_of(supervisor),
    )
