"""Alarms among a datasource's events: the question before somebody says that they see to one, and the answer."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.common.errors import NotFound
from controlplane.sources import events as source_events
from controlplane.sources.events import get_event
from controlplane.sources.models import SourceEvent
from controlplane.tasks.datasources import get_datasource
from controlplane.teams.permissions import Action, require
from frontend.actions import PageAction
from frontend.views.common import PageRequest, act, page


@page
def acknowledge(request: PageRequest, name: str, number: int) -> HttpResponse:
    """What it is about, and the button; then back to the events."""
    datasource = get_datasource(request.user, name)
    event = get_event(request.user, datasource, number)
    events = reverse("frontend:datasource-events", args=[name])
    if request.method == "POST":
        done = f"The alarm of {name} is acknowledged."
        return act(request, lambda: source_events.acknowledge(user=request.user, event=event), done, events)
    require(request.user, Action.OPERATE, datasource.team)
    if not event.calls:
        raise NotFound("There is nothing left to acknowledge here.")
    crumbs = [
        ("Datasources", reverse("frontend:datasources")),
        (name, reverse("frontend:datasource", args=[name])),
        ("Events", events),
    ]
    return render(request, "confirm.html", {"action": _question(event, request.path), "back": events, "crumbs": crumbs})


def _question(event: SourceEvent, url: str) -> PageAction:
    return PageAction(
        name="acknowledge",
        label="Acknowledge",
        question=f"Acknowledge this alarm? {event.get_kind_display()}",
        text=f"{event.detail} Home then hides it and older alarms of its kind from everyone. The event stays.",
        url=url,
        confirm_url=url,
    )
