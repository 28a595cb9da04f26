"""A datasource deleted whole, once its name was typed."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from controlplane.common.errors import Conflict, InvalidInput
from controlplane.retention.datasource_deletion import delete_datasource, preview_deletion
from controlplane.tasks.datasources import get_datasource
from frontend.views.common import PageRequest, page, render_problem, rest_address

TEMPLATE = "datasources/delete.html"


class NameForm(forms.Form):
    """The datasource's name, so that nobody deletes another one."""

    name = forms.CharField(
        max_length=200,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off", "spellcheck": "false"}),
    )


@page
def delete(request: PageRequest, name: str) -> HttpResponse:
    """What would be lost, who reads into it, and the question."""
    datasource = get_datasource(request.user, name)
    form = NameForm(request.POST or None)
    context = {
        "datasource": datasource,
        "seen": preview_deletion(request.user, datasource),
        "form": form,
        "rest": rest_address("api:datasource", name),
        "crumbs": [
            ("Datasources", reverse("frontend:datasources")),
            (name, reverse("frontend:datasource", args=[name])),
        ],
    }
    if request.method != "POST":
        return render(request, TEMPLATE, context)
    if not form.is_valid():
        return render(request, TEMPLATE, context, status=400)
    try:
        amount = delete_datasource(user=request.user, datasource=datasource, name=form.cleaned_data["name"])
    except (Conflict, InvalidInput) as error:
        return render_problem(request, TEMPLATE, context, error)
    messages.success(request, f"The datasource {name} is deleted, with {amount.segments:,} segments.")
    return redirect("frontend:datasources")
