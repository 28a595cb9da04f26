"""Load data: from a topic to a supervisor, step by step. It works without scripts; with them a result is live."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.common.errors import HeadgateError, InvalidInput
from controlplane.common.spec_text import spec_diff, spec_text
from controlplane.common.strict_json import strict_json
from controlplane.connections.secrets import SecretsLost, unseal
from controlplane.connections.selectors import list_connections, own_properties_allowed
from controlplane.loading import samples, services
from controlplane.loading.documents import Document, to_nested, value_at, with_value
from controlplane.loading.models import Draft
from controlplane.loading.selectors import drafts_of, get_draft, may_submit, names_other_team
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import get_supervisor
from controlplane.teams.models import Team
from frontend.forms import SpecForm
from frontend.load.forms import IO, SCHEMA, ConnectionForm, StepForm, TopicForm
from frontend.load.parse_form import ParseForm
from frontend.load.review import is_beside, merged, plain, prefix_of
from frontend.load.review_parts import Part, parts_of
from frontend.load.row_forms import TransformForm
from frontend.load.steps import BY_NAME, STEPS, Step, before, next_of, page_context, step_of, with_guess
from frontend.paging import numbered_page
from frontend.tables import Column, Shape
from frontend.team_scope import reach_of
from frontend.views.common import PageRequest, error_text, page
from ingestion.specs.inputs.connection import Kind

LIST = "frontend:load"
DRAFTS = Shape(
    "drafts",
    (
        Column("draft", "Draft", sorts="name", fixed=True),
        Column("topic", "Topic", sorts="topic"),
        Column("step", "Step", sorts="place"),
        Column("team", "Team", sorts="draft.team.name"),
        Column("changed", "Changed", sorts="draft.updated_at", descending_first=True),
        Column("delete", "Delete draft", fixed=True, has_hidden_head=True),
    ),
    default="-changed",
    tie_breakers=("-draft.updated_at", "pk"),
)


@page
def index(request: PageRequest) -> HttpResponse:
    """One's drafts, and where a new one begins; ``supervisor`` begins the change of that one's spec."""
    parameters = {name: request.GET.get(name, "") for name in ("supervisor", "team", "connection", "topic", "servers")}
    if request.method == "POST":
        return _begin(request)
    table = DRAFTS.table_for(request.GET)
    drafts = numbered_page(
        table.arranged(map(_DraftRow, drafts_of(request.user, reach_of(request).team))), request.GET.get("page")
    )
    context = {"page": drafts, "table": table, "asked": parameters, "rest": reverse("api:drafts")}
    return render(request, "load/index.html", context)


class _DraftRow:
    """A draft in the list."""

    def __init__(self, draft: Draft) -> None:
        self.draft, self.pk = draft, str(draft.pk)
        self.topic = value_at(draft.document, (*IO, "topic")) or ""
        self.name = _title(draft, unnamed="No name yet")
        self.step, self.place = step_of(draft), STEPS.index(step_of(draft))


def _begin(request: PageRequest) -> HttpResponse:
    supervisor = request.POST.get("supervisor", "")
    try:
        if supervisor:
            draft = services.begin_change(user=request.user, supervisor=get_supervisor(request.user, supervisor))
            return redirect("frontend:load-step", draft.pk, "review")
        team = services.team_of_draft(request.user, _chosen_team(request))
        draft = services.begin_draft(user=request.user, team_name=team.name, document=_initial_document(request, team))
        document = _without_taken_name(request, draft, draft.document)
        draft = services.change_draft(user=request.user, draft=draft, document=document)
    except InvalidInput as error:
        messages.error(request, error_text(error))
        return redirect(LIST)
    topic = draft.document["spec"]["ioConfig"].get("topic")
    return redirect("frontend:load-step", draft.pk, "topic" if topic else "connection")


def _chosen_team(request: PageRequest) -> str:
    """The one that the link named, else that the header says; empty for all.

    Raises ``InvalidInput`` if the user is no operator of the header's.
    """
    if request.POST.get("team"):
        return str(request.POST["team"])
    reach = reach_of(request)
    if reach.team and not reach.may_operate(reach.team):
        raise InvalidInput(
            f"You are not an operator of team {reach.team}. Choose another team at the top, then load data."
        )
    return reach.team


def _initial_document(request: PageRequest, team: Team) -> dict[str, Any]:
    document = services.initial_document(team)
    topic, servers, connection = (request.POST.get(name, "").strip() for name in ("topic", "servers", "connection"))
    if topic:
        document = with_value(
            with_value(document, (*IO, "topic"), topic), (*SCHEMA, "dataSource"), topic.lstrip("._-") or None
        )
    if connection:
        return with_value(with_value(document, (*IO, "connection"), connection), (*IO, "consumerProperties"), None)
    if servers:
        document = with_value(document, (*IO, "consumerProperties", "bootstrap.servers"), servers)
    return document


@page
def step(request: PageRequest, draft_id: uuid.UUID, step_name: str) -> HttpResponse:
    """One step: its form, and what the draft makes of the records."""
    if step_name not in BY_NAME:
        raise Http404
    draft, chosen = get_draft(request.user, draft_id), BY_NAME[step_name]
    if request.method == "POST":
        return _save_step(request, draft, chosen)
    return _render_step(request, draft, chosen)


def _save_step(request: PageRequest, draft: Draft, chosen: Step) -> HttpResponse:
    go = request.POST.get("go", "next")
    if chosen.name == "review":
        return _save_review(request, draft, go)
    try:
        if "guess" in request.POST:
            document = with_guess(draft, _guess(request.POST["guess"]))
            go = "stay"
        else:
            form = _form(request, draft, chosen, request.POST)
            if not form.is_valid() and go != "back":
                return _render_step(request, draft, chosen, form, status=400)
            document = form.edited() if form.is_valid() else draft.document
        document = _without_taken_name(request, draft, document) if chosen.form is TopicForm else document
        draft = services.change_draft(user=request.user, draft=draft, document=document, step=chosen.name)
        if go == "again":
            samples.delete_sample(draft)  # the page that follows reads them anew, or says why it can't
    except InvalidInput as error:
        return _render_step(request, draft, chosen, problem=error, status=400)
    except HeadgateError as error:
        return _render_step(request, draft, chosen, problem=error, status=error.status)
    if request.htmx:
        return _render_step(request, draft, chosen)
    target = {"next": next_of(chosen), "back": before(chosen) or chosen}.get(go, BY_NAME.get(go, chosen))
    return redirect("frontend:load-step", draft.pk, target.name)


def _without_taken_name(request: PageRequest, draft: Draft, document: Document) -> Document:
    """Without the name that its topic gave, if a datasource of another team has it: each step would be refused."""
    if not names_other_team(request.user, draft.team, document):
        return document
    messages.warning(request, "A datasource of another team has the topic's name. Enter another name in the review.")
    return with_value(document, (*SCHEMA, "dataSource"), None)


def _form(
    request: PageRequest,
    draft: Draft,
    chosen: Step,
    data: Any,
    nested: Any = None,
    document: Document | None = None,
    prefix: str | None = None,
) -> StepForm:
    """The step's form, with what it offers; of the draft's document if of no other."""
    document = draft.document if document is None else document
    if chosen.form is ConnectionForm:
        connections = list_connections(request.user, kind=Kind.KAFKA, team=draft.team.name)
        names = connections.values_list("name", flat=True)
        by_name = "" if own_properties_allowed(draft.team) else draft.team.name
        return ConnectionForm(data, document, prefix, names, by_name)
    if chosen.form is ParseForm:
        return ParseForm(data, document, prefix, nested)
    if chosen.form is TransformForm:
        return TransformForm(data, document, prefix).with_nonce(str(request.csp_nonce))
    return chosen.form(data, document, prefix)


def _guess(written: str) -> Any:
    try:
        return strict_json(written)
    except ValueError:
        return None


def _save_review(request: PageRequest, draft: Draft, go: str) -> HttpResponse:
    """The last step: all of the document as JSON, and as the forms beside it; and its submission."""
    chosen, spec, document = BY_NAME["review"], None, draft.document
    try:
        if "document" in request.POST:
            spec = SpecForm(request.POST, user=request.user, nonce=str(request.csp_nonce))
            if spec.is_valid():
                document = spec.cleaned_data["document"]
        changed = _merge_review(request, draft, document) if spec is None or spec.is_valid() else None
        if changed is None and go != "back":
            return _render_step(request, draft, chosen, spec=spec, status=400)
        document = draft.document if changed is None else changed
        draft = services.change_draft(user=request.user, draft=draft, document=document, step=chosen.name)
        if go in ("supervisor", "task"):
            return _submit(request, draft, go)
    except HeadgateError as error:
        return _render_step(request, draft, chosen, spec=spec, problem=error, status=error.status)
    if go == "back":
        return redirect("frontend:load-step", draft.pk, "reading")
    messages.success(request, "The draft is saved.")
    return redirect("frontend:load-step", draft.pk, chosen.name)


def _merge_review(request: PageRequest, draft: Draft, written: Document) -> Document | None:
    sent = plain(request.POST)
    steps = [step for step in STEPS if is_beside(step, sent)]

    def make_form(step: Step, document: Document) -> StepForm:
        return _form(request, draft, step, sent, document=document, prefix=prefix_of(step))

    document = merged(draft.document, to_nested(written), steps, make_form)
    if document is None or value_at(document, (*IO, "topic")) == value_at(draft.document, (*IO, "topic")):
        return document
    return _without_taken_name(request, draft, document)


def _submit(request: PageRequest, draft: Draft, go: str) -> HttpResponse:
    submitted = services.submit_draft(user=request.user, draft=draft, as_task=go == "task")
    kind = "supervisor" if isinstance(submitted, Supervisor) else "task"
    messages.success(request, f"{kind.capitalize()} submitted.")
    return redirect(f"frontend:{kind}", submitted.pk)


def _render_step(
    request: PageRequest,
    draft: Draft,
    chosen: Step,
    form: StepForm | None = None,
    spec: SpecForm | None = None,
    problem: HeadgateError | None = None,
    status: int = 200,
) -> HttpResponse:
    step_context = page_context(chosen, request.user, draft, request.GET)
    form = form or _filled_form(request, draft, chosen, step_context)
    review = reverse("frontend:load-step", args=[draft.pk, "review"])
    if not request.htmx:  # which puts in the result alone, and that says it
        form.add_faults(
            fault for error in (problem, step_context.get("look_problem")) if error for fault in error.errors
        )
    context: dict[str, Any] = {
        "draft": draft,
        "title": _title(draft),
        "under": f"Draft of {draft.owner.username} in team {draft.team.name}. Its operators may open this address. "
        "Each step saves it. Nothing runs until you submit it.",
        "rest": reverse("api:draft", args=[draft.pk]),
        "crumbs": [("Load data", reverse(LIST))],
        "step": chosen,
        "steps": STEPS,
        "before": before(chosen),
        "after": next_of(chosen),
        "form": form,
        "problem": problem,
        "editor": "#id_document" if chosen.name == "review" else f"{review}#json-title",
        "kept_secrets": _secret_names(draft),
        "asked": [],
        **step_context,
    }
    if request.htmx:
        return render(request, "load/_result.html", context)  # a part is swapped in only with 200
    if chosen.name == "review":
        context |= _review_context(request, draft, spec, problem) | {"parts": _parts(request, draft, step_context)}
    return render(request, "load/step.html", context, status=status)


def _title(draft: Draft, unnamed: str = "Load data") -> str:
    if draft.supervisor_id is not None:
        return f"Change of {draft.supervisor_id}"
    return str(value_at(draft.document, (*SCHEMA, "dataSource")) or unnamed)


def _review_context(
    request: PageRequest, draft: Draft, spec: SpecForm | None, problem: HeadgateError | None
) -> dict[str, Any]:
    initial = {"document": spec_text(draft.document)}
    faults = [{"pointer": f.pointer, "message": f.message} for f in problem.errors] if problem else []
    spec = spec or SpecForm(None, user=request.user, initial=initial, nonce=str(request.csp_nonce))
    spec.fields.pop("team", None)  # the draft has its team
    return {
        "spec_form": spec,
        "faults": faults,
        "diff": _diff(draft),
        "may_supervise": may_submit(request.user, draft, as_task=False),
        "may_run": draft.supervisor is None and may_submit(request.user, draft, as_task=True),
    }


def _parts(request: PageRequest, draft: Draft, step_context: dict[str, Any]) -> list[Part]:
    has_records = step_context.get("profiles") is not None
    return parts_of(
        draft.document, lambda step: _filled_form(request, draft, step, step_context, prefix_of(step)), has_records
    )


def _filled_form(
    request: PageRequest, draft: Draft, step: Step, step_context: dict[str, Any], prefix: str | None = None
) -> StepForm:
    """A step's form as the draft has it, or with what was typed into the review and not taken."""
    sent = plain(request.POST)
    typed = (prefix is not None or step is STEPS[-1]) and is_beside(step, sent)
    return _form(request, draft, step, sent if typed else None, step_context.get("nested"), prefix=prefix)


def _diff(draft: Draft) -> list[Any]:
    if draft.supervisor is None:
        return []
    now, then = (
        {k: v for k, v in spec.items() if k != "suspended"} for spec in (draft.supervisor.current.spec, draft.document)
    )
    return list(spec_diff(now, then))


def _secret_names(draft: Draft) -> list[str]:
    try:
        return sorted(unseal(draft.secrets))
    except SecretsLost:
        return []


@page
@require_POST
def delete(request: PageRequest, draft_id: uuid.UUID) -> HttpResponse:
    services.delete_draft(user=request.user, draft=get_draft(request.user, draft_id))
    messages.success(request, "The draft is deleted.")
    return redirect(LIST)
