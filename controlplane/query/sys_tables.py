"""The tables of ``sys``: what Headgate knows of itself for SQL, with the rights and masks of pages and REST."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import BinaryField, Case, F, Func, IntegerField, OuterRef, QuerySet, Subquery, TextField, When
from django.db.models import Value as V
from django.db.models.functions import Left

from controlplane.datasources.masked_querysets import hidden_note
from controlplane.feed.models import FeedEntry
from controlplane.publishing.models import Publish
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.quarantine.selectors.lists import PREVIEW_BYTES
from controlplane.query.sys_offsets import KEY_FIELDS, offset_ranges
from controlplane.query.sys_rows import Query, Rows, narrow, query_of
from controlplane.segments.models import Replacement, Segment
from controlplane.supervisors.autoscale import wanted_task_count
from controlplane.supervisors.health_queries import health_by_supervisor
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import is_healthy, list_supervisors
from controlplane.tasks.selectors import list_tasks
from controlplane.teams.models import User
from controlplane.teams.permissions import visible
from ingestion.specs.messages.sql import SqlTableUse

LONGEST_TEXT = 10_000  # characters of an error or a message
TEXT, INTEGER, TRUTH, TIME, BYTES, TEXTS = "VARCHAR", "BIGINT", "BOOLEAN", "TIMESTAMPTZ", "BLOB", "VARCHAR[]"
Hidden = Mapping[int, str]  # by datasource: the least role that sees its undecoded records
Columns = Mapping[str, tuple[str, Any]]  # by name: DuckDB's type, and a field, an expression or what makes one


@dataclass(frozen=True)
class SysTable:
    """A table, and how it is read."""

    columns: Columns
    # The rows that a user may see, in the columns' order. Conditions of the use may leave some out.
    read: Callable[[User, SqlTableUse, Hidden], Rows]
    fewer: str  # how to have fewer rows, of which it has too many: a sentence
    masked: tuple[str, ...] = ()  # columns that hide values where a datasource has masks


def sys_columns() -> dict[str, list[tuple[str, str]]]:
    """By the name of a table, without ``sys.``: its columns, each with its name and DuckDB's type."""
    return {name: [(column, kind) for column, (kind, _) in each.columns.items()] for name, each in SYS_TABLES.items()}


def _of_model(columns: Columns, rows: Callable[[User], QuerySet[Any]], *about: Any) -> SysTable:
    fields = {name: (kind, value) for name, (kind, value) in columns.items() if isinstance(value, str)}

    def read(user: User, use: SqlTableUse, hidden: Hidden) -> Query:
        values = [value(hidden) if callable(value) else value for _, value in columns.values()]
        found = narrow(rows(user).order_by(), use, fields)
        return query_of(found.values_list(*(F(value) if isinstance(value, str) else value for value in values)))

    return SysTable(columns, read, *about)


def _by_role(hidden: Hidden, shown: Callable[[str], str]) -> list[When]:
    """One for each role that hidden records need."""
    by_role = {role: [pk for pk, needed in hidden.items() if needed == role] for role in hidden.values()}
    return [When(datasource_id__in=by_role[role], then=V(shown(role))) for role in sorted(by_role)]


def _message(field: str) -> Callable[[Hidden], Any]:
    """A text that may quote a value."""
    shown = Left(field, LONGEST_TEXT)
    empty = When(**{field: ""}, then=V(""))
    return lambda hidden: Case(empty, *_by_role(hidden, hidden_note), default=shown, output_field=TextField())


def _beginning(field: str) -> Callable[[Hidden], Any]:
    """That of a record's bytes."""
    start = Func(F(field), 1, PREVIEW_BYTES, function="substring", output_field=BinaryField())
    return lambda hidden: Case(When(datasource_id__in=list(hidden), then=None), default=start)


def _path(hidden: Hidden) -> Any:
    """The file holds all columns: where it is, sees who may see these."""
    return Case(When(datasource_id__in=list(hidden), then=V("")), default=F("path"))


def _masked_for(hidden: Hidden) -> Any:
    return Case(*_by_role(hidden, str), default=None, output_field=TextField())


def _if_unused(field: str) -> Any:
    return Case(When(used=False, then=F(field)), default=None)


def _fields(kind: str, *names: str) -> dict[str, tuple[str, str]]:
    """Columns that have the names of the model's fields."""
    return {name: (kind, name) for name in names}


_PLACE = {"team": (TEXT, "datasource__team__name"), "datasource": (TEXT, "datasource__name")}
_MADE = Replacement.objects.filter(pk=OuterRef("replaced_by")).values(json=Func(F("made"), function="to_json"))
_NUMBER = FeedEntry.objects.filter(publish_id=OuterRef("pk")).values("number")
# A producer may write any number; these are the years 1 to 9999.
_YEARS_MS = (-62_135_596_800_000, 253_402_300_799_999)
_MS = Func(F("timestamp_ms"), template="(to_timestamp(0) + %(expressions)s * interval '1 millisecond')")
_SEGMENTS: Columns = {
    "id": (TEXT, F("id")),
    **_PLACE,
    **_fields(TIME, "interval_start", "interval_end"),
    **_fields(TEXT, "version"),
    **_fields(INTEGER, "partition_num", "rows", "size_bytes"),
    **_fields(TIME, "min_time", "max_time"),
    "path": (TEXT, _path),
    **_fields(TEXT, "sha256"),
    "task": (TEXT, "task_id"),
    **_fields(TIME, "created_at"),
    **_fields(TRUTH, "used"),
    "unused_at": (TIME, _if_unused("unused_at")),
    "replaced_by": (TEXTS, Subquery(_MADE[:1])),
    "removed_by": (TEXT, _if_unused("removal__by")),
    "removal": (TEXT, _if_unused("removal__what")),
}
_TASKS: Columns = {
    **_fields(TEXT, "id", "kind"),
    **_PLACE,
    "supervisor": (TEXT, Case(When(supervisor_id="", then=None), default=F("supervisor_id"))),
    **_fields(INTEGER, "spec_version"),
    **_fields(TEXT, "status", "goal"),
    **_fields(INTEGER, "indexers_wanted"),
    "published": (INTEGER, F("published")),
    "unparseable": (INTEGER, F("unparseable")),
    "segments": (INTEGER, F("segment_count")),
    "submitted_by": (TEXT, "submitted_by__username"),
    **_fields(TIME, "created_at", "launched_at", "started_at", "last_heartbeat_at", "ended_at"),
    "error": (TEXT, _message("error")),
    "message": (TEXT, _message("message")),
}
_QUARANTINE: Columns = {
    "id": (INTEGER, "id"),
    **_PLACE,
    "topic": (TEXT, "source__topic"),
    "topic_id": (TEXT, "source__topic_id"),
    "group": (TEXT, "source__group"),
    **_fields(INTEGER, "partition", "offset"),
    **_fields(TEXT, "place"),
    "timestamp": (TIME, Case(When(timestamp_ms__range=_YEARS_MS, then=_MS), default=None, output_field=TextField())),
    **_fields(INTEGER, "delivery_count"),
    **_fields(TEXT, "reason"),
    "error": (TEXT, _message("error")),
    "cause": (TEXT, "cause"),
    "task": (TEXT, "task_id"),
    "publish_id": (TEXT, F("publish_id")),
    "state": (TEXT, "state"),
    "key": (BYTES, _beginning("key")),
    "payload": (BYTES, _beginning("payload")),
    "payload_size": (INTEGER, Func(F("payload"), function="octet_length", output_field=IntegerField())),
    "masked": (TEXT, _masked_for),
    **_fields(TIME, "created_at", "ended_at"),
}
_PUBLISHES: Columns = {
    "publish_id": (TEXT, F("id")),
    "number": (INTEGER, Subquery(_NUMBER[:1])),
    "team": (TEXT, "fence__datasource__team__name"),
    "datasource": (TEXT, "fence__datasource__name"),
    "task": (TEXT, "fence__task_id"),
    "indexer": (INTEGER, "fence__number"),
    "epoch": (INTEGER, "epoch"),
    "rows": (INTEGER, Func(F("counters"), template="coalesce((%(expressions)s ->> 'published')::bigint, 0)")),
    "counters": (TEXT, F("counters")),
    "segment_ids": (TEXTS, F("segment_ids")),
    "published_at": (TIME, "created_at"),
}
_OFFSETS: Columns = {
    **KEY_FIELDS,
    "start_offset": (INTEGER, None),
    "end_offset": (INTEGER, None),
    "outcome": (TEXT, None),
    "segment_id": (TEXT, None),
    "publish_id": (TEXT, None),
    "task": (TEXT, None),
    "indexer": (INTEGER, None),
    "replay": (TRUTH, None),
    "at": (TIME, None),
}
_SUPERVISORS: dict[str, tuple[str, Callable[[Supervisor, Any], Any]]] = {
    "id": (TEXT, lambda s, _: s.pk),
    "team": (TEXT, lambda s, _: s.datasource.team.name),
    "datasource": (TEXT, lambda s, _: s.datasource.name),
    "version": (INTEGER, lambda s, _: s.version),
    "state": (TEXT, lambda s, _: s.state.value),
    "detailed_state": (TEXT, lambda s, _: s.detailed_state),
    "healthy": (TRUTH, lambda s, _: is_healthy(s)),
    "health": (TEXT, lambda _, health: health.code),
    "health_text": (TEXT, lambda _, health: health.text),
    "health_since": (TIME, lambda _, health: health.since),
    "lag": (INTEGER, lambda _, health: health.behind),
    "suspended": (TRUTH, lambda s, _: s.suspended),
    "terminated_at": (TIME, lambda s, _: s.terminated_at),
    "task_count": (INTEGER, lambda s, _: wanted_task_count(s.io_config, s.decided_task_count)),
    "replicas": (INTEGER, lambda s, _: s.io_config.replicas),
    "topic": (TEXT, lambda s, _: s.io_config.topic),
    "topic_pattern": (TEXT, lambda s, _: s.io_config.topicPattern),
    "group": (TEXT, lambda s, _: s.io_config.progress_name(s.owner)),
    "partitions": (INTEGER, lambda s, _: s.partitions),
    "current_task": (TEXT, lambda s, _: getattr(s, "current_task_id")),  # noqa: B009 - the selector adds it
    "failures": (INTEGER, lambda s, _: s.failures),
    "contacted_at": (TIME, lambda s, _: s.contacted_at),
    "created_at": (TIME, lambda s, _: s.created_at),
}


def _supervisors(user: User, use: SqlTableUse, hidden: Hidden) -> Iterator[Sequence[Any]]:
    """Those that REST lists. What their health is made of is in no column of the store."""
    for terminated in (False, True):
        listed = list_supervisors(user, terminated=terminated)
        found = list(narrow(listed, use, {"id": (TEXT, "id"), **_PLACE}))
        health = health_by_supervisor(user, found)
        for each in found:
            yield [value(each, health[each.pk]) for _, value in _SUPERVISORS.values()]


def _segments(user: User) -> QuerySet[Segment]:
    return Segment.objects.filter(visible(user, "datasource__team"))


def _quarantine(user: User) -> QuerySet[QuarantinedRecord]:
    return QuarantinedRecord.objects.filter(visible(user, "datasource__team"))


def _publishes(user: User) -> QuerySet[Publish]:
    return Publish.objects.filter(visible(user, "fence__datasource__team"), abandoned=False)


_WHERE = "Add a condition to WHERE, such as {}."
_LAST_DAY = _WHERE.format("created_at >= now() - INTERVAL 1 DAY")
SYS_TABLES = {
    "segments": _of_model(_SEGMENTS, _segments, _WHERE.format("used AND datasource = 'orders'"), ("path",)),
    "supervisors": SysTable(_SUPERVISORS, _supervisors, _WHERE.format("datasource = 'orders'")),
    "tasks": _of_model(_TASKS, list_tasks, _LAST_DAY, ("error", "message")),
    "offsets": SysTable(
        _OFFSETS,
        lambda user, use, _: offset_ranges(user, use),
        _WHERE.format("topic = 'orders' AND partition = 0"),
    ),
    "quarantine": _of_model(_QUARANTINE, _quarantine, _LAST_DAY, ("error", "key", "payload")),
    "publishes": _of_model(_PUBLISHES, _publishes, _WHERE.format("published_at >= now() - INTERVAL 1 DAY")),
}
