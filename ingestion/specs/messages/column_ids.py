"""The ids of a datasource's columns: what stands for a column in its files, and the messages that ask for it.

An id is that of a name *and* a type: what is a number here and a text there are two columns for who reads by ids. It is
never used again for another one. A list's values have an id of their own. Those of the time are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from ingestion.specs.base import Message
from ingestion.specs.messages.protocol import Column
from ingestion.specs.messages.publish_limits import MAX_COLUMNS
from ingestion.specs.time_column import TIME_ID

TIME = Column(name="__time", type="timestamp")


class ColumnId(Message):
    id: int = Field(gt=0)
    element: int | None = None  # of a list's values

    @property
    def last(self) -> int:
        """The highest id that it takes."""
        return self.element or self.id


class ColumnsRequest(Message):
    """Columns that are about to be written, each once: which ids have they? Those that have none get one."""

    columns: list[Column]

    @property
    def excess(self) -> str:
        """Why it is too much at once; empty when it is not."""
        count = len(self.columns)
        return f"It has {count:,} columns, and one message may have {MAX_COLUMNS:,}." if count > MAX_COLUMNS else ""


class ColumnsAnswer(Message):
    """In the order of the request."""

    ids: list[ColumnId]


def assign_ids(columns: Iterable[Column], last: int) -> list[ColumnId]:
    """New ids for these columns. ``last``: the highest that was handed out before, ``TIME_ID`` at least."""
    ids: list[ColumnId] = []
    for column in columns:
        if column == TIME:
            ids.append(ColumnId(id=TIME_ID))
            continue
        ids.append(ColumnId(id=last + 1, element=last + 2 if column.type == "strings" else None))
        last = ids[-1].last
    return ids
