"""A datasource's columns, and which of them are masked."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.common.errors import HeadgateError, NotAllowed, NotFound
from controlplane.datasources.masking import TIME, masked_columns, set_masks
from controlplane.datasources.models import Datasource
from controlplane.segments.selectors import datasource_schema
from controlplane.tasks.datasources import get_datasource
from controlplane.teams.models import Role
from controlplane.teams.permissions import Action, require
from frontend.views.common import PageRequest, page, told
from frontend.views.datasources import frame

ROLES = (Role.OPERATOR.value, Role.ADMIN.value)


@page
def columns(request: PageRequest, name: str) -> HttpResponse:
    """The columns of its segments, and those that are masked."""
    datasource = get_datasource(request.user, name)
    masks = {mask.column: mask.role for mask in masked_columns(datasource)}
    known = datasource_schema(datasource)
    for column in known:
        column["masked"] = masks.get(column["name"], "")
    there = {column["name"] for column in known}
    context = {
        **frame(request, datasource, "columns"),
        "columns": known,
        "absent": [(column, role) for column, role in masks.items() if column not in there],
        "masks": masks,
        "time": TIME,
        "roles": ROLES,
    }
    return render(request, "datasources/columns.html", context)


@require_POST
@page
def mask(request: PageRequest, name: str) -> HttpResponse:
    """Mask what the form says, and nothing else."""
    datasource = get_datasource(request.user, name)
    require(request.user, Action.ADMINISTER, datasource.team)
    chosen = dict(zip(request.POST.getlist("column"), request.POST.getlist("role"), strict=False))
    masks = {column: role for column, role in chosen.items() if column and role}
    try:
        _set(request, datasource, masks)
    except (NotFound, NotAllowed):
        raise
    except HeadgateError as error:
        messages.error(request, told(error))
    return redirect(reverse("frontend:datasource-columns", args=[name]))


def _set(request: PageRequest, datasource: Datasource, masks: dict[str, Any]) -> None:
    set_masks(user=request.user, datasource=datasource, masks=masks)
    count = "No column is" if not masks else "1 column is" if len(masks) == 1 else f"{len(masks)} columns are"
    messages.success(request, f"{count} masked now.")
