"""A supervisor's backfills: how far they are, and what a skip would leave to one, shown before it is done."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from controlplane.common.errors import HeadgateError, NotAllowed, NotFound
from controlplane.supervisors.backfills import (
    BackfillPlan,
    backfill_statuses,
    can_skip,
    fill_again,
    skip_and_fill,
)
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import get_supervisor
from frontend.views.common import PageRequest, act, error_text, page
from frontend.views.supervisors import frame

SHOWN = 500  # partitions in a preview's table


@require_http_methods(["GET", "HEAD", "POST"])
@page
def backfills(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """List them; with ``skip`` in the address Kafka is asked what a skip would do. A POST begins one."""
    supervisor = get_supervisor(request.user, supervisor_id)
    url = reverse("frontend:supervisor-backfills", args=[supervisor.pk])
    if request.method == "POST":
        return _begin(request, supervisor, url)
    plan = None
    if "skip" in request.GET:
        try:
            plan = skip_and_fill(user=request.user, supervisor=supervisor, dry_run=True)
        except (NotFound, NotAllowed):
            raise
        except HeadgateError as error:
            messages.error(request, error_text(error))
            return redirect(url)
    context = {
        **frame(request, supervisor, "backfills"),
        "backfills": backfill_statuses(supervisor),
        "can_skip": can_skip(supervisor),
        "plan": plan,
        "rows": plan.partitions[:SHOWN] if plan else [],
        "more": max(0, len(plan.partitions) - SHOWN) if plan else 0,
    }
    return render(request, "supervisors/backfills.html", context)


def _begin(request: PageRequest, supervisor: Supervisor, url: str) -> HttpResponse:
    def begin() -> BackfillPlan:
        again = request.POST.get("again")
        if again is None:
            return skip_and_fill(user=request.user, supervisor=supervisor)
        backfill = get_supervisor(request.user, again)
        return fill_again(user=request.user, backfill=backfill)

    return act(request, begin, "A backfill begins. It reads the offsets that are not settled.", url)
