"""Connections: the list, one with those who use it, and the forms that make and change them."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.common.errors import Conflict, HeadgateError, InvalidInput
from controlplane.connections import connection_tests, services
from controlplane.connections.models import Connection
from controlplane.connections.probe import NeededRights
from controlplane.connections.probe_report import ConnectionReport
from controlplane.connections.selectors import get_connection, list_connections
from controlplane.supervisors.connections import delete_connection, hand_off_supervisors, use_counts, uses_of
from controlplane.teams.permissions import Action, may, require, require_in_any_team
from controlplane.teams.selectors import get_team
from frontend.actions import ConnectionActions
from frontend.connection_forms import FORMS, ConnectionForm
from frontend.filters import ConnectionFilter
from frontend.paging import numbered_page
from frontend.tables import Column, Shape
from frontend.team_scope import reach_of
from frontend.views.common import PageRequest, act, page, rest_address
from ingestion.specs.inputs.connection import Kind

LIST = "frontend:connections"
TABLE = Shape(
    "connections",
    (
        Column("name", "Connection", sorts="name", fixed=True),
        Column("kind", "Kind", sorts="kind"),
        Column("team", "Team", sorts="team_name"),
        Column("addresses", "Addresses"),
        Column("uses", "Used by", number=True),
        Column("changed", "Changed", sorts="changed_at", descending_first=True),
    ),
    default="team",
    tie_breakers=("team_name", "name"),
)


@page
def index(request: PageRequest) -> HttpResponse:
    """All the user may see."""
    filters, table = ConnectionFilter(request.GET), TABLE.table_for(request.GET)
    filter_values = {name: filters.chosen(name) for name in ("search", "kind")} | {"team": reach_of(request).team}
    rows = numbered_page(
        list_connections(request.user, **filter_values).order_by(*table.order), request.GET.get("page")
    )
    context = {
        "filters": filters,
        "filtered": bool(filter_values["search"] or filter_values["kind"]),
        "clear": reverse(LIST),
        "table": table,
        "page": rows,
        "uses": use_counts(rows),
        "rest": rest_address("api:connections", **filter_values),
    }
    return render(request, "connections/list.html", context)


@page
def detail(request: PageRequest, team: str, name: str) -> HttpResponse:
    """What it is, what it was last changed to, and who uses it."""
    connection = get_connection(request.user, team, name)
    return render(request, "connections/detail.html", _detail(request, connection))


@require_POST
@page
def test(request: PageRequest, team: str, name: str) -> HttpResponse:
    """Try it; the verdict stands on its page, or alone for htmx."""
    connection = get_connection(request.user, team, name)
    targets = NeededRights(*(request.POST.get(field, "").strip() for field in ("topic", "group")))
    verdict = connection_tests.try_connection(user=request.user, connection=connection, wanted=targets)
    if request.htmx:
        return render(request, "connections/_test_report.html", {"verdict": verdict})
    return render(request, "connections/detail.html", {**_detail(request, connection), "verdict": verdict})


@page
def new(request: PageRequest) -> HttpResponse:
    """Make one, of the kind that the address names."""
    require_in_any_team(request.user, Action.ADMINISTER)
    form_type = FORMS.get(_kind(request), FORMS[Kind.KAFKA])
    form = form_type(request.POST or None, user=request.user, initial={"team": reach_of(request).asked_team(request)})
    return _form(request, form)


@page
def change(request: PageRequest, team: str, name: str) -> HttpResponse:
    """Give it other properties."""
    connection = get_connection(request.user, team, name)
    require(request.user, Action.ADMINISTER, connection.team)
    form_type = FORMS[connection.typed_kind]
    form = form_type(
        request.POST or None, user=request.user, stored=connection, initial=form_type.values_of(connection)
    )
    return _form(request, form)


@require_POST
@page
def delete(request: PageRequest, team: str, name: str) -> HttpResponse:
    """Delete one that nobody uses."""
    connection = get_connection(request.user, team, name)
    try:
        delete_connection(user=request.user, connection=connection)
    except Conflict as error:
        messages.error(request, error.detail)
        return redirect("frontend:connection", team, name)
    messages.success(request, f"The connection {name} is deleted.")
    return redirect(LIST)


@require_POST
@page
def restart(request: PageRequest, team: str, name: str) -> HttpResponse:
    """Have those who use it hand over now."""
    connection = get_connection(request.user, team, name)
    done = "The supervisors that use it hand off to new tasks with its current properties."
    back = reverse("frontend:connection", args=[team, name])
    return act(request, lambda: hand_off_supervisors(user=request.user, connection=connection), done, back)


@page
def confirm(request: PageRequest, team: str, name: str, action: str) -> HttpResponse:
    """The question before an action, as a page of its own: for browsers without scripts."""
    connection = get_connection(request.user, team, name)
    chosen = ConnectionActions.for_user(request.user, connection).get(action)
    if chosen is None:
        raise Http404("There is nothing to confirm.")
    back = reverse("frontend:connection", args=[team, name])
    crumbs = [("Connections", reverse(LIST)), (name, back)]
    return render(request, "confirm.html", {"action": chosen, "back": back, "crumbs": crumbs})


def frame(
    request: PageRequest, connection: Connection, tab: str, part: str = "connection", *args: str, **query: str
) -> dict[str, Any]:
    """What every page of a connection gets. ``part``: the REST address of what it shows, its ``args``, ``query``."""
    actions = ConnectionActions.for_user(request.user, connection)
    return {
        "connection": connection,
        "about": f"{connection.get_kind_display()} at {', '.join(connection.addresses)}, team {connection.team.name}",
        "rest": rest_address(f"api:{part}", connection.team.name, connection.name, *args, **query),
        "crumbs": [("Connections", reverse(LIST))],
        "tab": tab,
        "actions": list(actions.values()),
        "may_administer": may(request.user, Action.ADMINISTER, connection.team),
        "may_operate": may(request.user, Action.OPERATE, connection.team),
    }


def _detail(request: PageRequest, connection: Connection) -> dict[str, Any]:
    shown = dict(connection.properties)
    return {**frame(request, connection, "overview"), "uses": uses_of(connection), "shown": sorted(shown.items())}


def _kind(request: PageRequest) -> Kind:
    name = request.GET.get("kind", "")
    return Kind(name) if name in set(Kind) else Kind.KAFKA


def _form(request: PageRequest, form: ConnectionForm) -> HttpResponse:
    kinds = [(kind.value, Connection.Kinds(kind.value).label, kind is form.KIND) for kind in Kind]
    crumbs = [("Connections", reverse(LIST))]
    if form.stored is not None:
        crumbs.append(
            (form.stored.name, reverse("frontend:connection", args=[form.stored.team.name, form.stored.name]))
        )
    title = f"Change {form.stored.name}" if form.stored else "New connection"
    context: dict[str, Any] = {
        "form": form,
        "connection": form.stored,
        "kinds": kinds,
        "crumbs": crumbs,
        "title": title,
        "rest": _rest_url(form.stored),
    }
    if request.method != "POST":
        return render(request, "connections/form.html", context)
    if not form.is_valid():
        return _render_again(request, context)
    try:
        if "test" in request.POST:
            return _test_draft(request, form, context)
        saved = _save(request, form)
    except InvalidInput as error:
        form.place(error)
        return _render_again(request, context)
    except HeadgateError as error:
        form.add_error(None, error.detail)
        return _render_again(request, context, error.status)
    return redirect("frontend:connection", saved.team.name, saved.name)


def _rest_url(stored: Connection | None) -> str:
    """The one that is changed, or the list that a new one comes into."""
    return rest_address("api:connection", stored.team.name, stored.name) if stored else rest_address("api:connections")


def _render_again(request: PageRequest, context: dict[str, Any], status: int = 400) -> HttpResponse:
    if request.htmx:
        return render(request, "connections/_test_report.html", context)  # a part is swapped in only with 200
    return render(request, "connections/form.html", context, status=status)


def _test_draft(request: PageRequest, form: ConnectionForm, context: dict[str, Any]) -> HttpResponse:
    team = form.stored.team if form.stored else get_team(request.user, form.cleaned_data["team"])
    verdict: ConnectionReport = connection_tests.try_draft(
        user=request.user, team=team, kind=form.KIND, properties=form.properties, like=form.stored
    )
    part = {**context, "verdict": verdict}
    return render(request, "connections/_test_report.html" if request.htmx else "connections/form.html", part)


def _save(request: PageRequest, form: ConnectionForm) -> Connection:
    description = form.cleaned_data["description"]
    if form.stored is None:
        created = services.create_connection(
            user=request.user,
            team_name=form.cleaned_data["team"],
            name=form.cleaned_data["name"],
            kind=form.KIND,
            properties=form.properties,
            description=description,
        )
        messages.success(
            request, f"The connection {created.name} was created. Specs of team {created.team.name} can now use it."
        )
        return created
    changed = services.change_connection(
        user=request.user, connection=form.stored, properties=form.properties, description=description
    )
    count = len([use for use in uses_of(changed) if use.kind == "supervisor" and not use.suspended])
    messages.success(request, _change_message(changed, count))
    return changed


def _change_message(connection: Connection, count: int) -> str:
    if not count:
        return f"The connection {connection.name} is changed."
    whom = "1 supervisor uses the change from its" if count == 1 else f"{count} supervisors use the change from their"
    return f"The connection {connection.name} is changed. {whom} next task on. Restart to apply it now."
