"""Where is my record: from its place, or its key and time, to all that is known of it."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import render

from controlplane.common.errors import HeadgateError
from controlplane.publishing.selectors.fate import record_fate
from controlplane.records.lookup import RecordQuery, Search, may_look_up, search, sources_of_topic
from controlplane.records.stored_rows import StoredRow, stored_rows
from frontend.forms import RecordForm
from frontend.payload import payload_of
from frontend.views.common import PageRequest, page, render_problem, rest_address
from frontend.views.rows import table_of
from ingestion.specs.messages.lookup import FoundRecord, LookupAnswer
from ingestion.specs.messages.sampling import Bytes

TEMPLATE = "records/find.html"
WHY = {
    "time": "the time limit was reached",
    "bytes": "the limit of bytes was reached",
    "records": "the limit of records was reached",
    "found": "more records match than are shown",
}


@page
def find(request: PageRequest) -> HttpResponse:
    """The question, and the answer once it has been asked."""
    is_submitted = any(request.GET.get(name) for name in RecordForm.parameters())
    form = RecordForm(request.GET if is_submitted else None)
    if not is_submitted:
        return render(request, TEMPLATE, {"form": form})
    if not form.is_valid():
        return render(request, TEMPLATE, {"form": form}, status=400)
    try:
        shown = _find_by_key(request, form) if form.record_query.key is not None else _find_by_offset(request, form)
    except HeadgateError as error:
        return render_problem(request, TEMPLATE, {"form": form}, error)
    return render(
        request,
        TEMPLATE,
        {"form": form, "asked": form.cleaned_data, "rest": _rest(request, form.record_query), **shown},
    )


def _find_by_offset(request: PageRequest, form: RecordForm) -> dict[str, Any]:
    """What became of the record; and as Kafka has it, if that is asked for."""
    criteria, group = form.record_query, form.cleaned_data["group"]
    fates = record_fate(
        request.user,
        topic=criteria.topic,
        partition=criteria.partition or 0,
        offset=criteria.offset or 0,
        group=group or None,
    )
    sources = sources_of_topic(request.user, criteria.topic, group)
    shown = {"fates": fates, "may_look": may_look_up(request.user, sources), "look": _page_address(request, look="1")}
    if request.GET.get("look") == "1":
        outcome = search(user=request.user, query=criteria, group=group)
        shown |= _search_context(outcome) | _stored_context(request, criteria, group, outcome)
    return shown


def _stored_context(request: PageRequest, criteria: RecordQuery, group: str, outcome: Search) -> dict[str, Any]:
    """The rows that it became, where Kafka still has it: by datasource."""
    if outcome.kafka is None or not outcome.kafka.answer.found:
        return {}
    try:
        stored = stored_rows(user=request.user, query=criteria, group=group, kafka=outcome.kafka)
    except HeadgateError as error:
        return {"rows_problem": error}
    return {"stored": [_row(stored_row) for stored_row in stored]}


def _row(stored_row: StoredRow) -> dict[str, Any]:
    table = {} if stored_row.rows is None else table_of(stored_row.rows)
    return {"stored": stored_row, "certain": stored_row.rows is not None and len(stored_row.rows.rows) == 1, **table}


def _find_by_key(request: PageRequest, form: RecordForm) -> dict[str, Any]:
    """Records with the key, each with a link to what became of it."""
    outcome = search(user=request.user, query=form.record_query, group=form.cleaned_data["group"])
    return {**_search_context(outcome), "by_key": True, "quarantined": outcome.quarantined}


def _search_context(outcome: Search) -> dict[str, Any]:
    if outcome.kafka is None:
        return {"looked": True, "not_looked": outcome.problem}
    answer = outcome.kafka.answer
    return {
        "looked": True,
        "kafka": outcome.kafka,
        "records": [_record_context(record) for record in answer.found],
        "unseen": sum(part.unseen for part in answer.looked),
        "removed": _may_be_removed(answer),
        "why_not_all": WHY.get(answer.stopped_by, ""),
    }


def _may_be_removed(answer: LookupAnswer) -> bool:
    """Whether retention may have removed some of what was meant: the search began where the log begins."""
    return any(part.start <= part.log_start and part.log_start > 0 for part in answer.looked)


def _record_context(record: FoundRecord) -> dict[str, Any]:
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "parts": [
            ("Key", _payload(record.key)),
            *((f"Header {name}", payload_of(value)) for name, value in record.headers),
            ("Payload", _payload(record.payload)),
        ],
    }


def _payload(data: Bytes | None) -> Any:
    return payload_of(None) if data is None else payload_of(data.start, size_bytes=data.size)


def _rest(request: PageRequest, criteria: RecordQuery) -> str:
    """REST's address for what the form asks; a key goes as bytes, which need not be text."""
    parameters = {name: request.GET.get(name, "") for name in RecordForm.parameters() if name != "key"}
    if criteria.key is None:
        return rest_address(
            "api:records", **{n: parameters.get(n, "") for n in ("topic", "partition", "offset", "group")}
        )
    return rest_address("api:search-records", **parameters, key_base64=b64encode(criteria.key).decode())


def _page_address(request: PageRequest, **more: str) -> str:
    query = QueryDict(mutable=True)
    for name in RecordForm.parameters():
        if request.GET.get(name):
            query[name] = request.GET[name]
    for name, value in more.items():
        query[name] = value
    return f"?{query.urlencode()}"
