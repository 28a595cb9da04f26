"""Taking over the supervisors of a Druid cluster: what each would become, and doing it."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.common.errors import InvalidInput
from controlplane.loading.druid_import import CHANGE, CREATE, ImportOptions, import_supervisors
from frontend.import_form import ImportForm
from frontend.views.common import PageRequest, page, render_problem

TEMPLATE = "supervisors/import.html"


@page
def import_page(request: PageRequest) -> HttpResponse:
    """The form; what its list would become; with ``sure``, what became of those that were ticked."""
    posted = request.method == "POST"
    form = ImportForm(*((request.POST, request.FILES) if posted else ()), user=request.user)
    context = {"form": form, "crumbs": [("Supervisors", reverse("frontend:supervisors"))]}
    if not posted:
        return render(request, TEMPLATE, context)
    if not form.is_valid():
        return render(request, TEMPLATE, context, status=400)
    sure, sent = "sure" in request.POST, form.cleaned_data
    # What was read of a file stands in the form afterwards, to be seen and changed.
    filled_form = ImportForm(initial={name: sent.get(name) for name in form.fields}, user=request.user)
    context = {**context, "form": filled_form, "seen": sent}
    try:
        listed = _ticked(sent["listed"], request.POST.getlist("ticked")) if sure else sent["listed"]
        return render(request, TEMPLATE, {**context, **_import(request, listed, form.options(dry_run=not sure))})
    except InvalidInput as error:
        return render_problem(request, TEMPLATE, context, error)


def _ticked(listed: Any, ids: list[str]) -> list[Any]:
    """Those of the list. Raises ``InvalidInput`` for none."""
    entries = listed if isinstance(listed, list) else []
    ticked = [entry for entry in entries if isinstance(entry, dict) and entry.get("id") in ids]
    if not ticked:
        raise InvalidInput("Tick at least one supervisor.")
    return ticked


def _import(request: PageRequest, listed: Any, options: ImportOptions) -> dict[str, Any]:
    verdicts = list(import_supervisors(user=request.user, listed=listed, options=options))
    possible = [v.id for v in verdicts if v.verdict in (CREATE, CHANGE) and not v.applied]
    return {
        "verdicts": verdicts,
        "possible": possible,
        "done": not options.dry_run,
        "applied": sum(verdict.applied for verdict in verdicts),
    }
