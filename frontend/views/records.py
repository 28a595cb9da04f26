"""Where is my record: from its place, or its key and time, to all that is known of it."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import render

from controlplane.common.errors import HeadgateError
from controlplane.publishing.selectors.fate import record_fate
from controlplane.records.lookup import Search, Wanted, may_look, search, sources_of_topic
from controlplane.records.stored_rows import StoredRow, stored_rows
from frontend.forms import RecordForm
from frontend.payload import payload_of
from frontend.views.common import PageRequest, page, refused, rest_address
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
    asked = any(request.GET.get(name) for name in RecordForm.parameters())
    form = RecordForm(request.GET if asked else None)
    if not asked:
        return render(request, TEMPLATE, {"form": form})
    if not form.is_valid():
        return render(request, TEMPLATE, {"form": form}, status=400)
    try:
        shown = _of_key(request, form) if form.wanted.key is not None else _of_place(request, form)
    except HeadgateError as error:
        return refused(request, TEMPLATE, {"form": form}, error)
    return render(
        request, TEMPLATE, {"form": form, "asked": form.cleaned_data, "rest": _rest(request, form.wanted), **shown}
    )


def _of_place(request: PageRequest, form: RecordForm) -> dict[str, Any]:
    """What became of the record; and as Kafka has it, if that is asked for."""
    wanted, group = form.wanted, form.cleaned_data["group"]
    fates = record_fate(
        request.user,
        topic=wanted.topic,
        partition=wanted.partition or 0,
        offset=wanted.offset or 0,
        group=group or None,
    )
    sources = sources_of_topic(request.user, wanted.topic, group)
    shown = {"fates": fates, "may_look": may_look(request.user, sources), "look": _address(request, look="1")}
    if request.GET.get("look") == "1":
        found = search(user=request.user, wanted=wanted, group=group)
        shown |= _searched(found) | _stored(request, wanted, group, found)
    return shown


def _stored(request: PageRequest, wanted: Wanted, group: str, found: Search) -> dict[str, Any]:
    """The rows that it became, where Kafka still has it: by datasource."""
    if found.kafka is None or not found.kafka.answer.found:
        return {}
    try:
        stored = stored_rows(user=request.user, wanted=wanted, group=group, kafka=found.kafka)
    except HeadgateError as error:
        return {"rows_problem": error}
    return {"stored": [_row(one) for one in stored]}


def _row(one: StoredRow) -> dict[str, Any]:
    table = {} if one.rows is None else table_of(one.rows)
    return {"stored": one, "certain": one.rows is not None and len(one.rows.rows) == 1, **table}


def _of_key(request: PageRequest, form: RecordForm) -> dict[str, Any]:
    """Records with the key, each with a link to what became of it."""
    found = search(user=request.user, wanted=form.wanted, group=form.cleaned_data["group"])
    return {**_searched(found), "by_key": True, "quarantined": found.quarantined}


def _searched(found: Search) -> dict[str, Any]:
    if found.kafka is None:
        return {"looked": True, "not_looked": found.problem}
    answer = found.kafka.answer
    return {
        "looked": True,
        "kafka": found.kafka,
        "records": [_shown(record) for record in answer.found],
        "unseen": sum(part.unseen for part in answer.looked),
        "removed": _removed(answer),
        "why_not_all": WHY.get(answer.stopped_by, ""),
    }


def _removed(answer: LookupAnswer) -> bool:
    """Whether retention may have removed some of what was meant: the search began where the log begins."""
    return any(part.start <= part.log_start and part.log_start > 0 for part in answer.looked)


def _shown(record: FoundRecord) -> dict[str, Any]:
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


def _rest(request: PageRequest, wanted: Wanted) -> str:
    """REST's address for what the form asks; a key goes as bytes, which need not be text."""
    asked = {name: request.GET.get(name, "") for name in RecordForm.parameters() if name != "key"}
    if wanted.key is None:
        return rest_address("api:records", **{n: asked.get(n, "") for n in ("topic", "partition", "offset", "group")})
    return rest_address("api:search-records", **asked, key_base64=b64encode(wanted.key).decode())


def _address(request: PageRequest, **more: str) -> str:
    asked = QueryDict(mutable=True)
    for name in RecordForm.parameters():
        if request.GET.get(name):
            asked[name] = request.GET[name]
    for name, value in more.items():
        asked[name] = value
    return f"?{asked.urlencode()}"
