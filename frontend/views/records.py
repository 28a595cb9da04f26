"""Where is my record: from topic, partition and offset to what became of it."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render

from controlplane.common.errors import HeadgateError
from controlplane.segments.selectors import Fate, record_fate
from frontend.forms import RecordForm
from frontend.views.common import PageRequest, page, refused

TEMPLATE = "records/find.html"


@page
def find(request: PageRequest) -> HttpResponse:
    """The question, and the answer once it has been asked."""
    asked = any(request.GET.get(name) for name in ("topic", "partition", "offset"))
    form = RecordForm(request.GET if asked else None)
    if not asked:
        return render(request, TEMPLATE, {"form": form})
    if not form.is_valid():
        return render(request, TEMPLATE, {"form": form}, status=400)
    try:
        return render(request, TEMPLATE, {"form": form, "asked": form.cleaned_data, "fates": _fates(request, form)})
    except HeadgateError as error:
        return refused(request, TEMPLATE, {"form": form}, error)


def _fates(request: PageRequest, form: RecordForm) -> list[Fate]:
    given = form.cleaned_data
    return record_fate(
        request.user,
        topic=given["topic"],
        partition=given["partition"],
        offset=given["offset"],
        group=given["group"] or None,
    )
