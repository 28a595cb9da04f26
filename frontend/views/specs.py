"""The forms that take a spec: a task to run once, a supervisor to keep running."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from controlplane.common.errors import HeadgateError
from controlplane.supervisors.selectors import get_supervisor, versions
from controlplane.supervisors.services import submit_supervisor
from controlplane.tasks.checking import read_spec
from controlplane.tasks.selectors import get_task
from controlplane.tasks.services import submit_task
from frontend.examples import example
from frontend.forms import SpecForm
from frontend.specjson import spec_text
from frontend.views.common import PageRequest, page, refused
from ingestion.specs import parse_supervisor_spec, parse_task_spec

TEMPLATE = "specs/new.html"
# A second task needs an id of its own, and only a supervisor can be suspended.
_OF_ONE_RUN = frozenset({"id", "suspended"})


@dataclass(frozen=True)
class _Kind:
    """What differs between the two forms."""

    title: str
    change_title: str
    verb: str
    done: str
    list_name: str
    page_name: str
    parse: Callable[[Any], Any]
    submit: Callable[..., Any]


TASK = _Kind(
    "Submit a task",
    "Submit a task again",
    "Submit task",
    "Task submitted.",
    "tasks",
    "task",
    parse_task_spec,
    submit_task,
)
SUPERVISOR = _Kind(
    "Submit a supervisor",
    "Change a supervisor's spec",
    "Submit supervisor",
    "Supervisor submitted.",
    "supervisors",
    "supervisor",
    parse_supervisor_spec,
    submit_supervisor,
)


@page
def new_task(request: PageRequest) -> HttpResponse:
    """A task submitted by hand; with ``from`` filled with an earlier one's spec."""
    source = request.GET.get("from")
    if not source:
        return _new(request, TASK)
    task = get_task(request.user, source)
    again = {name: value for name, value in task.spec.items() if name not in _OF_ONE_RUN}
    return _new(request, TASK, again, hides_secrets=bool(task.secrets))


@page
def new_supervisor(request: PageRequest) -> HttpResponse:
    """A new supervisor; with ``from`` a change of that one's spec."""
    source = request.GET.get("from")
    if not source:
        return _new(request, SUPERVISOR)
    latest = versions(get_supervisor(request.user, source)).first()
    if latest is None:
        raise Http404("This supervisor has no spec.")
    return _new(request, SUPERVISOR, latest.spec, hides_secrets=bool(latest.secrets))


def _new(
    request: PageRequest, kind: _Kind, start: dict[str, Any] | None = None, hides_secrets: bool = False
) -> HttpResponse:
    source = request.GET.get("from", "")
    initial = {"document": spec_text(start or example())}
    form = SpecForm(request.POST or None, user=request.user, initial=initial, nonce=str(request.csp_nonce))
    context = {
        "kind": kind,
        "form": form,
        "list_url": reverse(f"frontend:{kind.list_name}"),
        "source": source,
        "source_url": reverse(f"frontend:{kind.page_name}", args=[source]) if source else "",
        "hides_secrets": hides_secrets,
        "faults": [],
    }
    if request.method != "POST":
        return render(request, TEMPLATE, context)
    if not form.is_valid():
        return render(request, TEMPLATE, context, status=400)
    try:
        return _checked(request, kind, form, context) if "check" in request.POST else _submitted(request, kind, form)
    except HeadgateError as error:
        faults = [{"pointer": f.pointer, "message": f.message} for f in error.errors]
        return refused(request, TEMPLATE, {**context, "faults": faults}, error)


def _checked(request: PageRequest, kind: _Kind, form: SpecForm, context: dict[str, Any]) -> HttpResponse:
    """Read the spec and change nothing."""
    read_spec(form.cleaned_data["document"], kind.parse)
    return render(request, TEMPLATE, {**context, "checked": True})


def _submitted(request: PageRequest, kind: _Kind, form: SpecForm) -> HttpResponse:
    made = kind.submit(user=request.user, document=form.cleaned_data["document"], team_name=form.team_name)
    messages.success(request, kind.done)
    return redirect(f"frontend:{kind.page_name}", made.id)
