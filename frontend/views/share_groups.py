"""A supervisor's share group: members, leases, coverage, configuration."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.common.errors import InvalidInput, NotFound, Unavailable
from controlplane.supervisors import dead_letter_imports, share_group
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import get_supervisor
from controlplane.teams.permissions import Action, may
from frontend.coverage_drawing import WORDS, drawing_of
from frontend.tables import Column, Shape
from frontend.views.common import PageRequest, act, page
from frontend.views.supervisors import frame

MEMBERS = Shape(
    "share-group-members",
    (
        Column("indexer", "Indexer", sorts="number", number=True, fixed=True),
        Column("state", "State", sorts="state"),
        Column("consumers", "Consumers", sorts="consumers", number=True, descending_first=True),
        Column("held", "In flight", sorts="in_flight", number=True, descending_first=True),
        Column("partitions", "Partitions now", sorts="partitions"),
        Column("heard", "Last heartbeat", sorts="last_heartbeat_at", descending_first=True),
    ),
    default="indexer",
    tie_breakers=("number",),
)


@page
def detail(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """All but the configuration, which is asked of Kafka once the page is there."""
    supervisor = get_supervisor(request.user, supervisor_id)
    try:
        group = share_group.share_group(supervisor)
    except InvalidInput as error:
        raise NotFound(error.detail) from error
    table = MEMBERS.table_for(request.GET)
    drawings = [drawing_of(partition) for partition in group.coverage]
    states = {state for drawing in drawings for state, *_ in drawing.counts}
    context = {
        **frame(request, supervisor, "share-group"),
        "found": group,
        "table": table,
        "members": table.arranged(group.members),
        "drawings": drawings,
        "legend": [(state, words) for state, words in WORDS.items() if state in states],
        "deliveries": _bars(group.leases.deliveries),
        "imports": dead_letter_imports.import_statuses(supervisor),
    }
    return render(request, "supervisors/share_group.html", context)


def _bars(deliveries: dict[int, int]) -> list[tuple[int, int, int]]:
    """Delivery count, records, and the bar's length in percent of the longest."""
    most = max(deliveries.values(), default=0)
    return [(count, records, max(1, records * 100 // most)) for count, records in sorted(deliveries.items())]


@page
def config(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """What the broker has against the spec: a part of the page, loaded on its own since it asks Kafka."""
    supervisor = get_supervisor(request.user, supervisor_id)
    context = {
        "supervisor": supervisor,
        "may_operate": may(request.user, Action.OPERATE, supervisor.datasource.team),
        **_configuration(supervisor),
    }
    return render(request, "supervisors/_group_config.html", context)


def _configuration(supervisor: Supervisor) -> dict[str, object]:
    try:
        return {"configuration": share_group.group_configuration(supervisor)}
    except InvalidInput as error:
        raise NotFound(error.detail) from error
    except Unavailable as error:
        return {"problem": error}


@require_POST
@page
def apply(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """Set on the broker what the spec says."""
    supervisor = get_supervisor(request.user, supervisor_id)
    return act(
        request,
        lambda: share_group.apply_group_config(user=request.user, supervisor=supervisor),
        "The broker's configuration now matches the spec.",
        reverse("frontend:share-group", args=[supervisor.id]),
    )


@require_POST
@page
def import_dead_letters(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """Begin an import of the topic that the form names."""
    supervisor = get_supervisor(request.user, supervisor_id)
    topic = request.POST.get("topic", "").strip()
    return act(
        request,
        lambda: dead_letter_imports.start_import(user=request.user, supervisor=supervisor, topic=topic),
        "The import has started. A worker reads the topic.",
        reverse("frontend:share-group", args=[supervisor.id]),
    )
