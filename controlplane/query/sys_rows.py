"""Rows of the metadata store for one query: chosen by its conditions, and written to a file that it reads."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from django.core.exceptions import EmptyResultSet
from django.db import connection, transaction
from django.db.models import Model, QuerySet

from controlplane.common.errors import InvalidInput
from controlplane.common.text import storable
from controlplane.query.times import time_of
from ingestion.specs.messages.sql import SqlTableUse

MAX_ROWS = 1_000_000  # of a table of ``sys`` in one query
_ROWS_AT_ONCE = 1_000
_CONSTANTS: dict[str, type] = {"VARCHAR": str, "BIGINT": int, "BOOLEAN": bool}
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class Query:
    """SQL with its parameters; no SQL: no rows."""

    sql: str
    parameters: Sequence[Any] | Mapping[str, Any] = ()


Rows = Query | Iterator[Sequence[Any]]


def query_of(rows: QuerySet[Any, Any]) -> Query:
    """What a queryset asks."""
    try:
        return Query(*rows.query.get_compiler(connection=connection).as_sql())
    except EmptyResultSet:
        return Query("")


def narrow(rows: QuerySet[Row], use: SqlTableUse, fields: Mapping[str, tuple[str, str]]) -> QuerySet[Row]:
    """Without some that the statement does not need. ``fields``: by column, its type in DuckDB and its field."""
    for column, (kind, field) in fields.items():
        wanted = constants(use, column, kind)
        if wanted is not None:
            rows = rows.filter(**{f"{field}__in": wanted})
        if kind == "TIMESTAMPTZ":
            start, end = (time_of(at) for at in use.between.get(column, (None, None)))
            rows = rows.filter(**{f"{field}__gte": start}) if start else rows
            rows = rows.filter(**{f"{field}__lt": end}) if end else rows
    return rows


def constants(use: SqlTableUse, column: str, kind: str) -> list[str | int | bool] | None:
    """The values of which each row has one. None: any, or DuckDB would compare them otherwise than PostgreSQL."""
    wanted = use.equal.get(column)
    if wanted is None or any(type(value) is not _CONSTANTS.get(kind) for value in wanted):
        return None
    return None if any(isinstance(value, str) and not storable(value) for value in wanted) else wanted


def write_csv(
    place: Path, rows: Rows, *, seconds: float, most_bytes: int, check: Callable[[], None], too_many: str
) -> tuple[int, int]:
    """The number of rows, and bytes. ``check`` may end it, and ``too_many`` says what to do about too many rows.

    Raises ``InvalidInput``.
    """
    size = count = 0
    blocks = _copied(rows, seconds) if isinstance(rows, Query) else _formatted(rows)
    with place.open("wb") as file, closing(blocks):  # what is not copied to its end holds the connection
        for block, count in blocks:  # noqa: B007 - the last one is the whole
            size += file.write(block)
            if size > most_bytes:
                raise InvalidInput(f"{too_many} It has more than {most_bytes // 1024**2} MiB.")
            check()
    if count > MAX_ROWS:
        raise InvalidInput(f"{too_many} It has more than {MAX_ROWS:,} rows.")
    return count, size


def _copied(query: Query, seconds: float) -> Generator[tuple[bytes, int], None, None]:
    """PostgreSQL's CSV with the number of its rows, which is known with the last block."""
    if not query.sql:
        return
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {int(seconds * 1000)}")
            limited = f"COPY ({query.sql} LIMIT {MAX_ROWS + 1}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)"
            with cursor.cursor.copy(limited, query.parameters) as copied:
                for block in copied:
                    yield bytes(block), 0
            yield b"", cursor.cursor.rowcount
    except psycopg.errors.QueryCanceled:
        raise InvalidInput(
            f"The metadata store needs more than {seconds:g} s for a table of sys. Add conditions to WHERE."
        ) from None


def _formatted(rows: Iterable[Sequence[Any]]) -> Generator[tuple[bytes, int], None, None]:
    block: list[str] = []
    count = 0
    for row in rows:
        count += 1
        block.append(",".join(_cell(value) for value in row) + "\n")
        if len(block) == _ROWS_AT_ONCE:
            yield "".join(block).encode(errors="replace"), count
            block.clear()
        if count > MAX_ROWS:
            break
    yield "".join(block).encode(errors="replace"), count


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return '"' + str(value).replace('"', '""') + '"'
