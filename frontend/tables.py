"""Tables of lists: columns that may be sorted by (in the address), hidden, and named on narrow screens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TypeVar

from django.db.models import F
from django.db.models.expressions import OrderBy

from controlplane.common.errors import InvalidInput

R = TypeVar("R")


@dataclass(frozen=True)
class Column:
    """One column."""

    name: str
    label: str
    sorts: str = ""  # by this field; empty where it can't be sorted by
    number: bool = False
    is_shown: bool = True  # at first; the reader may choose
    fixed: bool = False  # always there
    descending_first: bool = False  # the first click sorts with the largest first
    has_hidden_head: bool = False  # what can be done with a row: its head is read out, not shown
    unsortable_reason: str = ""  # why it can't be sorted by, where somebody would expect it


def read_sort(query: Mapping[str, str], sorts: Sequence[str], default: str, key: str = "sort") -> str:
    """What the address asks for by ``key``, or the default. Raises ``InvalidInput`` for what is not known."""
    sort = query.get(key, "") or default
    if sort not in sorts:
        raise InvalidInput(f"This list can't be sorted by {sort[:100]!r}, but by one of: {', '.join(sorts)}.")
    return sort


@dataclass(frozen=True)
class Shape:
    """A table's columns, and what it is sorted by when nobody says."""

    name: str
    columns: tuple[Column, ...]
    default: str  # a column, with ``-`` before it for the largest first
    # Fields that order the rows which are equal in that, the last of them unique.
    tie_breakers: tuple[str, ...]
    key: str = "sort"  # in the address; another for the second table of a page

    def without_columns(self, *names: str) -> Shape:
        """Without columns that tell nothing this time."""
        return replace(self, columns=tuple(column for column in self.columns if column.name not in names))

    @property
    def static(self) -> Table:
        """Without links in its heads, for a page that can't sort it."""
        return Table(self, self.default, is_static=True)

    def table_for(self, query: Mapping[str, str]) -> Table:
        """The table as the address (``key``) asks for it. Raises ``InvalidInput`` for a sort that there is not."""
        named = [column.name for column in self.columns if column.sorts]
        return Table(self, read_sort(query, (*named, *(f"-{name}" for name in named)), self.default, self.key))


@dataclass(frozen=True)
class Head:
    """A column's head: where a click leads, and how the table is sorted by it now (an aria-sort, or empty)."""

    column: Column
    sort: str
    direction: str


@dataclass(frozen=True)
class Table:
    """One request's."""

    shape: Shape
    sort: str
    is_static: bool = False

    @property
    def name(self) -> str:
        return self.shape.name

    @property
    def order(self) -> list[str]:
        """Fields to order by, the last one telling rows apart."""
        down = self.sort.startswith("-")
        field = self._column(self.sort.removeprefix("-")).sorts
        rest = [other for other in self.shape.tie_breakers if other.removeprefix("-") != field]
        return [f"-{field}" if down else field, *rest]

    @property
    def ordering(self) -> list[OrderBy]:
        """``order`` for a query of numbered pages: what has no value comes last, whichever way it is sorted."""
        return [F(f[1:]).desc(nulls_last=True) if f.startswith("-") else F(f).asc(nulls_last=True) for f in self.order]

    def arranged(self, rows: Iterable[R]) -> list[R]:
        """Rows of no query, in the same way."""
        ordered = list(rows)
        for field in reversed(self.order):
            value = attrgetter(field.removeprefix("-"))
            with_value = sorted((r for r in ordered if value(r) is not None), key=value, reverse=field.startswith("-"))
            ordered = [*with_value, *(r for r in ordered if value(r) is None)]
        return ordered

    @property
    def header_cells(self) -> list[Head]:
        return [self._head(column) for column in self.shape.columns]

    @property
    def choices(self) -> list[Column]:
        """The columns that may be hidden."""
        return [column for column in self.shape.columns if not column.fixed]

    def _column(self, name: str) -> Column:
        return next(column for column in self.shape.columns if column.name == name)

    def _head(self, column: Column) -> Head:
        up, down = column.name, f"-{column.name}"
        now = {up: "ascending", down: "descending"}.get(self.sort, "")
        if self.is_static or not column.sorts:
            return Head(column, "", now)
        return Head(column, down if now == "ascending" or (not now and column.descending_first) else up, now)
