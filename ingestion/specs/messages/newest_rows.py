"""The messages between who is asked for a datasource's newest rows and the process that reads them: one each way, JSON.

The control plane sends a ``RowsOrder``; the process answers with a ``RowsAnswer`` and ends.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ingestion.specs.base import Message
from ingestion.specs.messages.deep_storage import RegisteredFile

MAX_ROWS = 500
MAX_FILES = 200
MAX_CELLS = 200_000  # rows beyond are not asked for: a table of a thousand columns has fewer
MAX_TEXT = 1_000  # characters of one value
MAX_ANSWER = 8 * 1024 * 1024  # characters of all values together


class RowsOrder(Message):
    """Which rows: the ``limit`` latest of these files, with times in ``[start_ms, end_ms)``."""

    deep_storage: str
    files: list[RegisteredFile]  # in the order of their last rows, the latest first
    last_ms: list[int]  # the time of each file's last row
    start_ms: int | None = None
    end_ms: int | None = None
    limit: int
    # Only rows with these values, by column; times are milliseconds. A column of other types than a text, a number, a
    # boolean and a time is not compared.
    like: dict[str, str | bool | int | float | None] = Field(default_factory=dict)
    masked_columns: dict[str, str] = Field(default_factory=dict)  # with the least role that sees each
    masked: bool  # whether texts, lists and JSON are left in their files
    footer: bool = False  # whether the first file's footer is told, too
    reading_s: float  # after which no further file is begun

    def role_that_sees(self, column: str) -> str:
        """The least role that sees a column; empty: it is not masked.

        Names are paths, too: what is masked in a column of nested values hides the column, and a column what is in it.
        """
        roles = {role for name, role in self.masked_columns.items() if columns_overlap(name, column)}
        return "admin" if "admin" in roles else next(iter(roles), "")


def columns_overlap(left: str, right: str) -> bool:
    """Whether two columns are the same, or one names a field of the other's nested values."""
    return left == right or left.startswith(f"{right}.") or right.startswith(f"{left}.")


class RowsColumn(Message):
    """A column of at least one of the files that were read."""

    name: str
    types: list[str]  # as segments have them


class FileProblem(Message):
    """A file that could not be read."""

    path: str
    problem: str


class FooterColumn(Message):
    """What a file's footer says of one column, of all row groups together."""

    name: str
    type: str
    compression: str  # "zstd"; more than one with a comma
    compressed_bytes: int
    uncompressed_bytes: int
    nulls: int | None = None  # None: it does not say, or nobody below ``role`` may know
    # A boolean, a number or a text; times are ISO 8601, texts may be cut. None as above.
    least: bool | int | float | str | None = None
    greatest: bool | int | float | str | None = None
    role: str = ""  # the least role that sees its values; empty: they are not masked for who asks
    masked: bool = False  # whether least and greatest are left out as texts are


class Footer(Message):
    """What a Parquet file says of itself."""

    rows: int
    row_groups: int
    written_by: str
    columns: list[FooterColumn]


class RowsAnswer(Message):
    """The rows, the latest first. A cell is null, a boolean, a number, a text, a list of texts, or an object.

    Objects are no values: ``{"masked": true}``, with ``role`` where a column is masked up to one, and
    ``{"start": …, "size_bytes": …}`` for what is too long. A sketch is what it tells: ``{"estimate": …}``, of quantiles
    ``{"n": …, "min": …, "median": …, "max": …}``.
    JSON is text; times are ISO 8601; numbers that JSON has no word for are the texts NaN, Infinity and -Infinity.
    """

    columns: list[RowsColumn] = Field(default_factory=list)
    rows: list[list[Any]] = Field(default_factory=list)
    problems: list[FileProblem] = Field(default_factory=list)
    files_read: int = 0
    # The time of the last row in the first file that was not looked at; None when all were, or held nothing newer.
    unread_ms: int | None = None
    footer: Footer | None = None
    refusal: str = ""  # why there is nothing: deep storage can't be reached
