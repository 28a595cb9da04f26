"""Load and drop rules of a datasource, or of the site: changed as rows, looked at, then saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.retention import rule_runner
from controlplane.retention.rule_runner import RulePreview
from controlplane.retention.rules import Rule, in_words, read_rules
from controlplane.tasks.datasources import get_datasource
from controlplane.teams.permissions import Action, require, require_site_admin
from frontend.rule_rows import KINDS, TAKES, changed, digest, rows_of, rules_in, sent_rows
from frontend.views.common import PageRequest, page, rest_address

CHANGES_SHOWN = 10
DATASOURCES_SHOWN = 50


class CommentForm(forms.Form):
    """Why the rules are changed."""

    comment = forms.CharField(
        label="Comment for the history",
        max_length=500,
        required=False,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )


@dataclass(frozen=True)
class _Edited:
    """Whose rules they are."""

    datasource: Datasource | None  # None: the site's
    template: str
    back: str
    done: str
    context: dict[str, Any]
    look: Callable[[list[Rule]], dict[str, Any]]  # what goes with them, for the template


RULES_OF_SITE = "/druid/coordinator/v1/rules/_default"  # where Druid keeps them


@page
def rules(request: PageRequest, name: str) -> HttpResponse:
    """A datasource's own."""
    datasource = get_datasource(request.user, name)
    require(request.user, Action.ADMINISTER, datasource.team)
    back = reverse("frontend:datasource-retention", args=[name])
    crumbs = [("Datasources", reverse("frontend:datasources")), (name, reverse("frontend:datasource", args=[name]))]
    context = {
        "datasource": datasource,
        "crumbs": [*crumbs, ("Retention", back)],
        "site": [(in_words(rule), rule.loads) for rule in rule_runner.rules_of(None)],
        "rest": rest_address("api:rules", name),
    }
    done = f"The rules of {name} are saved. The next round, within a minute, applies them."
    return _edit(request, _Edited(datasource, "datasources/rules.html", back, done, context, _looked(datasource)))


def _looked(datasource: Datasource) -> Callable[[list[Rule]], dict[str, Any]]:
    return lambda found: {"going": rule_runner.preview(datasource, found)}


@page
def site_rules(request: PageRequest) -> HttpResponse:
    """The site's, which are asked after every datasource's own."""
    require_site_admin(request.user)
    here = reverse("frontend:site-rules")
    done = "The site's rules are saved. The next round, within a minute, applies them."

    def look(found: list[Rule]) -> dict[str, Any]:
        by_datasource = rule_runner.preview_site(request.user, found)
        return {
            "going": _sum([going for _, going in by_datasource]),
            "by_datasource": by_datasource[:DATASOURCES_SHOWN],
            "others": max(0, len(by_datasource) - DATASOURCES_SHOWN),
        }

    return _edit(request, _Edited(None, "site/rules.html", here, done, {"rest": RULES_OF_SITE}, look))


def _sum(found: list[RulePreview]) -> RulePreview:
    if not found:
        return RulePreview()
    amount, intervals = found[0].amount, found[0].intervals
    for going in found[1:]:
        amount, intervals = amount + going.amount, intervals + going.intervals
    return RulePreview(
        amount,
        intervals,
        min(g.oldest for g in found if g.oldest is not None),
        max(g.newest for g in found if g.newest is not None),
    )


def _edit(request: PageRequest, edited: _Edited) -> HttpResponse:
    comment = CommentForm(request.POST or None)
    asked = request.POST.get("do", "") if request.method == "POST" else ""
    rows = sent_rows(request.POST) if request.method == "POST" else rows_of(rule_runner.rules_of(edited.datasource))
    context = {
        **edited.context,
        "comment": comment,
        "kinds": KINDS,
        **TAKES,
        "back": edited.back,
        "changes": _changes(edited.datasource),
    }
    if asked not in ("preview", "save"):
        return render(request, edited.template, {**context, "rows": changed(rows, asked)})
    try:
        found = rules_in(rows)
    except InvalidInput as error:
        return render(request, edited.template, {**context, "rows": rows, "problem": error}, status=400)
    if not comment.is_valid():
        return render(request, edited.template, {**context, "rows": rows}, status=400)
    seen = digest(found)
    if asked == "save" and request.POST.get("seen") == seen:
        rule_runner.set_rules(
            user=request.user, datasource=edited.datasource, rules=found, comment=comment.cleaned_data["comment"]
        )
        messages.success(request, edited.done)
        return redirect(edited.back)
    # Nobody saves what was not looked at: a rule that was changed after the preview is shown once more.
    again = asked == "save"
    return render(
        request, edited.template, {**context, "rows": rows, "seen": seen, "again": again, **edited.look(found)}
    )


def _changes(datasource: Datasource | None) -> list[dict[str, Any]]:
    """The newest: who set what, and why."""
    return [
        {"change": change, "rules": [in_words(rule) for rule in read_rules(change.rules)]}
        for change in rule_runner.list_changes(datasource)[:CHANGES_SHOWN]
    ]
