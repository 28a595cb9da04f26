"""What a column holds: its nulls, distinct values, extremes and most frequent values, by one statement of SQL.

The statement is a user's like any other: masks, limits and the audit trail are those of ``running``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

from controlplane.common.errors import InvalidInput, NotFound, Unavailable
from controlplane.datasources.models import Datasource
from controlplane.query.running import BrokenOff, RunningQuery, run_query
from controlplane.query.tables import UserTable, find_tables
from controlplane.segments.columns import columns_of
from controlplane.segments.selectors.planning import latest_intervals
from controlplane.teams.models import User
from ingestion.specs.messages.sql import SqlColumn, SqlTableUse

DEFAULT_ROWS = 1_000_000
TOP = 10
LONGEST = 200  # characters of a value
_INTERVALS = 1_000  # that are looked at for the default range
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class TopValue:
    """A value, and how many rows have it; of a list, how often it occurs."""

    value: Any
    count: int


@dataclass(frozen=True)
class ColumnProfile:
    """One type of a column. A text longer than ``LONGEST`` is ``{"start", "size_bytes"}``, as in ``RowsAnswer``."""

    name: str  # in SQL
    type: str
    masked: str = ""  # the least role that sees it; nothing is read for others
    rows: int = 0
    nulls: int = 0
    values: int | None = None  # without nulls; of a list: its values. None: those of sketches are not read
    distinct: int | None = None  # exact below ``TOP``, else approximate
    min: Any = None
    max: Any = None
    top: list[TopValue] = field(default_factory=list)


@dataclass(frozen=True)
class Profile:
    """What all files of the range have by one name: more than one type if it has changed, the latest first."""

    column: str
    start: datetime | None
    end: datetime | None  # exclusive
    files: int  # that were read
    profiles: list[ColumnProfile]


def newest_range(datasource: Datasource) -> tuple[datetime | None, datetime | None]:
    """Whole minutes, with the newest rows: ``DEFAULT_ROWS`` at most, in whole intervals; of a larger interval a part.

    The part assumes that its rows are evenly distributed. ``(None, None)`` without segments.
    """
    spans = [
        (i.min_time, i.max_time, i.rows)
        for i in latest_intervals(datasource, None, None, _INTERVALS)
        if i.min_time is not None and i.max_time is not None
    ]
    if not spans:
        return None, None
    start, last, rows = spans[0]
    end = last.replace(second=0, microsecond=0) + _MINUTE
    if rows > DEFAULT_ROWS:
        start = max(start, end - max((end - start) * (DEFAULT_ROWS / rows), _MINUTE))
    else:
        sums = accumulate(rows for _, _, rows in spans)
        start = min(s for (s, _, _), total in zip(spans, sums, strict=True) if total <= DEFAULT_ROWS)
    return start.replace(second=0, microsecond=0), end


def read_profile(
    *, user: User, datasource: Datasource, column: str, start: datetime | None = None, end: datetime | None = None
) -> Profile:
    """Of rows with times in ``[start, end)``, by default of the newest. The caller has checked that the user sees it.

    Raises ``NotFound``, ``InvalidInput``, ``Conflict`` and ``Unavailable``.
    """
    if start is None and end is None:
        start, end = newest_range(datasource)
    elif start is not None and end is not None and start >= end:
        raise InvalidInput("The time range is empty: 'from' must be before 'to'.")
    files, profiles = 0, []
    table, found = find_column(user, datasource, column)
    for sql_column, kind in found:
        profile = ColumnProfile(sql_column.name, kind, table.masked.get(sql_column.name, ""))
        if not sql_column.masked:
            query, rows = _run(user, _statement(datasource, sql_column, start, end), column)
            files = len(query.tables[0].files.files)
            profile = _profile(profile, rows)
        profiles.append(profile)
    return Profile(column, start, end, files, profiles)


def find_column(user: User, datasource: Datasource, name: str) -> tuple[UserTable, list[tuple[SqlColumn, str]]]:
    """Its columns of this name with their types, the latest first. Raises ``NotFound``."""
    [table] = find_tables(user, [SqlTableUse(team=datasource.team.name, name=datasource.name)])
    types = {c.number: c.type for c in columns_of(datasource) if c.name == name}
    found = [(c, types[c.id]) for c in reversed(table.columns) if c.id in types]
    if not found and name == "__time":  # before its id is handed out
        found = [(c, "timestamp") for c in table.columns if c.name == name]
    if not found:
        raise NotFound(f"Datasource {datasource.name} has no column {name!r}.")
    return table, found


def _statement(datasource: Datasource, column: SqlColumn, start: datetime | None, end: datetime | None) -> str:
    edges = [(">=", start), ("<", end)]
    where = [f"__time {than} '{at.astimezone(UTC).isoformat()}'" for than, at in edges if at is not None]
    source = f"{_quoted(datasource.team.name)}.{_quoted(datasource.name)}"
    condition = " AND ".join(where) or "true"
    picked = f"SELECT {_quoted(column.name)} AS v FROM {source} WHERE {condition}"  # noqa: S608 - of quoted names
    if column.type == "BLOB":
        return f"SELECT count(*), count(v) FROM ({picked})"  # noqa: S608 - of quoted names and times
    is_text = column.type.startswith("VARCHAR")
    shown = ", ".join(
        f"left({value}, {LONGEST + 1}), strlen({value})" if is_text else f"{value}, NULL"
        for value in ("lowest", "highest", "top.v")
    )
    each = "SELECT unnest(v) AS v FROM picked" if column.type == "VARCHAR[]" else "SELECT v FROM picked"
    # The column is read for each use of it: keeping it would take more memory, and no less time.
    return (
        f"WITH picked AS NOT MATERIALIZED ({picked}), each AS NOT MATERIALIZED ({each}), "  # noqa: S608 - as above
        "facts AS (SELECT count(*) AS n, count(v) AS present FROM picked), "
        "summary AS (SELECT count(v) AS n, approx_count_distinct(v) AS different, min(v) AS lowest, max(v) AS highest"
        " FROM each), top AS (SELECT v, count(*) AS n FROM each WHERE v IS NOT NULL GROUP BY v"
        f" ORDER BY n DESC, v LIMIT {TOP}) "
        f"SELECT facts.n, present, summary.n, different, top.n, {shown} FROM facts CROSS JOIN summary"
        " LEFT JOIN top ON true ORDER BY top.n DESC, top.v"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _run(user: User, statement: str, column: str) -> tuple[RunningQuery, list[list[Any]]]:
    try:
        query = run_query(user=user, sql=statement, in_history=False)
        return query, json.loads(b"[%b]" % b"".join(query.chunks()))
    except InvalidInput as error:  # the statement is right: it meets a limit
        raise InvalidInput(
            f"Column {column!r} can't be profiled in this time range. Choose a shorter one. {error.detail}"
        ) from error
    except BrokenOff as error:
        raise Unavailable(f"The profile could not be read. {error}") from error


def _profile(column: ColumnProfile, rows: Sequence[Sequence[Any]]) -> ColumnProfile:
    count, present, *facts = rows[0]
    counted = replace(column, rows=count, nulls=count - present)
    if not facts:
        return counted
    top = [TopValue(_shown(*row[9:11]), row[4]) for row in rows if row[4] is not None]
    distinct = len(top) if len(top) < TOP else facts[1]
    extremes = {"min": _shown(*rows[0][5:7]), "max": _shown(*rows[0][7:9])}
    return replace(counted, values=facts[0], distinct=distinct, top=top, **extremes)


def _shown(value: Any, size_bytes: int | None) -> Any:
    is_cut = isinstance(value, str) and size_bytes is not None and len(value) > LONGEST
    return {"start": value[:LONGEST], "size_bytes": size_bytes} if is_cut else value
