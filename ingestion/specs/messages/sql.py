"""The messages between who is asked for SQL and the process that runs it: JSON, one in a line.

The control plane sends a ``SqlStatement``; the process answers with ``SqlTables``. If the statement is not refused, the
control plane sends a ``SqlOrder``. The process answers with a ``SqlHead``, then with chunks of the result in the
order's format, and at last with a ``SqlTail``. A chunk is a line with its length in bytes, and then its bytes; a chunk
of length 0 is before the tail.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ingestion.specs.base import Message

MAX_STATEMENT = 100_000  # characters
MAX_FILES = 50_000
SYS = "sys"  # where a team would be written, of the tables about Headgate itself
Format = Literal["json", "csv", "arrow", "parquet", "druid"]
Explain = Literal["", "plan", "analyze"]


class SqlParameter(Message):
    """A value for a question mark, with the SQL type that the client names."""

    type: str
    value: str | int | float | bool | None = None


class DruidStatement(Message):
    """That a statement is Druid's SQL, and how its result is written."""

    parameters: list[SqlParameter] = []
    zone: str = "UTC"  # whose days and hours it means
    outer_limit: int | None = None  # of rows, whatever the statement says
    result_format: Literal["object", "objectLines", "array", "arrayLines", "csv"] = "object"
    header: bool = False
    types_header: bool = False
    sql_types_header: bool = False
    lists_as_text: bool = True  # a list in a result is a JSON text


class SqlStatement(Message):
    """What a user has written, and when the process gives up."""

    sql: str
    druid: DruidStatement | None = None  # None: DuckDB's SQL
    time_s: float = Field(gt=0)
    memory_bytes: int = Field(gt=0)
    temporary_bytes: int = Field(gt=0)


class SqlTableUse(Message):
    """A table that the statement reads, and the bounds of its ``__time`` in microseconds since 1970; None: no bound."""

    team: str = ""  # empty: the statement does not name it
    name: str
    start_us: int | None = None
    end_us: int | None = None  # exclusive
    # Of a table of ``sys``: by column in lower case, the values of which each row has one, and the bounds of its time.
    equal: dict[str, list[str | int | bool]] = {}
    between: dict[str, tuple[int | None, int | None]] = {}


class SqlTables(Message):
    """The tables, in the order of their numbers. A table that is named twice is two."""

    tables: list[SqlTableUse] = []
    explain: Explain = ""
    refusal: str = ""  # why the statement is not run


class SqlColumn(Message):
    """A column of a table: its id in files, its name in SQL and its type in DuckDB."""

    id: int
    name: str
    type: str
    masked: bool = False  # it is NULL in every row, and is not read


class SqlTable(Message):
    columns: list[SqlColumn]
    files: list[tuple[str, int]] = []  # path below deep storage, bytes
    # Instead of these, a file in the scratch folder: PostgreSQL's CSV with all but NULL in quotes, in columns' order.
    csv: str = ""


class SqlLimits(Message):
    """What the process may use from now on; never more than its statement said."""

    time_s: float = Field(gt=0)
    memory_bytes: int = Field(gt=0)
    temporary_bytes: int = Field(gt=0)
    more_memory: str = ""  # a sentence for a query that needs more


class SqlOrder(Message):
    deep_storage: str
    tables: list[SqlTable]
    scratch: str  # an empty folder for temporary files
    format: Format
    max_rows: int
    limits: SqlLimits | None = None  # None: those of the statement


class SqlHead(Message):
    """The columns of the result, with DuckDB's names of their types."""

    names: list[str] = []
    types: list[str] = []
    refusal: str = ""  # why there is no result; nothing follows then
    unavailable: bool = False  # the refusal is not the statement's fault
    plan: dict[str, Any] | None = None  # the answer to EXPLAIN; nothing follows then


class SqlTail(Message):
    """The end of a result."""

    rows: int = 0
    truncated: bool = False  # there are more rows than ``max_rows``
    error: str = ""  # why it ends before its last row
