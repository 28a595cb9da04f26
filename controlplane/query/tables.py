"""The tables of a statement as its user sees them: another team's are not found, and masked columns are NULL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.catalog.columns import highest_id, table_schema
from controlplane.common.errors import FieldError, NotFound
from controlplane.datasources.masking import hidden_columns, hidden_records
from controlplane.datasources.models import Datasource
from controlplane.query.sys_tables import SYS_TABLES, Columns, SysTable
from controlplane.segments.columns import columns_of
from controlplane.segments.models import Column
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, may
from controlplane.teams.roles import Role
from ingestion.specs.messages.newest_rows import columns_overlap
from ingestion.specs.messages.sql import SYS, SqlColumn, SqlTableUse

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
    """A datasource, or a table about Headgate itself, and its columns for one user."""

    team: str
    name: str
    datasource: Datasource | None  # None: of ``system``
    columns: list[SqlColumn]
    masked: dict[str, str]  # the names of columns that hide values, each with the least role that sees them
    system: SysTable | None = None

    @property
    def shown_name(self) -> str:
        """How an answer names it before its masked columns."""
        return self.name if self.system is None else f"{self.team}.{self.name}"


def sys_table(use: SqlTableUse) -> SysTable | None:
    """The table about Headgate itself; None of a datasource. No team has the name ``sys``."""
    return SYS_TABLES.get(use.name.lower()) if use.team.lower() == SYS else None


def find_tables(
    user: User, uses: Sequence[SqlTableUse], system: Callable[[SqlTableUse], SysTable | None] = sys_table
) -> list[UserTable]:
    """In the order of ``uses``. ``system`` finds those that are no datasource. Raises ``NotFound``."""
    names = {use.name for use in uses}
    visible = Datasource.objects.visible_to(user).present().filter(name__in=names).select_related("team")
    found = {datasource.name: datasource for datasource in visible}
    tables: dict[tuple[str, str], UserTable] = {}
    for use in uses:
        if (use.team, use.name) in tables:
            continue
        table, datasource = system(use), found.get(use.name)
        if table is not None:
            tables[use.team, use.name] = _sys_table(user, use, table)
        elif datasource is not None and use.team in ("", datasource.team.name):
            tables[use.team, use.name] = _user_table(user, datasource)
        else:
            raise _not_found(use)
    return [tables[use.team, use.name] for use in uses]


def _not_found(use: SqlTableUse) -> NotFound:
    name = f"{use.team}.{use.name}" if use.team else use.name
    of_sys = f" The tables of {SYS} are {', '.join(SYS_TABLES)}." if use.team.lower() == SYS else ""
    return NotFound(
        f"There is no datasource {name!r} that you can read.{of_sys}", [FieldError("/query", "unknown table", name)]
    )


def _sys_table(user: User, use: SqlTableUse, table: SysTable) -> UserTable:
    hidden = hidden_records(user) if table.masked else {}
    roles = {
        hidden[pk] for pk in Datasource.objects.visible_to(user).filter(pk__in=hidden).values_list("pk", flat=True)
    }
    masked = dict.fromkeys(table.masked, Role.ADMIN.value if Role.ADMIN in roles else Role.OPERATOR.value)
    columns = table_columns(table.columns)
    return UserTable(use.team.lower(), use.name.lower(), None, columns, masked if roles else {}, table)


def table_columns(columns: Columns) -> list[SqlColumn]:
    """Those of a table that is no datasource."""
    return [SqlColumn(id=number, name=name, type=kind) for number, (name, (kind, _)) in enumerate(columns.items())]


def _user_table(user: User, datasource: Datasource) -> UserTable:
    stored = list(columns_of(datasource))
    hidden = hidden_columns(user, datasource)
    roles = {c.number: _role_that_sees(c.name, hidden) for c in stored}
    if not may(user, Action.OPERATE, datasource.team):
        roles |= {c.number: Role.OPERATOR for c in stored if c.type not in _SEEN_BY_VIEWERS and not roles[c.number]}
    columns = sql_columns(stored, {number for number, role in roles.items() if role})
    masked = {c.name: str(roles[c.id]) for c in columns if c.masked}
    return UserTable(datasource.team.name, datasource.name, datasource, columns, masked)


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
