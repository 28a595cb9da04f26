"""What is in a connection's cluster: its topics, their newest records, its groups."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.common.errors import Unavailable
from controlplane.connections import browsing
from controlplane.connections.newest_records import newest_records
from controlplane.connections.selectors import get_cluster
from controlplane.connections.topic_size import size_of
from controlplane.teams.models import User
from frontend import topic_list
from frontend.filters import NameFilter, OffsetFilter
from frontend.paging import numbered_page
from frontend.payload import Payload, payload_as, payload_of
from frontend.tables import Column, Shape, Table
from frontend.views.common import PageRequest, page
from frontend.views.connections import frame
from ingestion.specs.messages.newest_records import MAX_ROWS, SHOWN_BYTES, NewestRecord
from ingestion.specs.messages.sampling import Bytes

GROUPS = Shape(
    "groups",
    (
        Column("name", "Group", sorts="name", fixed=True),
        Column("state", "State", sorts="state"),
        Column("type", "Protocol", sorts="type"),
    ),
    default="name",
    tie_breakers=("name",),
)
PARTITIONS = Shape(
    "topic-partitions",
    (
        Column("partition", "Partition", sorts="number", number=True, fixed=True),
        Column("first", "Start offset", sorts="start", number=True, descending_first=True),
        Column("end", "End offset", sorts="end", number=True, descending_first=True),
        Column("records", "Records", sorts="records", number=True, descending_first=True),
        Column("leader", "Leader", sorts="leader"),
        Column("replicas", "Replicas", sorts="out_of_sync", descending_first=True),
    ),
    default="partition",
    tie_breakers=("number",),
)
OFFSETS = Shape(
    "group-offsets",
    (
        Column("topic", "Topic", sorts="topic", fixed=True),
        Column("partition", "Partition", sorts="partition", number=True, fixed=True),
        Column("offset", "Offset", sorts="offset", number=True, descending_first=True),
        Column("end", "End offset", sorts="end", number=True, descending_first=True),
        Column("lag", "Lag", sorts="lag", number=True, descending_first=True),
    ),
    default="topic",
    tie_breakers=("topic", "partition"),
)
MEMBERS = Shape(
    "group-members",
    (
        Column("client", "Client", sorts="client_id", fixed=True),
        Column("host", "Host", sorts="host"),
        Column("partitions", "Partitions", sorts="partitions", number=True, descending_first=True),
    ),
    default="client",
    tie_breakers=("client_id", "host"),
    key="members_sort",
)
PARTITIONS_PER_PAGE = 100


ROWS = 20
FORMS = ("text", "json", "hexadecimal")


@page
def topics(request: PageRequest, team: str, name: str) -> HttpResponse:
    """The cluster's topics."""
    connection = get_cluster(request.user, team, name)
    parameters = topic_list.read_query(request.GET)
    rest = {"search": parameters["search"], "internal": "true" if parameters["internal"] else ""}
    context = {**frame(request, connection, "topics", "connection-topics", **rest), **parameters}
    context["clear"] = reverse("frontend:connection-topics", args=[team, name])
    try:
        context |= topic_list.topics_page(browsing.Cluster.of(connection), request.GET)
    except Unavailable as error:
        context["problem"] = error
    return render(request, "connections/topics.html", context)


@page
def topic(request: PageRequest, team: str, name: str, topic: str) -> HttpResponse:
    """One topic: its partitions, its configuration, its newest records."""
    connection = get_cluster(request.user, team, name)
    context: dict[str, Any] = {**frame(request, connection, "topics", "connection-topic", topic), "topic": topic}
    table = PARTITIONS.table_for(request.GET)
    try:
        topic_detail = browsing.get_topic(connection, topic)
        rows = numbered_page(table.arranged(topic_detail.partitions), request.GET.get("page"), PARTITIONS_PER_PAGE)
        context |= {"found": topic_detail, "table": table, "page": rows}
    except Unavailable as error:
        context["problem"] = error
    return render(request, "connections/topic.html", context)


@page
def records(request: PageRequest, team: str, name: str, topic: str) -> HttpResponse:
    """The topic's newest records, or its first, in the form that is asked for; with htmx that part alone."""
    connection = get_cluster(request.user, team, name)
    form = request.GET.get("form", "")
    form, earliest = form if form in FORMS else "text", request.GET.get("from") == "first"
    context: dict[str, Any] = {
        **frame(request, connection, "topics", "connection-records", topic, earliest="true" if earliest else ""),
        "topic": topic,
        "form": form,
        "forms": FORMS,
        "earliest": earliest,
    }
    try:
        context |= _records_context(request.user, connection, topic, form, earliest)
    except Unavailable as error:
        context["problem"] = error
    return render(request, "connections/_records.html" if request.htmx else "connections/records.html", context)


def _records_context(user: User, connection: Any, topic: str, form: str, earliest: bool) -> dict[str, Any]:
    answer = newest_records(user=user, connection=connection, topic=topic, rows=ROWS, earliest=earliest)
    return {
        "lines": [_line(record, form) for record in answer.records],
        "stopped_by": answer.stopped_by,
        "most": min(ROWS, MAX_ROWS),
        "size": size_of(browsing.Cluster.of(connection), topic, [record.size for record in answer.records]),
    }


def _line(record: NewestRecord, form: str) -> dict[str, Any]:
    headers = [(name, _payload(value, "text")) for name, value in record.headers]
    return {
        "record": record,
        "key": _payload(record.key, "text"),
        "payload": _payload(record.payload, form),
        "headers": headers,
    }


def _payload(data: Bytes | None, form: str) -> Payload:
    if data is None:
        return payload_of(None)
    if data.size > len(data.start) or form == "text":
        return payload_of(data.start, SHOWN_BYTES, data.size)
    return payload_as(form, data.start, SHOWN_BYTES)


@page
def groups(request: PageRequest, team: str, name: str) -> HttpResponse:
    """The cluster's consumer groups."""
    connection = get_cluster(request.user, team, name)
    filters, table = NameFilter(request.GET), GROUPS.table_for(request.GET)
    search = filters.chosen("search")
    shown = frame(request, connection, "groups", "connection-groups", search=search)
    context = {**shown, "filters": filters, "filtered": bool(search), "table": table}
    context["clear"] = reverse("frontend:connection-groups", args=[team, name])
    try:
        rows = table.arranged(browsing.all_groups(connection, search=search))
        context["page"] = numbered_page(rows, request.GET.get("page"))
    except Unavailable as error:
        context["problem"] = error
    return render(request, "connections/groups.html", context)


@page
def group(request: PageRequest, team: str, name: str, group: str) -> HttpResponse:
    """One consumer group: its members, and how far it has read."""
    connection = get_cluster(request.user, team, name)
    context: dict[str, Any] = {**frame(request, connection, "groups", "connection-group", group), "group": group}
    filters, table, members = OffsetFilter(request.GET), OFFSETS.table_for(request.GET), MEMBERS.table_for(request.GET)
    context |= {"filters": filters, "filtered": bool(filters.chosen("search")), "table": table, "members": members}
    context["clear"] = reverse("frontend:connection-group", args=[team, name, group])
    try:
        group_detail = browsing.get_group(connection, group)
        context |= {
            "found": group_detail,
            "joined": members.arranged(group_detail.members),
            "page": _offsets(request, group_detail, table),
        }
    except Unavailable as error:
        context["problem"] = error
    return render(request, "connections/group.html", context)


def _offsets(request: PageRequest, group_detail: browsing.GroupDetail, table: Table) -> Any:
    """A page of those of topics whose name contains what is searched for."""
    search = OffsetFilter(request.GET).chosen("search")
    rows = table.arranged(row for row in group_detail.offsets if search in row.topic)
    return numbered_page(rows, request.GET.get("page"), PARTITIONS_PER_PAGE)
