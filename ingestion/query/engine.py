"""DuckDB for one statement: first to read and check it, without any file, then to run it on its files and no others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import duckdb

from ingestion.decode.engine import sql_literal
from ingestion.query.druid.translate import TableColumns, translate
from ingestion.query.druid.values import kind_of_type
from ingestion.query.duckdb_tree import check_tree
from ingestion.query.statement import Refused, Statement, plain_text, read_statement, view_name
from ingestion.query.stored_sketches import without_python
from ingestion.query.sys_conditions import add_sys_conditions
from ingestion.query.time_bounds import time_bounds
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.segments.numbered_files import NumberedFiles, OpenedFile
from ingestion.specs.messages.deep_storage import RegisteredFile, local_folder
from ingestion.specs.messages.sql import SqlColumn, SqlOrder, SqlStatement, SqlTable, SqlTableUse

THREADS = 2
_CHECKING_BYTES = 256 * 1024**2
_LONGEST_MESSAGE = 2_000  # characters
_GLOB = frozenset("*?[]{}")  # in a path, which DuckDB takes for a pattern


def read_checked(
    asked: SqlStatement, columns_of: TableColumns = lambda team, name: None
) -> tuple[Statement, list[SqlTableUse]]:
    """The statement, and the tables and times that it needs. Raises ``Refused``."""
    text = asked.sql if asked.druid is None else translate(asked.druid, asked.sql, columns_of)
    statement = read_statement(text)
    engine = _checking_engine(_zone(asked))
    check_tree(engine.execute("SELECT json_serialize_sql(?)", [statement.sql]).fetchall()[0][0])
    bounds = time_bounds(statement.tree, lambda value: _microseconds(engine, value))
    uses = [
        SqlTableUse(team=team, name=name, start_us=bounds[number].start_us, end_us=bounds[number].end_us)
        for number, (team, name) in enumerate(statement.tables)
    ]
    add_sys_conditions(statement.tree, uses, lambda value: _microseconds(engine, value))
    return statement, uses


@cache
def _checking_engine(zone: str) -> duckdb.DuckDBPyConnection:
    """It opens no files and keeps nothing: one serves all statements of a time zone."""
    engine = open_unlocked(external=False)
    for setting in (f"SET memory_limit = '{_CHECKING_BYTES}B'", *_lock(zone)):
        engine.execute(setting)
    return engine


# To open a database takes longer than most queries. A fork finds this one, a copy that no other query has seen.
_ready: list[duckdb.DuckDBPyConnection] = []


def read_with_columns(
    asked: SqlStatement, statement: Statement, tables: list[SqlTableUse], order: SqlOrder
) -> Statement:
    """The statement that runs: one of Druid's means something by the columns of its tables. Raises ``Refused``."""
    if asked.druid is None:
        return statement
    known = {
        (use.team, use.name): {column.name: kind_of_type(column.type) for column in table.columns}
        for use, table in zip(tables, order.tables, strict=True)
    }
    typed, uses = read_checked(asked, lambda team, name: known.get((team, name)))
    if [(use.team, use.name) for use in uses] != [(use.team, use.name) for use in tables]:
        raise Refused("The statement can't be translated: its tables are not found in it again.")
    return typed


def warm_up() -> None:
    """Have DuckDB and sqlglot make what they make once in a process: for its forks, which have none of its threads."""
    read_checked(
        SqlStatement(sql="SELECT 1 WHERE now() > '2026-01-01'", time_s=1, memory_bytes=2**27, temporary_bytes=1)
    )
    _ready.append(open_unlocked(external=True))


def _microseconds(engine: duckdb.DuckDBPyConnection, value: str) -> int | None:
    """A constant of a statement that is checked, as a time."""
    try:
        [(at,)] = engine.execute(f"SELECT epoch_us(CAST(({value}) AS TIMESTAMPTZ))").fetchall()
    except duckdb.Error:
        return None
    return at if isinstance(at, int) else None


def open_locked(asked: SqlStatement, order: SqlOrder) -> duckdb.DuckDBPyConnection:
    """DuckDB with a view for each table of the order, its files, and nothing else."""
    engine = _ready.pop() if _ready else open_unlocked(external=True)
    addresses = _addresses(engine, order)
    for setting in _settings(asked, order, [address for files in addresses for address in files]):
        engine.execute(setting)
    for number, (table, files) in enumerate(zip(order.tables, addresses, strict=True)):
        engine.execute(_view(number, table, files))
    for setting in _lock(_zone(asked)):
        engine.execute(setting)
    return engine


def _zone(asked: SqlStatement) -> str:
    return "UTC" if asked.druid is None else asked.druid.zone


def _lock(zone: str) -> tuple[str, str]:
    return f"SET TimeZone = {sql_literal(zone)}", "SET lock_configuration = true"


def open_unlocked(*, external: bool) -> duckdb.DuckDBPyConnection:
    """A new database in memory. Only an ``external`` one can be given files."""
    return duckdb.connect(
        ":memory:",
        config={
            "threads": 1,  # and none of DuckDB's own: a process with more than one can't be forked
            "async_threads": 0,
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
            "enable_external_access": "true" if external else "false",
        },
    )


def _settings(asked: SqlStatement, order: SqlOrder, addresses: Sequence[str]) -> Iterator[str]:
    """In this order: what may be read can't be said once access is cut."""
    yield f"SET memory_limit = '{asked.memory_bytes}B'"
    yield f"SET threads = {THREADS}"
    yield f"SET temp_directory = {sql_literal(order.scratch)}"
    yield f"SET max_temp_directory_size = '{asked.temporary_bytes}B'"
    written = [table.csv for table in order.tables if table.csv]
    yield f"SET allowed_paths = [{', '.join(map(sql_literal, [*addresses, *written]))}]"
    yield "SET enable_external_access = false"


def _addresses(engine: duckdb.DuckDBPyConnection, order: SqlOrder) -> list[list[str]]:
    """What DuckDB calls the files of each table: paths of a local folder, numbers elsewhere."""
    folder = local_folder(order.deep_storage)
    if folder is not None and not _GLOB & set(str(folder)):
        return [[str(folder / path) for path, _ in table.files] for table in order.tables]
    storage, numbered = open_deep_storage(order.deep_storage), NumberedFiles()
    engine.register_filesystem(numbered)
    found: list[list[str]] = []
    count = 0
    for table in order.tables:
        found.append([])
        for path, size_bytes in table.files:
            registered = RegisteredFile(path=path, size_bytes=size_bytes, sha256="")
            numbered.keep(count, OpenedFile(storage, registered, None))
            found[-1].append(NumberedFiles.address(count))
            count += 1
    return found


def _view(number: int, table: SqlTable, files: Sequence[str]) -> str:
    """Columns are found by their ids. A masked one is not even read."""
    if table.csv:
        return f"CREATE VIEW {view_name(number)} AS {_read_csv(table)}"
    shown = ", ".join(f"{_value(column, bool(files))} AS {_quoted(column.name)}" for column in table.columns)
    source = _read(table, files) if files else "(SELECT 1) WHERE false"
    return f"CREATE VIEW {view_name(number)} AS SELECT {shown} FROM {source}"  # noqa: S608 - of quoted names and numbers


def _value(column: SqlColumn, present: bool) -> str:
    return f"c{column.id}" if present and not column.masked else f"CAST(NULL AS {column.type})"


def _read(table: SqlTable, files: Sequence[str]) -> str:
    fields = ", ".join(
        f"{c.id}: {{name: 'c{c.id}', type: '{c.type}', default_value: NULL}}" for c in table.columns if not c.masked
    )
    return f"read_parquet([{', '.join(map(sql_literal, files))}], schema=MAP {{{fields}}})"


# Of a CSV: how a type is read, and made of what was read.
_FROM_TEXT = {"BLOB": "unhex(substr({}, 3))", "VARCHAR[]": """from_json({}, '["VARCHAR"]')"""}


def _read_csv(table: SqlTable) -> str:
    read = {f"c{c.id}": "VARCHAR" if c.type in _FROM_TEXT else c.type for c in table.columns}
    shown = ", ".join(f"{_FROM_TEXT.get(c.type, '{}').format(f'c{c.id}')} AS {_quoted(c.name)}" for c in table.columns)
    columns = ", ".join(f"{name}: '{kind}'" for name, kind in read.items())
    options = (
        "auto_detect = false, header = false, delim = ',', quote = '\"', escape = '\"', new_line = '\\n', "
        "nullstr = '', allow_quoted_nulls = false, parallel = false"
    )
    source = f"read_csv({sql_literal(table.csv)}, {options}, columns = {{{columns}}})"
    return f"SELECT {shown} FROM {source}"  # noqa: S608 - of quoted names


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# A statement that is checked names no file: these are of a segment's.
_OF_FILES = (duckdb.IOException, duckdb.PermissionException, duckdb.FatalException, duckdb.InternalException)


def refusal_of(error: duckdb.Error, asked: SqlStatement, order: SqlOrder) -> tuple[str, bool]:
    """What the user is told of an error of DuckDB's, and whether the statement is not at fault. Names no file."""
    if isinstance(error, duckdb.OutOfMemoryException):
        more = f" {order.limits.more_memory}" if order.limits else ""
        memory, files = asked.memory_bytes // 1024**2, asked.temporary_bytes // 1024**2
        return f"The query needs more than {memory} MiB of memory, or {files} MiB of temporary files.{more}", False
    text = str(error)
    if isinstance(error, _OF_FILES) or _names_file(text, order):
        return "A segment's file can't be read. The log of the web process has the cause.", True
    return shorten(without_python(plain_text(text)).strip()), False


def shorten(text: str) -> str:
    """A message may quote a value of any length."""
    return text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_MESSAGE] + "…"


def _names_file(text: str, order: SqlOrder) -> bool:
    """Whether it is of a local file, or of what reads numbered ones."""
    folder = local_folder(order.deep_storage)
    names = ["Traceback (most recent call last)", NumberedFiles.address(0).rstrip("0"), order.scratch]
    return any(name in text for name in ([*names, str(folder)] if folder is not None else names))


_OF_PLAN = {"operator", "type", "name", "children", "extra_info", "timing", "intermediate_rows", "rows_scanned"}
_OF_PLAN |= {"query", "total_rows_scanned", "total_time", "io", "total_bytes_read"}
_OF_PLAN |= {"Filters", "Projections", "Expressions", "Conditions", "Groups", "Aggregates", "Join Type", "Order By"}
_OF_PLAN |= {"Estimated Cardinality", "Total Files Read"}


def plan_of(engine: duckdb.DuckDBPyConnection, statement: Statement) -> dict[str, Any]:
    """DuckDB's plan without the names of files; of a statement that is run, with what it has read."""
    is_run = statement.explain == "analyze"
    options = "ANALYZE, FORMAT json" if is_run else "FORMAT json"
    text = engine.execute(f"EXPLAIN ({options}) {statement.sql}").fetchall()[0][1]
    plan = json.loads(text, object_hook=lambda node: {name: node[name] for name in node if name in _OF_PLAN})
    if not is_run:
        return {"operators": plan}
    return {
        "operators": plan["operator"],
        "rows_read": plan["query"]["total_rows_scanned"],
        "seconds": plan["query"]["total_time"],
        "bytes_read": plan["io"]["total_bytes_read"],
    }
