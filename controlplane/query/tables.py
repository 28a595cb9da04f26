"""The tables of a statement as its user sees them: another team's are not found, and masked columns are NULL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.catalog.columns import highest_id, table_schema
from controlplane.common.errors import FieldError, NotFound
from controlplane.datasources.masking import hidden_columns
from controlplane.datasources.models import Datasource
from controlplane.segments.columns import columns_of
from controlplane.segments.models import Column
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, may
from controlplane.teams.roles import Role
from ingestion.specs.messages.newest_rows import columns_overlap
from ingestion.specs.messages.sql import SqlColumn, SqlTableUse

_TYPES = {
    "string": "VARCHAR",
    "long": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "timestamptz": "TIMESTAMPTZ",
    "binary": "BLOB",
}
# What a viewer sees of rows, here as in the newest rows.
_SEEN_BY_VIEWERS = frozenset({"long", "double", "boolean", "timestamp"})


@dataclass(frozen=True)
class UserTable:
    """A datasource, and its columns for one user."""

    datasource: Datasource
    columns: list[SqlColumn]
    masked: dict[str, str]  # the names of columns that are NULL, each with the least role that sees it


def find_tables(user: User, uses: Sequence[SqlTableUse]) -> list[UserTable]:
    """In the order of ``uses``. Raises ``NotFound``."""
    names = {use.name for use in uses}
    visible = Datasource.objects.visible_to(user).present().filter(name__in=names).select_related("team")
    found = {datasource.name: datasource for datasource in visible}
    for use in uses:
        datasource = found.get(use.name)
        if datasource is None or use.team not in ("", datasource.team.name):
            name = f"{use.team}.{use.name}" if use.team else use.name
            raise NotFound(
                f"There is no datasource {name!r} that you can read.", [FieldError("/query", "unknown table", name)]
            )
    tables = {name: _user_table(user, datasource) for name, datasource in found.items()}
    return [tables[use.name] for use in uses]


def _user_table(user: User, datasource: Datasource) -> UserTable:
    stored = list(columns_of(datasource))
    hidden = hidden_columns(user, datasource)
    roles = {c.number: _role_that_sees(c.name, hidden) for c in stored}
    if not may(user, Action.OPERATE, datasource.team):
        roles |= {c.number: Role.OPERATOR for c in stored if c.type not in _SEEN_BY_VIEWERS and not roles[c.number]}
    columns = sql_columns(stored, {number for number, role in roles.items() if role})
    masked = {c.name: str(roles[c.id]) for c in columns if c.masked}
    return UserTable(datasource, columns, masked)


def _role_that_sees(column: str, hidden: Mapping[str, str]) -> str:
    """The least role; empty if the column is not masked. Masks are paths, see ``RowsOrder.role_that_sees``."""
    roles = {role for name, role in hidden.items() if columns_overlap(name, column)}
    return Role.ADMIN if Role.ADMIN in roles else next(iter(roles), "")


def sql_columns(stored: Sequence[Column], masked: set[int]) -> list[SqlColumn]:
    """Those of the Iceberg table. Pure. DuckDB ignores case: a name that differs by case alone has ``_`` at its end."""
    taken: set[str] = set()
    columns = []
    for field in table_schema(stored, highest_id(stored))["fields"]:
        name = field["name"]
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        columns.append(SqlColumn(id=field["id"], name=name, type=_type(field["type"]), masked=field["id"] in masked))
    return columns


def _type(kind: str | dict[str, Any]) -> str:
    return _TYPES[kind] if isinstance(kind, str) else "VARCHAR[]"
