"""A datasource's columns, and which of them are masked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.common.errors import HeadgateError, NotAllowed, NotFound
from controlplane.datasources.masking import TIME, masked_columns, set_masks
from controlplane.datasources.models import Datasource
from controlplane.segments.columns import case_conflicts
from controlplane.segments.selectors.columns import datasource_schema, mask_warnings
from controlplane.tasks.datasources import get_datasource
from controlplane.teams.permissions import Action, require
from controlplane.teams.roles import Role
from frontend.filters import ColumnFilter
from frontend.paging import numbered_page
from frontend.tables import Column, Shape
from frontend.views.common import PageRequest, error_text, page
from frontend.views.datasources import frame
from ingestion.specs.messages.newest_rows import columns_overlap

COLUMNS = Shape(
    "columns",
    (
        Column("name", "Name", sorts="place", fixed=True),
        Column("type", "Type", sorts="type"),
        Column("seen", "Seen by", sorts="masked"),
        Column("since", "New since (UTC)", sorts="since", descending_first=True),
        Column("types", "Types over time", sorts="changes", descending_first=True),
        Column("segments", "In segments", sorts="segments", number=True, descending_first=True),
    ),
    default="name",
    tie_breakers=("place",),
)
PER_PAGE = 100
ROLES = (Role.OPERATOR.value, Role.ADMIN.value)


@dataclass(frozen=True)
class ColumnRow:
    """A column of ``datasource_schema`` in the list, and the role from which on it is shown."""

    name: str
    type: str
    types: list[str]
    segments: int
    since: datetime | None
    history: list[dict[str, Any]]
    masked: str
    hidden_by: str = ""  # the mask of another name that hides it: of its field, or of the column that it is in

    @property
    def place(self) -> tuple[bool, str]:
        """By name, the time first."""
        return self.name != TIME, self.name

    @property
    def changes(self) -> int:
        """Of its type."""
        return len(self.types) - 1


@page
def columns(request: PageRequest, name: str) -> HttpResponse:
    """The columns of its segments, and those that are masked."""
    datasource = get_datasource(request.user, name)
    masks = {mask.column: mask.role for mask in masked_columns(datasource)}
    listed_columns = [_column_row(column, masks) for column in datasource_schema(datasource)]
    names = {column.name for column in listed_columns}
    filters, table = ColumnFilter(request.GET), COLUMNS.table_for(request.GET)
    search = filters.chosen("search")
    rows = table.arranged(column for column in listed_columns if search.lower() in column.name.lower())
    context = {
        **frame(request, datasource, "columns"),
        "filters": filters,
        "filtered": bool(search),
        "clear": reverse("frontend:datasource-columns", args=[name]),
        "table": table,
        "page": numbered_page(rows, request.GET.get("page"), PER_PAGE),
        "columns": listed_columns,
        "alike": case_conflicts(datasource),
        "absent": [(mask, masks[mask], _mask_effect(mask, names)) for mask in masks if mask not in names],
        "masks": masks,
        "time": TIME,
        "roles": ROLES,
    }
    return render(request, "datasources/columns.html", context)


def _column_row(column: dict[str, Any], masks: dict[str, str]) -> ColumnRow:
    """The mask that hides it, its own before those of other names, and the higher role first."""
    hiding = [name for name in masks if columns_overlap(name, column["name"])]
    hiding.sort(key=lambda name: (masks[name] != Role.ADMIN, name != column["name"]))
    if not hiding:
        return ColumnRow(**column, masked="")
    return ColumnRow(**column, masked=masks[hiding[0]], hidden_by="" if hiding[0] == column["name"] else hiding[0])


def _mask_effect(mask: str, names: set[str]) -> str:
    """What a mask does that names no column."""
    return " ".join(mask_warnings([mask], names)) or "Hides the columns whose names begin with it and a dot."


@require_POST
@page
def mask(request: PageRequest, name: str) -> HttpResponse:
    """Mask what the form says, and nothing else."""
    datasource = get_datasource(request.user, name)
    require(request.user, Action.ADMINISTER, datasource.team)
    chosen = dict(zip(request.POST.getlist("column"), request.POST.getlist("role"), strict=False))
    masks = {column: role for column, role in chosen.items() if column and role}
    try:
        _save_masks(request, datasource, masks)
    except (NotFound, NotAllowed):
        raise
    except HeadgateError as error:
        messages.error(request, error_text(error))
    return redirect(reverse("frontend:datasource-columns", args=[name]))


def _save_masks(request: PageRequest, datasource: Datasource, masks: dict[str, Any]) -> None:
    set_masks(user=request.user, datasource=datasource, masks=masks)
    count = "No column is" if not masks else "1 column is" if len(masks) == 1 else f"{len(masks)} columns are"
    messages.success(request, f"{count} masked now.")
    for warning in mask_warnings(masks, [column["name"] for column in datasource_schema(datasource)]):
        messages.warning(request, warning)
