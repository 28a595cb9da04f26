"""A datasource's retention: its rules and what they would take, unused segments, and when their files are deleted."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from controlplane.retention import rule_runner
from controlplane.retention.rules import describe_rule
from controlplane.retention.storage_summary import list_removals, unused_segments
from controlplane.segments import killing
from controlplane.segments.killing import deletion_time
from controlplane.segments.snapshot_leases import leased
from controlplane.tasks.datasources import get_datasource
from frontend.paging import keyset_page
from frontend.tables import Column, Shape
from frontend.views.common import PageRequest, page
from frontend.views.datasources import frame

REMOVALS_SHOWN = 10
NOT_SORTABLE = "Too many segments to sort by this"
UNUSED = Shape(
    "unused-segments",
    (
        Column("interval", "Interval (UTC)", fixed=True, unsortable_reason=NOT_SORTABLE),
        Column("rows", "Rows", number=True, unsortable_reason=NOT_SORTABLE),
        Column("size", "Size", number=True, unsortable_reason=NOT_SORTABLE),
        Column("since", "Unused since", sorts="unused_at"),
        Column("why", "Why", unsortable_reason=NOT_SORTABLE),
        Column("goes", "File deleted on"),
        Column("again", "Mark used", fixed=True, has_hidden_head=True),
    ),
    default="since",
    tie_breakers=("id",),
)


@page
def retention(request: PageRequest, name: str) -> HttpResponse:
    """The rules in force, recent removals, and unused segments, those first whose files are deleted first."""
    datasource = get_datasource(request.user, name)
    segments = unused_segments(request.user, datasource)
    shown = frame(request, datasource, "retention")
    table = (UNUSED if shown["may_administer"] else UNUSED.without_columns("again")).table_for(request.GET)
    waiting = keyset_page(segments, table.order, request.GET.get("cursor"))
    context = {
        **shown,
        "table": table,
        "rules": [(describe_rule(rule), rule.loads) for rule in rule_runner.rules_of(datasource)],
        "site": [(describe_rule(rule), rule.loads) for rule in rule_runner.rules_of(None)],
        "going": rule_runner.preview(datasource, rule_runner.rules_of(datasource)),
        "replaced": killing.amount_of(segments.filter(replaced_by__isnull=False)),
        "removed": killing.amount_of(segments.filter(replaced_by=None)),
        "due": killing.amount_of(segments.filter(killing.due_filter(timezone.now())).exclude(leased())),
        "removals": list_removals(datasource)[:REMOVALS_SHOWN],
        "page": waiting,
        "lines": [(segment, deletion_time(segment)) for segment in waiting.rows],
    }
    return render(request, "datasources/retention.html", context)
