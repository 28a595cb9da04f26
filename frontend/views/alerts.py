"""Alerts: what fires, rules, receivers, history and silences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.alerts import receivers as receiver_services
from controlplane.alerts import selectors, services
from controlplane.alerts.models import Alert, Receiver, Rule
from controlplane.alerts.rule_kinds import KINDS
from controlplane.alerts.selectors import AlertFilter, LastEvaluation
from controlplane.common.errors import HeadgateError, NotFound
from controlplane.datasources.selectors import find_datasource
from controlplane.teams.models import Team
from controlplane.teams.permissions import Action, may, require, require_in_any_team
from controlplane.teams.selectors import get_team
from frontend import alert_tables
from frontend.actions import PageAction
from frontend.alert_forms import HistoryFilter, ReceiverForm, RuleForm, SilenceForm
from frontend.paging import keyset_page, numbered_page
from frontend.team_scope import reach_of
from frontend.views.common import PageRequest, act, page, rest_address

LIST, RULES, RECEIVERS, SILENCES = (
    "frontend:alerts",
    "frontend:alert-rules",
    "frontend:alert-receivers",
    "frontend:alert-silences",
)
CRUMB = ("Alerts", LIST)


@page
def index(request: PageRequest) -> HttpResponse:
    """What fires, and what may come to; rules that are well are on their own page."""
    team = reach_of(request).team
    shown = selectors.list_alerts(request.user, AlertFilter(team=team)).exclude(state=Alert.State.OK)
    table = alert_tables.FIRING.table_for(request.GET)
    rows = numbered_page(shown.order_by(*table.ordering), request.GET.get("page"))
    operated = _teams_operated(request, list(rows))
    context = {"page": rows, "table": table, "operated": operated, "states": _states(request, team)}
    evaluation = selectors.last_evaluation(request.user, team)
    context |= {"evaluation": evaluation, "nothing": _nothing_fires(evaluation)}
    return _tab(request, "firing", "alerts/firing.html", context, rest_address("api:alerts", team=team))


def _nothing_fires(evaluation: LastEvaluation) -> str:
    if evaluation.is_overdue:
        return "No alerts were firing at the last evaluation"
    if evaluation.rules and evaluation.at is None:
        return "The rules have not been evaluated yet"
    return "No alerts are firing"


def _states(request: PageRequest, team: str) -> dict[str, int]:
    queryset = selectors.list_alerts(request.user, AlertFilter(team=team)).order_by().values_list("state", flat=True)
    return {state: queryset.filter(state=state).count() for state in Alert.State.values}


@require_POST
@page
def acknowledge(request: PageRequest, number: int) -> HttpResponse:
    """Somebody sees to it."""
    alert = selectors.get_alert(request.user, number)
    return act(
        request,
        lambda: services.acknowledge(user=request.user, alert=alert),
        f"{alert.rule.name} of {alert.subject} is acknowledged.",
        reverse(LIST),
    )


@page
def rules(request: PageRequest) -> HttpResponse:
    """All rules of the user's teams."""
    team = reach_of(request).team
    table = alert_tables.RULES.table_for(request.GET)
    queryset = selectors.list_rules(request.user, team, request.GET.get("datasource", "")).order_by(*table.ordering)
    context = {"page": numbered_page(queryset, request.GET.get("page")), "table": table, "kinds": KINDS}
    return _tab(request, "rules", "alerts/rules.html", context, rest_address("api:alert-rules", team=team))


@page
def new_rule(request: PageRequest) -> HttpResponse:
    """Make one, of the kind and for the datasource that the address names."""
    require_in_any_team(request.user, Action.ADMINISTER)
    kind = KINDS.get(request.GET.get("kind", ""), KINDS["unhealthy"])
    initial = {"team": reach_of(request).asked_team(request), "datasource": request.GET.get("datasource", "")}
    form = RuleForm(request.POST or None, user=request.user, kind=kind, initial=initial)
    kind_context = {"kinds": list(KINDS.values()), "kind": kind}
    context = {"form": form, **kind_context, "title": "New rule", "rest": rest_address("api:alert-rules")}

    def save() -> str:
        team_name = form.cleaned_data["team"]
        created = services.create_rule(user=request.user, team_name=team_name, kind=kind.code, **form.service_arguments)
        return f"The rule {created.name} was created. Headgate evaluates it every ten seconds."

    return _form(request, "alerts/rule_form.html", form, save, RULES, context)


@page
def rule(request: PageRequest, number: int) -> HttpResponse:
    """One of them, to be changed by admins; others look at it."""
    stored = selectors.get_rule(request.user, number)
    kind = KINDS[stored.kind]
    if request.method != "POST" and not may(request.user, Action.ADMINISTER, stored.team):
        return _show_rule(request, stored)
    require(request.user, Action.ADMINISTER, stored.team)
    form = RuleForm(request.POST or None, user=request.user, kind=kind, stored=stored)
    actions = [_deletion("rule", stored.name, "alert-rule-delete", number, "Its past events stay in the history.")]
    context = {"form": form, "kind": kind, "stored": stored, "title": stored.name, "actions": actions}
    context["rest"] = reverse("api:alert-rule", args=[number])

    def save() -> str:
        changed = services.change_rule(user=request.user, rule=stored, **form.service_arguments)
        return f"The rule {changed.name} is changed."

    return _form(request, "alerts/rule_form.html", form, save, RULES, context)


def _show_rule(request: PageRequest, stored: Rule) -> HttpResponse:
    kind = KINDS[stored.kind]
    context = {
        "rule": stored,
        "kind": kind,
        "params": [(param.label, stored.params.get(param.name, param.default)) for param in kind.params],
        "crumbs": [(CRUMB[0], reverse(CRUMB[1])), ("Rules", reverse(RULES))],
        "rest": reverse("api:alert-rule", args=[stored.pk]),
    }
    return render(request, "alerts/rule.html", context)


@page
def delete_rule(request: PageRequest, number: int) -> HttpResponse:
    """Ask, or do it."""
    stored = selectors.get_rule(request.user, number)
    require(request.user, Action.ADMINISTER, stored.team)
    action = _deletion("rule", stored.name, "alert-rule-delete", number, "Its past events stay in the history.")
    return _confirm_deletion(request, action, RULES, lambda: services.delete_rule(user=request.user, rule=stored))


@page
def receivers(request: PageRequest) -> HttpResponse:
    """Where messages go, and how each receiver does."""
    team, table = reach_of(request).team, alert_tables.RECEIVERS.table_for(request.GET)
    queryset = selectors.list_receivers(request.user, team).order_by(*table.ordering)
    rows = numbered_page(queryset, request.GET.get("page"))
    administered = {r.team_id for r in rows if may(request.user, Action.ADMINISTER, r.team)}
    context = {"page": rows, "table": table, "administered": administered, "public_url": settings.PUBLIC_URL}
    return _tab(request, "receivers", "alerts/receivers.html", context, rest_address("api:alert-receivers", team=team))


@page
def new_receiver(request: PageRequest) -> HttpResponse:
    """Make one, of the kind that the address names."""
    require_in_any_team(request.user, Action.ADMINISTER)
    kinds = dict(Receiver.Kinds.choices)
    kind = request.GET.get("kind", "") if request.GET.get("kind", "") in kinds else "email"
    initial = {"team": reach_of(request).asked_team(request)}
    form = ReceiverForm(request.POST or None, user=request.user, kind=kind, initial=initial)
    kind_context = {"kinds": Receiver.Kinds.choices, "kind": kind, "public_url": settings.PUBLIC_URL}
    context = {"form": form, **kind_context, "title": "New receiver", "rest": rest_address("api:alert-receivers")}

    def save() -> str:
        team_name = form.cleaned_data["team"]
        created = receiver_services.create_receiver(
            user=request.user, team_name=team_name, kind=kind, **form.service_arguments
        )
        return f"The receiver {created.name} was created. Send it a test message, then add it to rules."

    return _form(request, "alerts/receiver_form.html", form, save, RECEIVERS, context)


@page
def receiver(request: PageRequest, number: int) -> HttpResponse:
    """One of them, to be changed by admins."""
    stored = selectors.get_receiver(request.user, number)
    require(request.user, Action.ADMINISTER, stored.team)
    form = ReceiverForm(request.POST or None, user=request.user, kind=stored.kind, stored=stored)
    actions = [
        _deletion("receiver", stored.name, "alert-receiver-delete", number, "Headgate drops messages that wait for it.")
    ]
    context = {"form": form, "kind": stored.kind, "stored": stored, "title": stored.name, "actions": actions}
    context |= {"rest": reverse("api:alert-receiver", args=[number]), "public_url": settings.PUBLIC_URL}

    def save() -> str:
        changed = receiver_services.change_receiver(user=request.user, receiver=stored, **form.service_arguments)
        return f"The receiver {changed.name} is changed."

    return _form(request, "alerts/receiver_form.html", form, save, RECEIVERS, context)


@page
def delete_receiver(request: PageRequest, number: int) -> HttpResponse:
    """Ask, or do it."""
    stored = selectors.get_receiver(request.user, number)
    require(request.user, Action.ADMINISTER, stored.team)
    action = _deletion(
        "receiver", stored.name, "alert-receiver-delete", number, "Headgate drops messages that wait for it."
    )
    return _confirm_deletion(
        request, action, RECEIVERS, lambda: receiver_services.delete_receiver(user=request.user, receiver=stored)
    )


@require_POST
@page
def test(request: PageRequest, number: int) -> HttpResponse:
    """Send it a message that says that it is a test."""
    stored = selectors.get_receiver(request.user, number)
    require(request.user, Action.ADMINISTER, stored.team)
    try:
        outcome = receiver_services.test_receiver(user=request.user, receiver=stored)
    except HeadgateError as error:
        messages.error(request, error.detail)
    else:
        tell = messages.success if outcome.ok else messages.error
        tell(request, f"Test of {stored.name}: {outcome.text}")
    return redirect(RECEIVERS)


@page
def history(request: PageRequest) -> HttpResponse:
    """What rules said, and what became of the messages."""
    team, filters = reach_of(request).team, HistoryFilter(request.GET)
    criteria = AlertFilter(team=team, event=filters.chosen("event"), subject=filters.chosen("subject").strip())
    queryset = selectors.list_events(request.user, criteria)
    if filters.chosen("kind"):
        queryset = queryset.filter(kind=filters.chosen("kind"))
    table = alert_tables.HISTORY.table_for(request.GET)
    context = {
        "filters": filters,
        "filtered": any(request.GET.get(name) for name in filters.fields),
        "clear": reverse("frontend:alert-history"),
        "table": table,
        "page": keyset_page(queryset, table.order, request.GET.get("cursor")),
    }
    rest = rest_address("api:alert-history", team=team, event=criteria.event, subject=criteria.subject)
    return _tab(request, "history", "alerts/history.html", context, rest)


@page
def silences(request: PageRequest) -> HttpResponse:
    """Those that hold, and with ``ended`` those that are over."""
    team, ended = reach_of(request).team, bool(request.GET.get("ended"))
    table = alert_tables.SILENCES.table_for(request.GET)
    queryset = selectors.list_silences(request.user, team, ended=ended).order_by(*table.ordering)
    rows = numbered_page(queryset, request.GET.get("page"))
    context = {"page": rows, "table": table, "ended": ended, "operated": _teams_operated(request, list(rows))}
    return _tab(request, "silences", "alerts/silences.html", context, rest_address("api:alert-silences", team=team))


@page
def new_silence(request: PageRequest) -> HttpResponse:
    """Hold back messages of what the address names: a rule, a datasource, both, or the team."""
    scope, team = _silence_scope(request)
    require(request.user, Action.OPERATE, team)
    form = SilenceForm(request.POST or None)
    about = [f"the rule {scope['rule'].name}"] if scope["rule"] else []
    about += [f"the datasource {scope['datasource'].name}"] if scope["datasource"] else []
    scope_text = " and ".join(about) or "all rules"
    context = {"form": form, "title": "New silence", "about": f"For {scope_text} in team {team.name}."}

    def save() -> str:
        reason, ends_at = form.cleaned_data["reason"], form.ends_at
        services.silence(user=request.user, team=team, reason=reason, ends_at=ends_at, **scope)
        return "The silence has begun. Headgate sends these messages only after it ends."

    return _form(request, "alerts/silence_form.html", form, save, SILENCES, context)


def _silence_scope(request: PageRequest) -> tuple[dict[str, Any], Team]:
    """What is to be silent, and of which team."""
    number, name = request.GET.get("rule", ""), request.GET.get("datasource", "")
    if number and not (number.isascii() and number.isdigit()):
        raise NotFound("There is no such alert rule.")
    rule = selectors.get_rule(request.user, int(number)) if number else None
    datasource = find_datasource(request.user, name) if name else None
    if rule or datasource:
        return {"rule": rule, "datasource": datasource}, (rule or datasource).team  # type: ignore[union-attr]
    reach = reach_of(request)
    teams = reach.teams
    chosen = reach.asked_team(request) or (teams[0] if teams else "")
    return {"rule": None, "datasource": None}, get_team(request.user, chosen)


@require_POST
@page
def end_silence(request: PageRequest, number: int) -> HttpResponse:
    """Before its time."""
    silence = selectors.get_silence(request.user, number)
    done = "The silence has ended. Headgate sends the alerts that still fire."
    return act(request, lambda: services.end_silence(user=request.user, silence=silence), done, reverse(SILENCES))


def _tab(request: PageRequest, tab: str, template: str, context: dict[str, Any], rest: str) -> HttpResponse:
    return render(request, template, {**context, "tab": tab, "rest": rest})


def _teams_operated(request: PageRequest, rows: list[Any]) -> set[int]:
    teams = {row.team_id: row.team for row in rows}
    return {pk for pk, team in teams.items() if may(request.user, Action.OPERATE, team)}


def _form(
    request: PageRequest, template: str, form: Any, save: Callable[[], str], back: str, context: dict[str, Any]
) -> HttpResponse:
    """The form's page; saved and back to the list, or again with what is wrong."""
    context = {**context, "crumbs": [(CRUMB[0], reverse(CRUMB[1]))], "back": reverse(back)}
    if request.method != "POST":
        return render(request, template, context)
    status = 400
    if form.is_valid():
        try:
            done = save()
        except HeadgateError as error:
            if error.status not in (400, 409):
                raise
            form.place(error)
            status = error.status
        else:
            messages.success(request, done)
            return redirect(back)
    return render(request, template, context, status=status)


def _deletion(what: str, name: str, view: str, number: int, text: str) -> PageAction:
    url = reverse(f"frontend:{view}", args=[number])
    return PageAction("delete", "Delete", f"Delete the {what} {name}?", text, url, url, "danger")


def _confirm_deletion(request: PageRequest, action: PageAction, back: str, do: Callable[[], Any]) -> HttpResponse:
    if request.method == "POST":
        return act(request, do, "It is deleted.", reverse(back))
    crumbs = [(CRUMB[0], reverse(CRUMB[1]))]
    return render(request, "confirm.html", {"action": action, "back": reverse(back), "crumbs": crumbs})
