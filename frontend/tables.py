"""Tables of lists: columns that may be sorted by (in the address), hidden, and named on narrow screens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controlplane.common.errors import InvalidInput


@dataclass(frozen=True)
class Column:
    """One column."""

    name: str
    label: str
    sorts: str = ""  # by this field; empty where it can't be sorted by
    number: bool = False
    shown: bool = True  # at first; the reader may choose
    fixed: bool = False  # always there
    falls: bool = False  # the first click sorts with the largest first


def asked_sort(query: Mapping[str, str], known: Sequence[str], default: str) -> str:
    """What the address (``sort``) asks for, or the default. Raises ``InvalidInput`` for what is not known."""
    asked = query.get("sort", "") or default
    if asked not in known:
        raise InvalidInput(f"This list can't be sorted by {asked[:100]!r}, but by one of: {', '.join(known)}.")
    return asked


@dataclass(frozen=True)
class Shape:
    """A table's columns, and what it is sorted by when nobody says."""

    name: str
    columns: tuple[Column, ...]
    default: str  # a column, with ``-`` before it for the largest first
    # Fields that order the rows which are equal in that, the last of them unique.
    last: tuple[str, ...]

    def asked(self, query: Mapping[str, str]) -> Table:
        """The table as the address (``sort``) asks for it. Raises ``InvalidInput`` for a sort that there is not."""
        named = [column.name for column in self.columns if column.sorts]
        return Table(self, asked_sort(query, (*named, *(f"-{name}" for name in named)), self.default))


@dataclass(frozen=True)
class Head:
    """A column's head: where a click leads, and how the table is sorted by it now (an aria-sort, or empty)."""

    column: Column
    sort: str
    now: str


@dataclass(frozen=True)
class Table:
    """One request's."""

    shape: Shape
    sort: str

    @property
    def name(self) -> str:
        return self.shape.name

    @property
    def order(self) -> list[str]:
        """Fields to order by, the last one telling rows apart."""
        down = self.sort.startswith("-")
        field = self._column(self.sort.removeprefix("-")).sorts
        rest = [other for other in self.shape.last if other.removeprefix("-") != field]
        return [f"-{field}" if down else field, *rest]

    @property
    def heads(self) -> list[Head]:
        return [self._head(column) for column in self.shape.columns]

    @property
    def choices(self) -> list[Column]:
        """The columns that may be hidden."""
        return [column for column in self.shape.columns if not column.fixed]

    def _column(self, name: str) -> Column:
        return next(column for column in self.shape.columns if column.name == name)

    def _head(self, column: Column) -> Head:
        up, down = column.name, f"-{column.name}"
        if self.sort == up:
            return Head(column, down, "ascending")
        if self.sort == down:
            return Head(column, up, "descending")
        return Head(column, (down if column.falls else up) if column.sorts else "", "")
