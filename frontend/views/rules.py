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
from controlplane.retention.rules import Rule, describe_rule, read_rules
from controlplane.tasks.datasources import get_datasource
from controlplane.teams.permissions import Action, require, require_site_admin
from frontend.rule_rows import KINDS, TAKES, apply_button, digest, rows_of, rules_in, sent_rows
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
class _RuleEditor:
    """Whose rules they are."""

    datasource: Datasource | None  # None: the site's
    template: str
    back: str
    done: str
    context: dict[str, Any]
    make_context: Callable[[list[Rule]], dict[str, Any]]  # what goes with them, for the template


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
        "site": [(describe_rule(rule), rule.loads) for rule in rule_runner.rules_of(None)],
        "rest": rest_address("api:rules", name),
    }
    done = f"The rules of {name} are saved. The next run, within a minute, applies them."
    return _edit(
        request, _RuleEditor(datasource, "datasources/rules.html", back, done, context, _preview_of(datasource))
    )


def _preview_of(datasource: Datasource) -> Callable[[list[Rule]], dict[str, Any]]:
    return lambda changed_rules: {"going": rule_runner.preview(datasource, changed_rules)}


@page
def site_rules(request: PageRequest) -> HttpResponse:
    """The site's, which are asked after every datasource's own."""
    require_site_admin(request.user)
    back = reverse("frontend:site-rules")
    done = "The site's rules are saved. The next run, within a minute, applies them."

    def preview(changed_rules: list[Rule]) -> dict[str, Any]:
        by_datasource = rule_runner.preview_site(request.user, changed_rules)
        return {
            "going": _sum([going for _, going in by_datasource]),
            "by_datasource": by_datasource[:DATASOURCES_SHOWN],
            "others": max(0, len(by_datasource) - DATASOURCES_SHOWN),
        }

    return _edit(request, _RuleEditor(None, "site/rules.html", back, done, {"rest": RULES_OF_SITE}, preview))


def _sum(previews: list[RulePreview]) -> RulePreview:
    if not previews:
        return RulePreview()
    amount, intervals = previews[0].amount, previews[0].intervals
    for going in previews[1:]:
        amount, intervals = amount + going.amount, intervals + going.intervals
    return RulePreview(
        amount,
        intervals,
        min(g.oldest for g in previews if g.oldest is not None),
        max(g.newest for g in previews if g.newest is not None),
    )


def _edit(request: PageRequest, editor: _RuleEditor) -> HttpResponse:
    comment = CommentForm(request.POST or None)
    button = request.POST.get("do", "") if request.method == "POST" else ""
    rows = sent_rows(request.POST) if request.method == "POST" else rows_of(rule_runner.rules_of(editor.datasource))
    context = {
        **editor.context,
        "comment": comment,
        "kinds": KINDS,
        **TAKES,
        "back": editor.back,
        "changes": _changes(editor.datasource),
    }
    if button not in ("preview", "save"):
        return render(request, editor.template, {**context, "rows": apply_button(rows, button)})
    try:
        edited_rules = rules_in(rows)
    except InvalidInput as error:
        return render(request, editor.template, {**context, "rows": rows, "problem": error}, status=400)
    if not comment.is_valid():
        return render(request, editor.template, {**context, "rows": rows}, status=400)
    rules_digest = digest(edited_rules)
    if button == "save" and request.POST.get("seen") == rules_digest:
        rule_runner.set_rules(
            user=request.user, datasource=editor.datasource, rules=edited_rules, comment=comment.cleaned_data["comment"]
        )
        messages.success(request, editor.done)
        return redirect(editor.back)
    # Nobody saves what was not looked at: a rule that was changed after the preview is shown once more.
    is_stale = button == "save"
    return render(
        request,
        editor.template,
        {**context, "rows": rows, "seen": rules_digest, "again": is_stale, **editor.make_context(edited_rules)},
    )


def _changes(datasource: Datasource | None) -> list[dict[str, Any]]:
    """The newest: who set what, and why."""
    return [
        {"change": change, "rules": [describe_rule(rule) for rule in read_rules(change.rules)]}
        for change in rule_runner.list_changes(datasource)[:CHANGES_SHOWN]
    ]
