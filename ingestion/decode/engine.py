"""One DuckDB connection that can do nothing but compute over the Arrow tables it is given."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from typing import Any

import duckdb
import pyarrow as pa

# The relation API, which the warning recommends, plans anew at every execution: 0.5 ms more for each batch.
warnings.filterwarnings("ignore", message="Arrow output on a DB-API result", category=UserWarning)

_CHECKED_BATCHES = 50  # after one with a text that is no JSON
RECORDS = "records"  # j string: one record's text
TEXTS = "texts"  # e string: one field's JSON text
CANDIDATES = "candidates"  # j string, ms int64: a record's text and time
_SCHEMAS = {
    RECORDS: pa.schema([("j", pa.string())]),
    TEXTS: pa.schema([("e", pa.string())]),
    CANDIDATES: pa.schema([("j", pa.string()), ("ms", pa.int64())]),
}


_SETTINGS = (
    "SET temp_directory = ''",  # must come before external access is cut
    "SET enable_external_access = false",
    "SET GLOBAL TimeZone = 'UTC'",  # of all its connections
    # It takes what stands twice out of a TRY: then what fails on one record fails on all that are read with it.
    "SET disabled_optimizers = 'common_subexpressions'",
    "SET lock_configuration = true",
)


_KINDS_OF_ERROR: dict[str, type[duckdb.Error]] = {
    "Invalid Input Error": duckdb.InvalidInputException,
    "Conversion Error": duckdb.ConversionException,
    "Out of Range Error": duckdb.OutOfRangeException,
    "Binder Error": duckdb.BinderException,
    "Catalog Error": duckdb.CatalogException,
    "Parser Error": duckdb.ParserException,
    "Not implemented Error": duckdb.NotImplementedException,
    "Out of Memory Error": duckdb.OutOfMemoryException,
    "INTERRUPT Error": duckdb.InterruptException,
}


@contextmanager
def _readable_errors() -> Iterator[None]:
    """An error shows a record's beginning, which may end amid a character: DuckDB's client fails on that text."""
    try:
        yield
    except UnicodeDecodeError as error:
        text = error.object.decode(errors="replace")
        raise _KINDS_OF_ERROR.get(text.partition(":")[0], duckdb.Error)(text) from None
    except (duckdb.FatalException, duckdb.InternalException):
        _open_database.cache_clear()  # it answers nobody any more
        raise


class _TableSource:
    """A table that DuckDB reads again at every execution: a statement stays prepared while the batches change."""

    def __init__(self, schema: pa.Schema) -> None:
        self.empty = schema.empty_table()
        self.table = self.empty

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Engine:
    """In memory, one thread, no file, no network, no extension, settings locked. Not thread-safe.

    Connects when it is first asked: what reads JSON as it is asks nothing. ``memory_limit_bytes`` is of all engines of
    a process that have this limit together: they are connections to one instance.
    """

    def __init__(self, memory_limit_bytes: int) -> None:
        self.memory_limit_bytes = memory_limit_bytes
        self._connected: duckdb.DuckDBPyConnection | None = None
        self._sources = {name: _TableSource(schema) for name, schema in _SCHEMAS.items()}
        self._statements: dict[str, str] = {}
        self._numbers = count()
        self._interrupted = False

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        if self._connected is None:
            self._connected = self._connect()  # once its settings are locked: what interrupts leaves none half made
        return self._connected

    def _connect(self) -> duckdb.DuckDBPyConnection:
        connection = _open_database(self.memory_limit_bytes, os.getpid()).cursor()
        for name, source in self._sources.items():
            connection.register(name, source)
        return connection

    def register(self, name: str, schema: pa.Schema) -> None:
        """Offer a source to ``run`` beside those of this module."""
        self._sources[name] = _TableSource(schema)
        if self._connected is not None:
            self._connected.register(name, self._sources[name])

    def execute(self, sql: str, values: list[Any] | None = None) -> duckdb.DuckDBPyConnection:
        """Run a statement once, with ``values`` bound to its parameters."""
        with _readable_errors():
            return self._connection.execute(sql, values)

    def run(self, sql: str, source: str, table: pa.Table) -> pa.Table:
        """Run a query over ``source``, which holds ``table`` for this once; row order is kept. Prepared, and kept so.

        Raises ``duckdb.Error``; the connection is not to be used after one.
        """
        return self._executed(sql, source, table, lambda result: result.to_arrow_table())

    def value(self, sql: str, source: str, table: pa.Table) -> Any:
        """The one value that a query gives; quicker than ``run`` for that."""
        row = self._executed(sql, source, table, lambda result: result.fetchone())
        return None if row is None else row[0]

    def forget(self, sql: str) -> None:
        """Drop a prepared statement that will not be run again."""
        name = self._statements.pop(sql, None)
        if name is not None:
            self._connection.execute(f"DEALLOCATE {name}")

    def interrupt(self) -> None:
        """From another thread: what runs now, or else what is run next, ends in ``duckdb.InterruptException``.

        A statement that has no more to do but one call does not notice: then it is the next one.
        """
        self._interrupted = True
        if self._connected is not None:
            self._connected.interrupt()

    def check_interrupted(self) -> None:
        """For what computes beside DuckDB. Raises ``duckdb.InterruptException``."""
        if self._interrupted:
            raise duckdb.InterruptException("Interrupted!")

    def clear_interrupt(self) -> None:
        """From here on only what is to come is interrupted."""
        self._interrupted = False

    def close(self) -> None:
        if self._connected is not None:
            self._connected.close()

    def _executed(
        self, sql: str, source: str, table: pa.Table, fetch: Callable[[duckdb.DuckDBPyConnection], Any]
    ) -> Any:
        self.check_interrupted()
        table_source = self._sources[source]
        table_source.table = table
        try:
            with _readable_errors():
                return fetch(self._connection.execute(f"EXECUTE {self._prepared(sql)}"))
        finally:
            table_source.table = table_source.empty

    def _prepared(self, sql: str) -> str:
        name = self._statements.get(sql)
        if name is None:
            name = f"s{next(self._numbers)}"
            self._connection.execute(f"PREPARE {name} AS {sql}")
            self._statements[sql] = name
        return name


@lru_cache(maxsize=2)  # limits that a process has; an instance is there as long as a connection to it is
def _open_database(memory_limit_bytes: int, pid: int) -> duckdb.DuckDBPyConnection:
    """12 ms of processor time and 4 MB, where a connection to it takes 1 ms. ``pid``: what is forked has its own."""
    connection = duckdb.connect(":memory:", config=_config(memory_limit_bytes))
    for setting in _SETTINGS:
        connection.execute(setting)
    return connection


def _config(memory_limit_bytes: int) -> dict[str, str | bool | int | float | list[str]]:
    return {
        "threads": 1,
        "memory_limit": f"{memory_limit_bytes}B",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
    }


def sql_literal(text: str) -> str:
    """``text`` as an SQL string literal. Only for what must be constant at planning: paths and time patterns.

    Raises ``UnicodeEncodeError`` for a lone surrogate.
    """
    text.encode()
    return "'" + text.replace("'", "''") + "'"


def sql_json_pointer(name: str) -> str:
    """A top-level field's JSON pointer (RFC 6901) as an SQL literal; any name, also the empty one."""
    return sql_literal("/" + name.replace("~", "~0").replace("/", "~1"))


class Suspects:
    """Runs a query that fails on a text that is no JSON, and another one, with the same answer, that looks first.

    To look costs one more parse of every record: that is done for some batches after one with such a text.
    """

    def __init__(self, engine: Engine, source: str) -> None:
        self._engine = engine
        self._source = source
        self._remaining = 0

    def run(self, sql: str, checking_sql: str, table: pa.Table) -> pa.Table:
        """The answer for all rows of ``table``. Raises ``duckdb.Error``."""
        if not self._remaining:
            try:
                return self._engine.run(sql, self._source, table)
            except duckdb.InvalidInputException:
                self._remaining = _CHECKED_BATCHES
        self._remaining -= 1
        return self._engine.run(checking_sql, self._source, table)
