"""The forms that take a spec: a task to run once, a supervisor to keep running."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from controlplane.common.errors import HeadgateError
from controlplane.common.spec_text import DiffLine, spec_text
from controlplane.connections.named_connections import admit
from controlplane.datasources.sampling import take_sample
from controlplane.datasources.selectors import team_of_spec
from controlplane.datasources.topics import find_topic, find_topics
from controlplane.supervisors.decide_topics import matching
from controlplane.supervisors.history import diff_to_current
from controlplane.supervisors.selectors import get_supervisor
from controlplane.supervisors.services import child_conflict, submit_supervisor
from controlplane.tasks.batches import check_batch
from controlplane.tasks.checking import read_spec
from controlplane.tasks.models import task_kinds
from controlplane.tasks.segment_tasks import check_segment_task
from controlplane.tasks.selectors import get_task
from controlplane.tasks.services import submit_task
from frontend.forms import PreviewForm, SpecForm
from frontend.preview import preview_of, preview_request
from frontend.spec_examples import check_filled_in, examples, with_connection
from frontend.task_names import short_name
from frontend.team_scope import reach_of
from frontend.views.common import PageRequest, page, render_problem, rest_address
from ingestion.specs.tasks.batch import is_batch
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec, parse_task_spec
from ingestion.specs.tasks.segment_tasks import is_segment_task

TEMPLATE = "specs/new.html"
# A second task needs an id of its own, and only a supervisor can be suspended.
_NOT_COPIED = frozenset({"id", "suspended"})


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
    """A manual task; with ``from`` filled with an earlier one's spec."""
    source = request.GET.get("from")
    if not source:
        return _new(request, TASK)
    task = get_task(request.user, source)
    document = {name: value for name, value in task.spec.items() if name not in _NOT_COPIED}
    return _new(request, TASK, document, hides_secrets=bool(task.secrets))


@page
def new_supervisor(request: PageRequest) -> HttpResponse:
    """A new supervisor; with ``from`` a change of that one's spec."""
    source = request.GET.get("from")
    if not source:
        return _new(request, SUPERVISOR)
    supervisor = get_supervisor(request.user, source)
    if supervisor.is_made_by_another:
        raise child_conflict(supervisor)
    latest = supervisor.current
    document = {name: value for name, value in latest.spec.items() if name != "suspended"}
    suspended = supervisor.suspended and supervisor.terminated_at is None
    return _new(request, SUPERVISOR, document, hides_secrets=bool(latest.secrets), suspended=suspended)


def _new(
    request: PageRequest,
    kind: _Kind,
    start: dict[str, Any] | None = None,
    hides_secrets: bool = False,
    suspended: bool = False,
) -> HttpResponse:
    source = request.GET.get("from", "")
    specs, labels = examples(supervised=kind is SUPERVISOR), dict(task_kinds())
    example_kind = request.GET.get("example", "")
    example_kind = example_kind if example_kind in specs else next(iter(specs))
    topic_parameters = {name: request.GET.get(name, "") for name in ("connection", "topic")}
    example = (
        with_connection(specs[example_kind], **topic_parameters)
        if all(topic_parameters.values()) and not is_batch(specs[example_kind])
        else specs[example_kind]
    )
    initial = {"document": spec_text(start or example), "team": reach_of(request).asked_team(request)}
    form = SpecForm(request.POST or None, user=request.user, initial=initial, nonce=str(request.csp_nonce))
    preview_form = PreviewForm(
        request.POST if "preview" in request.POST else None, initial={"records": "first", "rows": 20}
    )
    context = {
        "kind": kind,
        "form": form,
        "preview_form": preview_form,
        "title": kind.change_title if source else kind.title,
        "list_url": reverse(f"frontend:{kind.list_name}"),
        "crumbs": _crumbs(kind, source),
        "rest": rest_address(f"api:{kind.page_name}", source) if source else rest_address(f"api:{kind.list_name}"),
        "source": source,
        "begins": [] if source else [(name, labels[name], name == example_kind) for name in specs],
        "hides_secrets": hides_secrets,
        "suspended": suspended,
        "faults": [],
    }
    if request.method != "POST":
        return render(request, TEMPLATE, context)
    if "preview" in request.POST:
        return _preview(request, form, preview_form, context)
    if not form.is_valid():
        return render(request, TEMPLATE, context, status=400)
    try:
        check_filled_in(form.cleaned_data["document"])
        return _check_spec(request, kind, form, context) if "check" in request.POST else _submit(request, kind, form)
    except HeadgateError as error:
        faults = [{"pointer": f.pointer, "message": f.message} for f in error.errors]
        return render_problem(request, TEMPLATE, {**context, "faults": faults}, error)


def _crumbs(kind: _Kind, source: str) -> list[tuple[str, str]]:
    crumbs = [(kind.list_name.capitalize(), reverse(f"frontend:{kind.list_name}"))]
    return [*crumbs, (short_name(source), reverse(f"frontend:{kind.page_name}", args=[source]))] if source else crumbs


def _check_spec(request: PageRequest, kind: _Kind, form: SpecForm, context: dict[str, Any]) -> HttpResponse:
    """Read the spec, look whether a topic of it is there, and change nothing."""
    document = form.cleaned_data["document"]
    if kind is TASK and is_segment_task(document):
        check_segment_task(request.user, document)
        return render(request, TEMPLATE, {**context, "faultless": True})
    if kind is TASK and is_batch(document):
        team_of_spec(request.user, check_batch(request.user, document).datasource, form.team_name)
        return render(request, TEMPLATE, {**context, "faultless": True})
    spec = read_spec(request.user, document, kind.parse)
    io_config, team = spec.spec.ioConfig, team_of_spec(request.user, spec.datasource, form.team_name)
    properties = admit(document, team, io_config).properties
    kafka_arguments: dict[str, Any] = {"user": request.user, "datasource": spec.datasource, "properties": properties}
    context = {**context, "change": _change(request, kind, spec)}
    if io_config.topicPattern is not None:
        topics = find_topics(**kafka_arguments)
        matched = matching(io_config.topicPattern, topics.names)
        more = {"topics": topics, "matched": matched, "most": settings.TOPICS_PER_SUPERVISOR}
        return render(request, TEMPLATE, {**context, **more})
    return render(request, TEMPLATE, {**context, "topic": find_topic(topic=io_config.topic, **kafka_arguments)})


def _change(request: PageRequest, kind: _Kind, spec: Any) -> list[DiffLine] | None:
    """What would change of a supervisor's spec; None where none is changed."""
    source = request.GET.get("from", "")
    if kind is not SUPERVISOR or not source:
        return None
    supervisor = get_supervisor(request.user, source)
    return diff_to_current(supervisor, spec) if (spec.id or spec.datasource) == supervisor.pk else None


def _preview(request: PageRequest, form: SpecForm, preview_form: PreviewForm, context: dict[str, Any]) -> HttpResponse:
    """What the spec as written makes of some records; nothing is changed. With htmx that part of the page alone."""
    preview_context: dict[str, Any] = {"asked": [form, preview_form]}
    status = 200
    if form.is_valid() and preview_form.is_valid():
        try:
            document = preview_request(form.cleaned_data["document"], preview_form)
            preview_context["preview"] = preview_of(
                *take_sample(user=request.user, document=document, team_name=form.team_name)
            )
        except HeadgateError as error:
            preview_context["preview_problem"] = error
            status = error.status
    else:
        status = 400
    if request.htmx:
        return render(request, "specs/_preview.html", preview_context)  # a part is swapped in only with 200
    return render(request, TEMPLATE, {**context, **preview_context}, status=status)


def _submit(request: PageRequest, kind: _Kind, form: SpecForm) -> HttpResponse:
    submitted = kind.submit(user=request.user, document=form.cleaned_data["document"], team_name=form.team_name)
    messages.success(request, kind.done)
    return redirect(f"frontend:{kind.page_name}", submitted.id)
