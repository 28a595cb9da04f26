"""A datasource's compaction: how far it is, what is next, why an interval is not merged, and what settings would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.common.errors import InvalidInput
from controlplane.compaction import configs, selectors
from controlplane.datasources.models import Datasource
from controlplane.segments.selectors.lineage import made_by_task
from controlplane.tasks.datasources import get_datasource
from controlplane.tasks.residents import running
from controlplane.teams.permissions import Action, require
from frontend.filters import MergeFilter
from frontend.paging import keyset_page
from frontend.tables import Column, Shape
from frontend.views.common import PageRequest, act, page
from frontend.views.datasources import frame

MAX_ROWS = 2**31 - 1
NOT_SORTABLE = "Too many merges to sort by this. Filter them first"
MERGES = Shape(
    "merges",
    (
        Column("planned", "Planned", sorts="created_at", descending_first=True, fixed=True),
        Column("interval", "Interval (UTC)", unsortable_reason=NOT_SORTABLE),
        Column("state", "State", unsortable_reason=NOT_SORTABLE),
        Column("segments", "Segments", number=True, unsortable_reason=NOT_SORTABLE),
        Column("rows", "Rows", number=True, unsortable_reason=NOT_SORTABLE),
        Column("size", "Size", number=True, unsortable_reason=NOT_SORTABLE),
        Column("took", "Took", unsortable_reason=NOT_SORTABLE),
    ),
    default="-planned",
    tie_breakers=("-id",),
)


class PolicyForm(forms.Form):
    """Settings to be tried out."""

    rows = forms.IntegerField(
        label="Rows per segment (maxRowsPerSegment)",
        min_value=1,
        max_value=MAX_ROWS,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
    )
    skip = forms.CharField(
        label="Skip newest (skipOffsetFromLatest)",
        max_length=60,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off", "spellcheck": "false"}),
    )

    @classmethod
    def of(cls, datasource: Datasource, entered: Mapping[str, Any] | None = None, initial: Any = None) -> PolicyForm:
        """Without a number of rows where the config's ``partitionsSpec`` says it."""
        form = cls(entered, initial=initial)
        if configs.changed_config(datasource, max_rows=None, skip_offset=None).dividing:
            del form.fields["rows"]
        return form

    def config(self, datasource: Datasource) -> configs.CompactionConfig:
        """What is set of the datasource with these; once the form is valid. Raises ``InvalidInput``."""
        cleaned = self.cleaned_data
        return configs.changed_config(datasource, max_rows=cleaned.get("rows"), skip_offset=cleaned["skip"].strip())


@page
def compaction(request: PageRequest, name: str) -> HttpResponse:
    """What waits, the most fragmented intervals, and the jobs, newest first; what is tried stands in the address."""
    datasource = get_datasource(request.user, name)
    filters, table = MergeFilter(request.GET), MERGES.table_for(request.GET)
    queryset = selectors.list_jobs(datasource, state=filters.chosen("state")).shown_to(request.user)
    jobs = keyset_page(queryset, table.order, request.GET.get("cursor"))
    initial = _current_settings(datasource)
    is_tried = any(name in request.GET for name in PolicyForm.base_fields)
    form = PolicyForm.of(datasource, {**initial, **request.GET.dict()} if is_tried else None, initial)
    policy = configs.policy_of(datasource) or configs.Policy()
    status, intervals = selectors.status_of(datasource), selectors.list_fragmented(datasource)
    context = {
        **frame(request, datasource, "compaction"),
        "status": status,
        "health": selectors.health_of(status, intervals),
        "target_rows": policy.limits.target_rows,
        "partitions": policy.partitioning and policy.partitioning.document,
        "application": running(),
        "intervals": intervals,
        "filters": filters,
        "filtered": bool(filters.chosen("state")),
        "clear": reverse("frontend:datasource-compaction", args=[name]),
        "table": table,
        "page": jobs,
        "made": made_by_task([job.pk for job in jobs.rows]),
        "form": form,
        **_simulate(datasource, form),
    }
    return render(request, "datasources/compaction.html", context)


def _current_settings(datasource: Datasource) -> dict[str, Any]:
    config = configs.changed_config(datasource, max_rows=None, skip_offset=None)
    return {"rows": config.target_rows, "skip": config.skipOffsetFromLatest}


def _simulate(datasource: Datasource, form: PolicyForm) -> dict[str, Any]:
    if not form.is_valid():
        return {}
    try:
        policy = configs.Policy.of(form.config(datasource))
    except InvalidInput as error:
        form.add_error("skip", error.detail)
        return {}
    return {
        "simulated": selectors.status_of(datasource, policy),
        "would": selectors.list_fragmented(datasource, simulated=policy),
    }


@require_POST
@page
def apply(request: PageRequest, name: str) -> HttpResponse:
    """What was tried holds from now on."""
    datasource = get_datasource(request.user, name)
    require(request.user, Action.OPERATE, datasource.team)
    form = PolicyForm.of(datasource, request.POST.dict())
    if not form.is_valid():
        raise InvalidInput("Enter both settings: rows per segment, and skip newest.")
    config = form.config(datasource)
    back = reverse("frontend:datasource-compaction", args=[name])
    done = f"Compaction of {name} is on with these settings."
    return act(
        request,
        lambda: configs.set_config(user=request.user, datasource=datasource, config=config, comment="tried out before"),
        done,
        back,
    )
