"""A supervisor's backfills and gaps. What a skip or a backfill would read is shown before it begins."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from controlplane.common.errors import HeadgateError, InvalidInput, NotAllowed, NotFound
from controlplane.supervisors.backfills import (
    BackfillPlan,
    backfill_statuses,
    can_fill,
    can_skip,
    fill,
    fill_again,
    skip_and_fill,
)
from controlplane.supervisors.known_gaps import KnownGap, known_gaps
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import get_supervisor
from frontend.fill_form import FillForm, IndexersForm
from frontend.views.common import PageRequest, act, page
from frontend.views.supervisors import frame

SHOWN = 500  # rows of a table
LONGEST_LINK = 4000  # characters
TEMPLATE = "supervisors/backfills.html"
IDS = "fill_%s"  # the questions of the page's head have fields of the same names


@require_http_methods(["GET", "HEAD", "POST"])
@page
def backfills(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """List them, and the gaps. Kafka is asked what a backfill would read; a POST without ``preview`` begins it."""
    supervisor = get_supervisor(request.user, supervisor_id)
    asked = request.POST if request.method == "POST" else request.GET
    form = FillForm(asked if any(name in asked for name in FillForm.base_fields) else None, auto_id=IDS)
    if request.method == "POST" and "preview" not in asked:
        return _begin(request, supervisor, form)
    context = {**_listed(request, supervisor), "form": form}
    if form.is_bound and not form.is_valid():
        return render(request, TEMPLATE, context, status=400)
    if not form.is_bound and "skip" not in asked and "again" not in asked:
        return render(request, TEMPLATE, context)
    try:
        plan = _plan(request, supervisor, form, asked, dry_run=True)
    except (NotFound, NotAllowed):
        raise
    except HeadgateError as error:
        return render(request, TEMPLATE, {**context, "problem": error})
    return render(request, TEMPLATE, {**context, **_preview(plan, form, asked)})


def _listed(request: PageRequest, supervisor: Supervisor) -> dict[str, Any]:
    gaps = known_gaps(supervisor)
    return {
        **frame(request, supervisor, "backfills"),
        "here": _url(supervisor),
        "backfills": backfill_statuses(supervisor),
        "gaps": gaps[:SHOWN],
        "more_gaps": max(0, len(gaps) - SHOWN),
        "all_gaps": _link(gaps),
        "can_skip": can_skip(supervisor),
        "can_fill": can_fill(supervisor),
    }


def _link(gaps: list[KnownGap]) -> str:
    """All of them in one line a partition, as far as an address has room: what is settled between is not read again."""
    spans: dict[int, tuple[int, int]] = {}
    for gap in gaps:  # in order
        spans[gap.partition] = (spans.get(gap.partition, (gap.start, 0))[0], gap.end)
    text = _lines([(partition, *span) for partition, span in spans.items()])
    return text if len(gaps) > 1 and len(text) <= LONGEST_LINK else ""


def _lines(ranges: list[tuple[int, int, int]]) -> str:
    return "\n".join(f"{partition}: {start}-{end}" for partition, start, end in ranges)


def _plan(request: PageRequest, supervisor: Supervisor, form: FillForm, asked: QueryDict, **how: Any) -> BackfillPlan:
    """``form``: bound and valid where offsets are given."""
    if "again" in asked:
        return fill_again(user=request.user, backfill=get_supervisor(request.user, str(asked["again"])), **how)
    if form.is_bound:
        return fill(user=request.user, supervisor=supervisor, wanted=form.wanted, **how)
    return skip_and_fill(user=request.user, supervisor=supervisor, **how)


def _preview(plan: BackfillPlan, form: FillForm, asked: QueryDict) -> dict[str, Any]:
    return {
        "plan": plan,
        "rows": plan.partitions[:SHOWN],
        "more": max(0, len(plan.partitions) - SHOWN),
        "skips": not form.is_bound and "again" not in asked,
        "again": asked.get("again", ""),
        "offsets": _lines([(p.partition, p.start, p.end) for p in plan.partitions]) if form.is_bound else "",
        "indexers": IndexersForm(initial={"task_count": plan.task_count}, auto_id=IDS),
    }


def _begin(request: PageRequest, supervisor: Supervisor, form: FillForm) -> HttpResponse:
    indexers = IndexersForm(request.POST)

    def begin() -> BackfillPlan:
        if not indexers.is_valid() or (form.is_bound and not form.is_valid()):
            raise InvalidInput("The offsets or the number of indexers were not understood. Nothing was changed.")
        task_count = indexers.cleaned_data["task_count"]
        return _plan(request, supervisor, form, request.POST, task_count=task_count)

    done = "A backfill begins. It reads the offsets that are not settled."
    return act(request, begin, done, _url(supervisor))


def _url(supervisor: Supervisor) -> str:
    return reverse("frontend:supervisor-backfills", args=[supervisor.pk])
