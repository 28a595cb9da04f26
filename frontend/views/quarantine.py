"""A datasource's quarantine: the list with its filter, one record, and what can be done with many at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.common.errors import HeadgateError, NotAllowed, NotFound
from controlplane.common.streaming import download
from controlplane.datasources.masking import require_record_access
from controlplane.datasources.models import Datasource
from controlplane.quarantine import services as quarantine
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.quarantine.replays import decode_headers
from controlplane.quarantine.selectors.causes import CauseFilter, list_causes
from controlplane.quarantine.selectors.filters import (
    Choice,
    MatchCounts,
    QuarantineFilter,
    chosen_records,
    count_matching,
    filter_records,
    ingestable,
)
from controlplane.quarantine.selectors.lists import get_quarantined, list_quarantined
from controlplane.supervisors import replays, reprocess
from controlplane.supervisors.replays import check_readable, replayable
from controlplane.tasks.causes import describe_causes
from controlplane.tasks.datasources import get_datasource
from controlplane.tasks.models import Task
from controlplane.teams.permissions import Action, may, require
from frontend.json_tree import tree_html
from frontend.paging import keyset_page
from frontend.payload import json_of, payload_as, payload_of
from frontend.quarantine_forms import ChosenForm, QuarantineFilterForm
from frontend.record_tables import QUARANTINED
from frontend.views.causes import TABLE as CAUSES
from frontend.views.common import PageRequest, error_text, page, rest_address
from frontend.views.datasources import frame

PER_PAGE = 20
MAX_CAUSES = 10
WHOLE_BYTES = 256 * 1024
FORMS = {"text": "text", "json": "JSON", "tree": "tree", "hexadecimal": "hexadecimal", "spec": "as the spec reads it"}


@dataclass(frozen=True)
class BulkAction:
    """What can be done with chosen records."""

    label: str
    url_name: str  # takes the POST once it was confirmed
    required_action: Action
    question: str
    text: str
    style: str = "primary"


BULK_ACTIONS = {
    "ingest": BulkAction(
        "Ingest",
        "quarantine-replay",
        Action.OPERATE,
        "Ingest {} with the current spec?",
        "A task decodes records from topics with the current spec, and records from files with the spec of the task "
        "that read them last. "
        "Each record that can be read becomes rows once. The others stay in quarantine with their new error.",
    ),
    "produce": BulkAction(
        "Produce again",
        "quarantine-replay",
        Action.OPERATE,
        "Produce {} to the topic again?",
        "A task writes them to the end of their topic with the same key, value and headers. An extra header names the "
        "old topic, partition and offset. All readers of the topic get them, not only this datasource.",
    ),
    "purge": BulkAction(
        "Purge",
        "quarantine-purge",
        Action.ADMINISTER,
        "Delete {} for good?",
        "Their keys, payloads and errors are deleted, and you cannot replay them. Counters and the outcome of each "
        "record stay.",
        "danger",
    ),
}


@page
def index(request: PageRequest, name: str) -> HttpResponse:
    """Poison records, the last first, filtered."""
    datasource = get_datasource(request.user, name)
    filters = QuarantineFilterForm(request.GET)
    actions = _actions_context(request, datasource, count_matching(filter_records(datasource, filters.selection)))
    table = (QUARANTINED if actions["deeds"] else QUARANTINED.without_columns("choose")).table_for(request.GET)
    records = list_quarantined(request.user, datasource, filters.selection)
    rows = keyset_page(records, table.order, request.GET.get("cursor"), PER_PAGE)
    context = {
        **frame(request, datasource, "quarantine", **filters.rest_parameters),
        **actions,
        **_causes(request, datasource, filters.selection.cause),
        "fixes": _fixes(datasource, filters.selection.cause) if filters.selection.cause else [],
        "filters": filters,
        "asked": (query := _filter_text(request.GET)),
        "filtered": bool(query),
        "clear": reverse("frontend:datasource-quarantine", args=[name]),
        "page": rows,
        "choosable": [record.pk for record in rows.rows if _is_choosable(actions["deeds"], record)],
        "table": table,
    }
    return render(request, "datasources/quarantine.html", context)


def _causes(request: PageRequest, datasource: Datasource, cause: str) -> dict[str, Any]:
    """The latest of them, or the one that is asked for."""
    cause_filter, table = (
        CauseFilter(datasource=datasource.name, cause=cause),
        CAUSES.without_columns("datasource").static,
    )
    return {
        "causes": describe_causes(
            request.user, list(list_causes(request.user, cause_filter).order_by(*table.order)[:MAX_CAUSES])
        ),
        "causes_table": table,
        "all_causes": f"{reverse('frontend:quarantine')}?{urlencode({'datasource': datasource.name, 'show': 'all'})}",
    }


def _fixes(datasource: Datasource, cause: str) -> list[tuple[str, str]]:
    """Where the spec can be changed beside records of a cause that wait: how that is called, and what is asked for."""
    waiting = ingestable(filter_records(datasource, QuarantineFilter(cause=cause)))
    file_task = waiting.filter(source=None).order_by("-id").values_list("task_id", flat=True).first()
    fixes = [("Fix the spec for these records", {"cause": cause})] * waiting.exclude(source=None).exists()
    if file_task:
        fixes.append(
            (
                f"Fix the spec for {'file records' if fixes else 'these records'}",
                {"cause": cause, "task": file_task},
            )
        )
    return [(label, urlencode(query)) for label, query in fixes]


def _actions_context(request: PageRequest, datasource: Datasource, matched: MatchCounts) -> dict[str, Any]:
    """What is found, and by name what the user may do to any of it now."""
    exists = not datasource.deleted_at
    records = {
        "ingest": exists * matched.ingestable,
        "produce": exists * matched.producible,
        "purge": matched.purgeable,
    }
    may_do = [
        name
        for name, action in BULK_ACTIONS.items()
        if records[name] and may(request.user, action.required_action, datasource.team)
    ]
    return {"found": matched, "deeds": {name: BULK_ACTIONS[name] for name in may_do}}


def _is_choosable(actions: Mapping[str, BulkAction], record: QuarantinedRecord) -> bool:
    """Whether any of these can be done to it."""
    states = QuarantinedRecord.State
    is_kept = record.state == states.KEPT
    ingests, produces = (
        is_kept and not record.cut and "ingest" in actions,
        is_kept and record.source and not record.cut and "produce" in actions,
    )
    return bool(ingests or produces or (record.state != states.REPLAYING and "purge" in actions))


def _filter_text(values: QueryDict) -> str:
    """The filter as an address has it, without the page."""
    query = QueryDict(mutable=True)
    for field in QuarantineFilterForm.parameters():
        if values.get(field):
            query[field] = str(values[field])
    return query.urlencode()


@page
def export(request: PageRequest, name: str) -> HttpResponseBase:
    """All that match, as newline-delimited JSON."""
    datasource = get_datasource(request.user, name)
    lines = quarantine.export(
        user=request.user, datasource=datasource, wanted=QuarantineFilterForm(request.GET).selection
    )
    return download(lines, "quarantine.ndjson", "application/x-ndjson")


@require_POST
@page
def confirm(request: PageRequest, name: str) -> HttpResponse:
    """How many records it is about, and what will happen to them."""
    datasource = get_datasource(request.user, name)
    form = ChosenForm(request.POST)
    if not form.is_valid():
        return _back(request, datasource, "Choose an action and its records.")
    action = form.cleaned_data["action"]
    bulk_action = BULK_ACTIONS[action]
    require(request.user, bulk_action.required_action, datasource.team)
    try:
        records = chosen_records(datasource, form.choice(_list_filter(request)))
        affected = _affected(records, action)
        readers = [] if action == "purge" else check_readable(affected)
    except HeadgateError as error:
        return _back(request, datasource, error_text(error))
    matched, ticked = count_matching(affected), form.cleaned_data["scope"] == "ticked"
    if not matched.records:
        return _back(request, datasource, "This action does not apply to any of these records now.")
    context = {
        **frame(request, datasource, "quarantine"),
        "deed": bulk_action,
        "action": action,
        "found": matched,
        "question": bulk_action.question.format(_records(matched.records)),
        "scope": form.cleaned_data["scope"],
        "ticked": affected.values_list("pk", flat=True) if ticked else [],
        "left": 0 if action == "purge" else count_matching(records).kept - matched.records,
        "readers": readers,
        "upto": matched.max_id,
        "asked": _filter_text(QueryDict(request.POST.get("filter", ""))),
        "url": reverse(f"frontend:{bulk_action.url_name}", args=[name]),
        "back": _url(datasource, request),
    }
    return render(request, "datasources/quarantine_confirm.html", context)


def _affected(records: QuerySet[QuarantinedRecord], action: str) -> QuerySet[QuarantinedRecord]:
    """What an action would take of the chosen."""
    if action == "purge":
        return records.exclude(state=QuarantinedRecord.State.REPLAYING)
    return replayable(records, Task.Replay(action))


@require_POST
@page
def replay(request: PageRequest, name: str) -> HttpResponse:
    """Start the replay and go to its task."""
    datasource = get_datasource(request.user, name)

    def start(choice: Choice, action: str) -> str:
        started = replays.replay(user=request.user, datasource=datasource, choice=choice, mode=Task.Replay(action))
        messages.success(request, f"{_records(started.records)} are being replayed.")
        if len(started.tasks) > 1:
            return f"{reverse('frontend:tasks')}?kind=replay&datasource={name}"
        return reverse("frontend:task", args=[started.tasks[0].pk])

    return _run_action(request, datasource, {"ingest", "produce"}, start)


@require_POST
@page
def purge(request: PageRequest, name: str) -> HttpResponse:
    """Delete them and go back to the list."""
    datasource = get_datasource(request.user, name)

    def delete(choice: Choice, action: str) -> str:
        records = quarantine.purge(user=request.user, datasource=datasource, choice=choice)
        messages.success(request, f"{_records(records)} deleted.")
        return _url(datasource, request)

    return _run_action(request, datasource, {"purge"}, delete)


def _run_action(
    request: PageRequest, datasource: Datasource, actions: set[str], do: Callable[[Choice, str], str]
) -> HttpResponse:
    form = ChosenForm(request.POST)
    if not form.is_valid() or form.cleaned_data["action"] not in actions:
        return _back(request, datasource, "Choose an action and its records.")
    try:
        return redirect(do(form.choice(_list_filter(request)), form.cleaned_data["action"]))
    except (NotFound, NotAllowed):
        raise
    except HeadgateError as error:
        return _back(request, datasource, error_text(error))


def _list_filter(request: PageRequest) -> Any:
    """The filter of the list that the choice was made on."""
    return QuarantineFilterForm(QueryDict(request.POST.get("filter", ""))).selection


def _back(request: PageRequest, datasource: Datasource, problem: str) -> HttpResponse:
    messages.error(request, problem)
    return redirect(_url(datasource, request))


def _url(datasource: Datasource, request: PageRequest) -> str:
    query = _filter_text(QueryDict(request.POST.get("filter", "")))
    return reverse("frontend:datasource-quarantine", args=[datasource.name]) + (f"?{query}" if query else "")


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"


@page
def quarantined(request: PageRequest, name: str, number: int) -> HttpResponse:
    """One poison record, whole as far as a page can hold it."""
    datasource = get_datasource(request.user, name)
    record = get_quarantined(request.user, datasource, number)
    form = request.GET.get("as", "text")
    form = form if form in FORMS and not record.concealed_for else "text"
    may_read = not record.cut and may(request.user, Action.OPERATE, datasource.team)
    context = {
        **frame(request, datasource, "quarantine"),
        "rest": rest_address("api:quarantined", name, str(number)),
        "record": record,
        "payload": payload_as(form, record.payload, WHOLE_BYTES),
        "form": form,
        "forms": FORMS.items() if may_read else list(FORMS.items())[:-1],
        **_payload_context(request, record, form),
        "file_header": payload_of(record.file_header),
        "headers": [(header, payload_of(value)) for header, value in decode_headers(record.headers)],
        **_actions_context(request, datasource, count_matching(chosen_records(datasource, Choice(ids=(record.pk,))))),
    }
    return render(request, "datasources/quarantined.html", context)


def _payload_context(request: PageRequest, record: QuarantinedRecord, form: str) -> dict[str, Any]:
    """The payload as a tree: of its own JSON, or of what the spec's input format reads; and its row, if it has one."""
    if form == "tree":
        is_json, value = json_of(record.payload, WHOLE_BYTES)
        return (
            {"tree": tree_html(value)} if is_json else {"no_tree": "The payload is not JSON, or too long for a tree."}
        )
    if form != "spec":
        return {}
    try:
        read = reprocess.read_by_spec(user=request.user, record=record)
    except HeadgateError as error:
        return {"no_tree": error_text(error)}
    rows, fields = read.stored_rows, [row.fields for row in read.by_row if row.fields is not None]
    shown = {"read": read, "row": tree_html(rows[0] if len(rows) == 1 else rows) if rows else None}
    tree = tree_html(fields[0] if read.held == 1 else fields) if fields else None
    return {**shown, "no_tree": read.error} if tree is None else {**shown, "tree": tree}


@page
def payload(request: PageRequest, name: str, number: int) -> HttpResponse:
    """Its bytes as a file. Never shown by the browser: whoever wrote the record chose them."""
    datasource = get_datasource(request.user, name)
    require_record_access(request.user, datasource, "the payload of a record")
    record = get_quarantined(request.user, datasource, number)
    answer = HttpResponse(bytes(record.payload or b""), content_type="application/octet-stream")
    answer["Content-Disposition"] = f'attachment; filename="record-{record.partition}-{record.offset}.bin"'
    return answer
