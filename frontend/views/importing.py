"""Taking over the supervisors of a Druid cluster: what each would become, and doing it."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.common.errors import InvalidInput
from controlplane.loading.druid_import import CHANGE, CREATE, Wanted, import_supervisors
from frontend.import_form import ImportForm
from frontend.views.common import PageRequest, page, refused

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
    sure, seen = "sure" in request.POST, form.cleaned_data
    # What was read of a file stands in the form afterwards, to be seen and changed.
    again = ImportForm(initial={name: seen.get(name) for name in form.fields}, user=request.user)
    context = {**context, "form": again, "seen": seen}
    try:
        listed = _ticked(seen["listed"], request.POST.getlist("ticked")) if sure else seen["listed"]
        return render(request, TEMPLATE, {**context, **_told(request, listed, form.wanted(dry_run=not sure))})
    except InvalidInput as error:
        return refused(request, TEMPLATE, context, error)


def _ticked(listed: Any, ids: list[str]) -> list[Any]:
    """Those of the list. Raises ``InvalidInput`` for none."""
    entries = listed if isinstance(listed, list) else []
    found = [entry for entry in entries if isinstance(entry, dict) and entry.get("id") in ids]
    if not found:
        raise InvalidInput("Tick at least one supervisor.")
    return found


def _told(request: PageRequest, listed: Any, wanted: Wanted) -> dict[str, Any]:
    verdicts = list(import_supervisors(user=request.user, listed=listed, wanted=wanted))
    possible = [v.id for v in verdicts if v.verdict in (CREATE, CHANGE) and not v.applied]
    return {
        "verdicts": verdicts,
        "possible": possible,
        "done": not wanted.dry_run,
        "applied": sum(verdict.applied for verdict in verdicts),
    }
