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
from controlplane.retention.outlook import Step, outlook
from controlplane.retention.segment_selection import chosen
from controlplane.segments.marking import Amount, Chosen
from controlplane.tasks.datasources import get_datasource
from controlplane.teams.permissions import Action, require
from frontend.views.common import PageRequest, page, refused, rest_address

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
    def wanted(self) -> Step:
        """What to do; once the form is valid."""
        return Step(self.cleaned_data["step"])

    def chosen(self, datasource: Datasource) -> Chosen:
        """Which segments; once the form is valid. Raises ``InvalidInput``."""
        given = self.cleaned_data
        if given["scope"] == "everything":
            return chosen(datasource, everything=True)
        if given["scope"] == "ids":
            return chosen(datasource, segment_ids=given["ids"].split())
        versions = [v.strip() for v in given["versions"].split(",") if v.strip()]
        return chosen(datasource, interval=given["interval"].strip(), versions=versions or None)


@page
def mark(request: PageRequest, name: str) -> HttpResponse:
    """The question, what would change, and once that was seen the change."""
    datasource = get_datasource(request.user, name)
    require(request.user, Action.ADMINISTER, datasource.team)
    form = MarkForm(request.POST) if request.method == "POST" else MarkForm(initial=_asked(request))
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
    step = form.wanted
    try:
        segments = form.chosen(datasource)
        if "sure" not in request.POST:
            seen = outlook(user=request.user, datasource=datasource, chosen=segments, step=step)
            shown = {"seen": seen, "step": step.value, "button": BUTTONS[step]}
            return render(request, TEMPLATE, {**context, **shown})
        messages.success(request, _done(request, datasource, segments, step))
    except (NotFound, NotAllowed):
        raise
    except HeadgateError as error:
        return refused(request, TEMPLATE, context, error)
    return redirect(back)


def _asked(request: PageRequest) -> dict[str, str]:
    """What a link has filled in."""
    return {name: request.GET[name] for name in MarkForm.base_fields if name in request.GET}


def _done(request: PageRequest, datasource: Datasource, segments: Chosen, step: Step) -> str:
    if step == Step.MARK_UNUSED:
        amount = services.mark_unused(user=request.user, datasource=datasource, chosen=segments)
        return f"{_in_words(amount)} unused now."
    if step == Step.MARK_USED:
        restored = services.mark_used(user=request.user, datasource=datasource, chosen=segments)
        passed = sum(restored.passed_over.values())
        more = f" {passed:,} could not be marked used." if passed else ""
        return f"{_in_words(restored.amount)} in use again.{more}"
    amount = services.kill(user=request.user, datasource=datasource, chosen=segments, dry_run=False)
    return f"{_in_words(amount)} deleted for good. The files are deleted when no reader can still use them."


def _in_words(amount: Amount) -> str:
    return f"1 segment ({amount.rows:,} rows) is" if amount.segments == 1 else _many(amount)


def _many(amount: Amount) -> str:
    return f"{amount.segments:,} segments ({amount.rows:,} rows) are"
