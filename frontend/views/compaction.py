"""A datasource's compaction: how far it is, what is next, and why an interval is not merged."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render

from controlplane.compaction import configs, selectors
from controlplane.tasks.datasources import get_datasource
from controlplane.tasks.residents import running
from frontend.paging import keyset_page
from frontend.views.common import PageRequest, page
from frontend.views.datasources import frame


@page
def compaction(request: PageRequest, name: str) -> HttpResponse:
    """What waits, the most fragmented intervals, and the jobs, newest first."""
    datasource = get_datasource(request.user, name)
    context = {
        **frame(request, datasource, "compaction"),
        "standing": selectors.standing(datasource),
        "target_rows": (configs.policy_of(datasource) or configs.Policy()).limits.target_rows,
        "application": running(),
        "intervals": selectors.fragmented(datasource),
        "page": keyset_page(selectors.list_jobs(datasource), ["-created_at", "-id"], request.GET.get("cursor")),
    }
    return render(request, "datasources/compaction.html", context)
