"""Segments marked unused, used again, or deleted for good from a page: what would change is shown first."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from controlplane.common.errors import HeadgateError, NotAllowed, NotFound
from controlplane.datasources.models import Datasource
from controlplane.retention import services
from controlplane.retention.retention_preview import Step, preview_step
from controlplane.retention.segment_selection import select_segments
from controlplane.segments.marking import Amount, SegmentSelection
from controlplane.tasks.datasources import get_datasource
from controlplane.teams.permissions import Action, require
from frontend.views.common import PageRequest, page, render_problem, rest_address

TEMPLATE = "datasources/mark.html"
STEPS = (
    (Step.MARK_UNUSED, "Mark unused"),
    (Step.MARK_USED, "Mark used"),
    (Step.KILL, "Delete unused segments for good"),
)
BUTTONS = {
    Step.MARK_UNUSED: "Mark unused",
    Step.MARK_USED: "Mark used",
    Step.KILL: "Delete for good",
}
_TEXT = {"class": "form-control", "autocomplete": "off", "spellcheck": "false"}


class MarkForm(forms.Form):
    """Which segments, and what is to become of them."""

    step = forms.ChoiceField(
        label="Action",
        choices=[(step.value, words) for step, words in STEPS],
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    scope = forms.ChoiceField(
        label="Segments",
        choices=[
            ("interval", "Within an interval"),
            ("ids", "By id"),
            ("everything", "All of the datasource"),
        ],
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    interval = forms.CharField(
        label="Interval (UTC), such as 2025-06-01/2025-07-01",
        required=False,
        max_length=100,
        widget=forms.TextInput(attrs={**_TEXT, "placeholder": "2025-06-01/2025-07-01"}),
    )
    versions = forms.CharField(
        label="Versions, comma-separated (empty: all)",
        required=False,
        max_length=2000,
        widget=forms.TextInput(attrs=_TEXT),
    )
    ids = forms.CharField(
        label="Ids, one per line",
        required=False,
        max_length=1_000_000,
        widget=forms.Textarea(attrs={**_TEXT, "class": "form-control font-monospace", "rows": 3}),
    )

    @property
    def chosen_step(self) -> Step:
        """What to do; once the form is valid."""
        return Step(self.cleaned_data["step"])

    def chosen(self, datasource: Datasource) -> SegmentSelection:
        """Which segments; once the form is valid. Raises ``InvalidInput``."""
        cleaned = self.cleaned_data
        if cleaned["scope"] == "everything":
            return select_segments(datasource, everything=True)
        if cleaned["scope"] == "ids":
            return select_segments(datasource, segment_ids=cleaned["ids"].split())
        versions = [v.strip() for v in cleaned["versions"].split(",") if v.strip()]
        return select_segments(datasource, interval=cleaned["interval"].strip(), versions=versions or None)


@page
def mark(request: PageRequest, name: str) -> HttpResponse:
    """The question, what would change, and once that was seen the change."""
    datasource = get_datasource(request.user, name)
    require(request.user, Action.ADMINISTER, datasource.team)
    form = MarkForm(request.POST) if request.method == "POST" else MarkForm(initial=_initial_values(request))
    back = reverse("frontend:datasource-retention", args=[name])
    crumbs = [("Datasources", reverse("frontend:datasources")), (name, reverse("frontend:datasource", args=[name]))]
    context: dict[str, Any] = {
        "datasource": datasource,
        "crumbs": [*crumbs, ("Retention", back)],
        "form": form,
        "back": back,
        "rest": rest_address("api:segments-unused", name),
    }
    if request.method != "POST":
        return render(request, TEMPLATE, context)
    if not form.is_valid():
        return render(request, TEMPLATE, context, status=400)
    step = form.chosen_step
    try:
        segments = form.chosen(datasource)
        if "sure" not in request.POST:
            effects = preview_step(user=request.user, datasource=datasource, chosen=segments, step=step)
            shown = {"seen": effects, "step": step.value, "button": BUTTONS[step]}
            return render(request, TEMPLATE, {**context, **shown})
        messages.success(request, _apply_step(request, datasource, segments, step))
    except (NotFound, NotAllowed):
        raise
    except HeadgateError as error:
        return render_problem(request, TEMPLATE, context, error)
    return redirect(back)


def _initial_values(request: PageRequest) -> dict[str, str]:
    """What a link has filled in."""
    return {name: request.GET[name] for name in MarkForm.base_fields if name in request.GET}


def _apply_step(request: PageRequest, datasource: Datasource, segments: SegmentSelection, step: Step) -> str:
    if step == Step.MARK_UNUSED:
        amount = services.mark_unused(user=request.user, datasource=datasource, chosen=segments)
        return f"{_amount_text(amount)} unused now."
    if step == Step.MARK_USED:
        restored = services.mark_used(user=request.user, datasource=datasource, chosen=segments)
        passed = sum(restored.passed_over.values())
        more = f" {passed:,} could not be marked used." if passed else ""
        return f"{_amount_text(restored.amount)} in use again.{more}"
    amount = services.kill(user=request.user, datasource=datasource, chosen=segments, dry_run=False)
    return f"{_amount_text(amount)} deleted for good. The files are deleted when no reader can still use them."


def _amount_text(amount: Amount) -> str:
    return f"1 segment ({amount.rows:,} rows) is" if amount.segments == 1 else _plural_text(amount)


def _plural_text(amount: Amount) -> str:
    return f"{amount.segments:,} segments ({amount.rows:,} rows) are"
