"""SQL in the browser: the editor, saved queries, and what one has run. Statements run through REST."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from controlplane.common.errors import HeadgateError, NotFound
from controlplane.common.text import storable
from controlplane.datasources.models import Datasource
from controlplane.query.history import KEPT, past_queries
from controlplane.query.models import SavedQuery
from controlplane.query.saved import (
    change_saved,
    delete_saved,
    get_saved,
    may_edit,
    require_edit,
    save_query,
    saved_queries,
)
from controlplane.query.sys_tables import sys_columns
from controlplane.query.tables import find_tables
from controlplane.teams.models import User
from frontend.actions import PageAction
from frontend.paging import keyset_page
from frontend.query_forms import SavedQueryFilter, SavedQueryForm, StatementForm
from frontend.tables import Column, Shape
from frontend.team_scope import reach_of
from frontend.views.common import PageRequest, act, page, rest_address
from ingestion.specs.messages.sql import MAX_STATEMENT, SYS, SqlTableUse

MAX_TABLES = 1000  # that are offered without a beginning of their name
MAX_NAMED = 20  # tables whose columns one request asks for
SAVED = Shape(
    "saved-queries",
    (
        Column("name", "Name", sorts="name", fixed=True),
        Column("shared", "Shared with"),
        Column("owner", "Owner"),
        Column("changed", "Changed (UTC)", sorts="updated_at", descending_first=True),
        Column("statement", "Statement"),
        Column("deeds", "Actions", has_hidden_head=True, fixed=True),
    ),
    default="name",
    tie_breakers=("id",),
)
PAST = Shape(
    "past-queries",
    (
        Column("statement", "Statement", fixed=True),
        Column("state", "End"),
        Column("rows", "Rows", number=True),
        Column("took", "Duration (s)", number=True),
        Column("started", "Started (UTC)", sorts="id", descending_first=True),
    ),
    default="-started",
    tie_breakers=("id",),
)


@page
def editor(request: PageRequest) -> HttpResponse:
    """The editor, with the statement that the address has or names."""
    stored = get_saved(request.user, _number(request, "saved")) if request.GET.get("saved") else None
    statement = stored.statement if stored else _past(request) or request.GET.get("statement", "")[:MAX_STATEMENT]
    context = {
        "form": StatementForm(initial={"statement": statement}, nonce=str(request.csp_nonce)),
        "stored": stored,
        "may_edit": stored is not None and may_edit(request.user, stored),
        "can_read": Datasource.objects.visible_to(request.user).present().exists(),
    }
    return render(request, "query/editor.html", {**context, "tab": "editor"})


def _past(request: PageRequest) -> str:
    if not request.GET.get("past"):
        return ""
    past = past_queries(request.user).filter(pk=_number(request, "past")).first()
    if past is None:
        raise NotFound("This query is not in your history any more.")
    return past.statement


def _number(request: PageRequest, name: str) -> int:
    text = request.GET[name]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFound(f"{name} is not the number of a query.")
    return int(text)


@page
def words(request: PageRequest) -> HttpResponse:
    """For completion: tables whose name begins with ``search`` and those of ``sys``; or columns of each ``table``."""
    if names := request.GET.getlist("table")[:MAX_NAMED]:
        return JsonResponse({"columns": {name: _columns(request.user, name) for name in names}})
    search = request.GET.get("search", "")
    found = Datasource.objects.visible_to(request.user).present().select_related("team").order_by("name")
    found = found.filter(name__istartswith=search) if storable(search) else found.none()
    tables = [{"team": d.team.name, "name": d.name} for d in found[: MAX_TABLES + 1]]
    sys = {name: [{"name": c, "type": kind} for c, kind in columns] for name, columns in sys_columns().items()}
    return JsonResponse({"tables": tables[:MAX_TABLES], "cut": len(tables) > MAX_TABLES, SYS: sys})


def _columns(user: User, name: str) -> list[dict[str, str]]:
    if not storable(name):
        return []
    try:
        [table] = find_tables(user, [SqlTableUse(name=name)])
    except NotFound:
        return []
    return [{"name": c.name, "type": "masked" if c.masked else c.type} for c in table.columns]


@page
def saved(request: PageRequest) -> HttpResponse:
    """One's own, and those that teams share; of the chosen team those alone."""
    filters, table, team = SavedQueryFilter(request.GET), SAVED.table_for(request.GET), reach_of(request).team
    search = filters.chosen("search")
    rows = keyset_page(saved_queries(request.user, search, team), table.order, request.GET.get("cursor"))
    context = {
        "page": rows,
        "table": table,
        "filters": filters,
        "filtered": bool(search or team),
        "clear": reverse("frontend:saved-queries"),
        "editable": {row.pk for row in rows.rows if may_edit(request.user, row)},
        "rest": rest_address("api:all-saved-sql", search=search, team=team),
    }
    return render(request, "query/saved.html", {**context, "tab": "saved"})


@page
def history(request: PageRequest) -> HttpResponse:
    """What one has run, the last first."""
    table = PAST.table_for(request.GET)
    rows = keyset_page(past_queries(request.user), table.order, request.GET.get("cursor"))
    context = {"page": rows, "table": table, "kept": KEPT, "rest": rest_address("api:sql-history")}
    return render(request, "query/history.html", {**context, "tab": "history"})


@page
def new(request: PageRequest) -> HttpResponse:
    """Save a statement: the editor sends it, the form asks for the rest."""
    begins = "name" not in request.POST
    form = SavedQueryForm(
        None if begins else request.POST,
        user=request.user,
        initial={"statement": request.POST.get("statement", "")},
        nonce=str(request.csp_nonce),
    )
    return _saved_form(request, form, None, {"title": "New saved query", "begins": begins})


@page
def change(request: PageRequest, number: int) -> HttpResponse:
    """Change one; who may not only sees it."""
    stored = get_saved(request.user, number)
    if not may_edit(request.user, stored):
        return redirect(f"{reverse('frontend:query')}?saved={number}")
    form = SavedQueryForm(request.POST or None, user=request.user, stored=stored, nonce=str(request.csp_nonce))
    context = {"title": stored.name, "begins": request.method != "POST", "actions": [_deletion(stored)]}
    return _saved_form(request, form, stored, {**context, "rest": reverse("api:saved-sql", args=[number])})


def _saved_form(
    request: PageRequest, form: SavedQueryForm, stored: SavedQuery | None, context: dict[str, Any]
) -> HttpResponse:
    context |= {"form": form, "back": reverse("frontend:saved-queries"), "crumbs": _crumbs()}
    if context["begins"]:
        return render(request, "query/saved_form.html", context)
    status = 400
    if form.is_valid():
        fields = {name: form.cleaned_data[name] for name in ("name", "description", "team", "statement")}
        try:
            if stored is None:
                stored = save_query(user=request.user, **fields)
            else:
                change_saved(user=request.user, saved=stored, **fields)
        except HeadgateError as error:
            if error.status not in (400, 409):
                raise
            form.place(error)
            status = error.status
        else:
            messages.success(request, f"The query {stored.name} is saved.")
            return redirect(f"{reverse('frontend:query')}?saved={stored.pk}")
    return render(request, "query/saved_form.html", context, status=status)


@page
def delete(request: PageRequest, number: int) -> HttpResponse:
    """Ask, or do it."""
    stored, back = get_saved(request.user, number), reverse("frontend:saved-queries")
    if request.method == "POST":
        return act(request, lambda: delete_saved(user=request.user, saved=stored), "The query is deleted.", back)
    require_edit(request.user, stored)
    return render(request, "confirm.html", {"action": _deletion(stored), "back": back, "crumbs": _crumbs()})


def _deletion(stored: SavedQuery) -> PageAction:
    url = reverse("frontend:saved-query-delete", args=[stored.pk])
    text = f"The members of team {stored.team.name} lose it too." if stored.team else "Only you see it."
    return PageAction("delete", "Delete", f"Delete the saved query {stored.name}?", text, url, url, "danger")


def _crumbs() -> list[tuple[str, str]]:
    return [("Query", reverse("frontend:query")), ("Saved queries", reverse("frontend:saved-queries"))]
