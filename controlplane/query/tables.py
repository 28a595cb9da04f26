"""The tables of a statement as its user sees them: another team's are not found, and masked columns are NULL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.catalog.columns import highest_id, table_schema
from controlplane.common.errors import FieldError, NotFound
from controlplane.datasources.masking import hidden_columns, hidden_records
from controlplane.datasources.models import Datasource
from controlplane.query.sys_tables import SYS_TABLES
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
    """A datasource, or a table of ``sys``, and its columns for one user."""

    team: str
    name: str
    datasource: Datasource | None  # None: of ``sys``
    columns: list[SqlColumn]
    masked: dict[str, str]  # the names of columns that hide values, each with the least role that sees them

    @property
    def shown_name(self) -> str:
        """How an answer names it before its masked columns."""
        return self.name if self.datasource is not None else f"{SYS}.{self.name}"


def find_tables(user: User, uses: Sequence[SqlTableUse]) -> list[UserTable]:
    """In the order of ``uses``. Raises ``NotFound``."""
    of_sys = {use.name: _sys_table(user, use.name.lower()) for use in uses if is_of_sys(use)}
    names = {use.name for use in uses}
    visible = Datasource.objects.visible_to(user).present().filter(name__in=names).select_related("team")
    found = {datasource.name: datasource for datasource in visible}
    for use in uses:
        if is_of_sys(use):
            continue
        datasource = found.get(use.name)
        if datasource is None or use.team not in ("", datasource.team.name):
            name = f"{use.team}.{use.name}" if use.team else use.name
            of_sys_text = f" The tables of {SYS} are {', '.join(SYS_TABLES)}." if use.team.lower() == SYS else ""
            raise NotFound(
                f"There is no datasource {name!r} that you can read.{of_sys_text}",
                [FieldError("/query", "unknown table", name)],
            )
    named = {use.name for use in uses if not is_of_sys(use)}
    tables = {name: _user_table(user, found[name]) for name in named}
    return [of_sys[use.name] if is_of_sys(use) else tables[use.name] for use in uses]


def is_of_sys(use: SqlTableUse) -> bool:
    """Whether it is a table about Headgate itself: a datasource of this name, of a team ``sys``, is not."""
    return use.team.lower() == SYS and use.name.lower() in SYS_TABLES


def _sys_table(user: User, name: str) -> UserTable:
    table = SYS_TABLES[name]
    columns = [SqlColumn(id=n, name=c, type=kind) for n, (c, (kind, _)) in enumerate(table.columns.items())]
    hidden = hidden_records(user) if table.masked else {}
    roles = {
        hidden[pk] for pk in Datasource.objects.visible_to(user).filter(pk__in=hidden).values_list("pk", flat=True)
    }
    masked = dict.fromkeys(table.masked, Role.ADMIN.value if Role.ADMIN in roles else Role.OPERATOR.value)
    return UserTable(SYS, name, None, columns, masked if roles else {})


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
