"""Druid's tables of a cluster for SQL: INFORMATION_SCHEMA and sys, with what the user may see."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from controlplane.api.druid import segment_shapes, shapes
from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.query.sys_tables import SysTable
from controlplane.query.tables import find_tables, table_columns
from controlplane.segments.models import Segment
from controlplane.supervisors.selectors import list_supervisors
from controlplane.tasks.selectors import list_tasks
from controlplane.teams.models import User
from ingestion.specs.messages.sql import SqlColumn, SqlTableUse

MAX_ROWS = 20_000
_FEWER = "Use Headgate's REST API."
Row = dict[str, Any]
# A name with : has a BIGINT, others a VARCHAR.
_COLUMNS = {
    "INFORMATION_SCHEMA.SCHEMATA": "CATALOG_NAME SCHEMA_NAME SCHEMA_OWNER DEFAULT_CHARACTER_SET_CATALOG "
    "DEFAULT_CHARACTER_SET_SCHEMA DEFAULT_CHARACTER_SET_NAME SQL_PATH",
    "INFORMATION_SCHEMA.TABLES": "TABLE_CATALOG TABLE_SCHEMA TABLE_NAME TABLE_TYPE IS_JOINABLE IS_BROADCAST",
    "INFORMATION_SCHEMA.COLUMNS": "TABLE_CATALOG TABLE_SCHEMA TABLE_NAME COLUMN_NAME ORDINAL_POSITION: COLUMN_DEFAULT "
    "IS_NULLABLE DATA_TYPE CHARACTER_MAXIMUM_LENGTH CHARACTER_OCTET_LENGTH NUMERIC_PRECISION: "
    "NUMERIC_PRECISION_RADIX: NUMERIC_SCALE: DATETIME_PRECISION: CHARACTER_SET_NAME COLLATION_NAME JDBC_TYPE:",
    "sys.segments": "segment_id datasource start end size: version partition_num: num_replicas: num_rows: is_active: "
    "is_published: is_available: is_realtime: is_overshadowed: shard_spec dimensions metrics last_compaction_state "
    "replication_factor:",
    "sys.servers": "server host plaintext_port: tls_port: server_type tier curr_size: max_size: is_leader: start_time",
    "sys.tasks": "task_id group_id type datasource created_time queue_insertion_time status runner_status duration: "
    "location host plaintext_port: tls_port: error_msg",
    "sys.supervisors": "supervisor_id state detailed_state healthy: type source suspended: spec",
}
# By DuckDB's type: SQL's type in Druid, and its number in JDBC.
_TYPES = {"BIGINT": ("BIGINT", -5), "DOUBLE": ("DOUBLE", 8), "BOOLEAN": ("BOOLEAN", 16)}
_TYPES |= {"TIMESTAMPTZ": ("TIMESTAMP", 93), "BLOB": ("OTHER", 1111)}
_DRUID = {"CATALOG_NAME": "druid", "TABLE_CATALOG": "druid"}


def system_table(use: SqlTableUse) -> SysTable | None:
    """None of a datasource. Raises ``InvalidInput`` if there is no such table; its rows do if there are too many."""
    if use.team not in ("INFORMATION_SCHEMA", "sys"):
        return None
    name = f"{use.team}.{use.name.upper() if use.team != 'sys' else use.name.lower()}"
    if name not in _ROWS:
        raise InvalidInput(f"There is no table {use.team}.{use.name}.")
    return SysTable(_columns(name), lambda user, use, hidden: _rows(name, user), _FEWER)


def _rows(name: str, user: User) -> Iterator[Sequence[Any]]:
    for count, row in enumerate(_ROWS[name](user), start=1):
        if count > MAX_ROWS:
            raise InvalidInput(f"{name} has more than {MAX_ROWS:,} rows. {_FEWER}")
        yield [row.get(column) for column in _columns(name)]


def _columns(name: str) -> dict[str, tuple[str, None]]:
    words = _COLUMNS[name].split()
    return {word.rstrip(":"): ("BIGINT" if word.endswith(":") else "VARCHAR", None) for word in words}


def _datasources(user: User) -> list[Datasource]:
    found = list(Datasource.objects.visible_to(user).present().order_by("name")[: MAX_ROWS + 1])
    return [d for d in found if d.pk in _with_segments(found)]


def _with_segments(datasources: list[Datasource]) -> set[int]:
    """Those with rows: Druid has no table without segments."""
    return set(
        Datasource.objects.filter(pk__in=[d.pk for d in datasources], intervals__segments__gt=0)
        .values_list("pk", flat=True)
        .distinct()
    )


def _schemata(user: User) -> Iterator[Row]:
    for name in ("INFORMATION_SCHEMA", "druid", "sys"):
        yield {**_DRUID, "SCHEMA_NAME": name}


def _tables(user: User) -> Iterator[Row]:
    common = {**_DRUID, "IS_JOINABLE": "NO", "IS_BROADCAST": "NO"}
    for datasource in _datasources(user):
        yield {**common, "TABLE_SCHEMA": "druid", "TABLE_NAME": datasource.name, "TABLE_TYPE": "TABLE"}
    for name in _COLUMNS:
        schema, _, table = name.partition(".")
        yield {**common, "TABLE_SCHEMA": schema, "TABLE_NAME": table, "TABLE_TYPE": "SYSTEM_TABLE"}


def _all_columns(user: User) -> Iterator[Row]:
    datasources = _datasources(user)
    uses = [SqlTableUse(team=d.team.name, name=d.name) for d in datasources]
    for datasource, table in zip(datasources, find_tables(user, uses), strict=True):
        yield from _of_table("druid", datasource.name, table.columns)
    for name in _COLUMNS:
        schema, _, table_name = name.partition(".")
        yield from _of_table(schema, table_name, table_columns(_columns(name)))


def _of_table(schema: str, table: str, columns: list[SqlColumn]) -> Iterator[Row]:
    for position, column in enumerate(columns, start=1):
        kind, number = _TYPES.get(column.type, ("VARCHAR", 12))
        yield {
            **_DRUID,
            "TABLE_SCHEMA": schema,
            "TABLE_NAME": table,
            "COLUMN_NAME": column.name,
            "ORDINAL_POSITION": position,
            "COLUMN_DEFAULT": "",
            "IS_NULLABLE": "NO" if column.name == "__time" else "YES",
            "DATA_TYPE": kind,
            "JDBC_TYPE": number,
        }


def _segments(user: User) -> Iterator[Row]:
    """Those in use. Each can be read, so it is shown as loaded once."""
    datasources = Datasource.objects.visible_to(user).present()
    used = Segment.objects.filter(datasource__in=datasources, used=True).select_related("datasource")
    segments = list(used.order_by("datasource__name", "interval_start", "partition_num")[: MAX_ROWS + 1])
    for segment, shape in zip(segments, segment_shapes.data_segments(segments), strict=True):
        yield {
            "segment_id": shape["identifier"],
            "datasource": segment.datasource.name,
            "start": shapes.instant(segment.interval_start),
            "end": shapes.instant(segment.interval_end),
            "size": segment.size_bytes,
            "version": segment.version,
            "partition_num": segment.partition_num,
            "num_rows": segment.rows,
            **dict.fromkeys(("num_replicas", "is_active", "is_published", "is_available", "replication_factor"), 1),
            **dict.fromkeys(("is_realtime", "is_overshadowed"), 0),
            "shard_spec": json.dumps(shape["shardSpec"]),
            "dimensions": json.dumps(shape["dimensions"].split(",") if shape["dimensions"] else []),
            "metrics": json.dumps(shape["metrics"].split(",") if shape["metrics"] else []),
        }


def _servers(user: User) -> Iterator[Row]:
    """None: readers use deep storage."""
    yield from ()


def _tasks(user: User) -> Iterator[Row]:
    for task in list_tasks(user)[:MAX_ROWS]:
        shape = shapes.task_status(task)
        yield {
            "task_id": shape["id"],
            "group_id": shape["groupId"],
            "type": shape["type"],
            "datasource": shape["dataSource"],
            "created_time": shape["createdTime"],
            "queue_insertion_time": shape["queueInsertionTime"],
            "status": shape["status"],
            "runner_status": shape["runnerStatusCode"],
            "duration": shape["duration"],
            "plaintext_port": -1,
            "tls_port": -1,
            "error_msg": shape["errorMsg"],
        }


def _supervisors(user: User) -> Iterator[Row]:
    for supervisor in list_supervisors(user):
        shape = shapes.supervisor_full(supervisor)
        yield {
            "supervisor_id": shape["id"],
            "state": shape["state"],
            "detailed_state": shape["detailedState"],
            "healthy": int(shape["healthy"]),
            "type": shape["spec"].get("type"),
            "source": supervisor.io_config.topic,
            "suspended": int(shape["suspended"]),
            "spec": json.dumps(shape["spec"]),
        }


_ROWS: dict[str, Callable[[User], Iterator[Row]]] = {
    "INFORMATION_SCHEMA.SCHEMATA": _schemata,
    "INFORMATION_SCHEMA.TABLES": _tables,
    "INFORMATION_SCHEMA.COLUMNS": _all_columns,
    "sys.segments": _segments,
    "sys.servers": _servers,
    "sys.tasks": _tasks,
    "sys.supervisors": _supervisors,
}
