"""One statement from beginning to end, over a connection: see ``ingestion.specs.messages.sql``."""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import duckdb
import pyarrow as pa

from ingestion.query.druid import output as druid_output
from ingestion.query.engine import open_locked, plan_of, read_checked, read_with_columns, refusal_of, shorten
from ingestion.query.output import BATCH_ROWS, Result
from ingestion.query.statement import Refused, Statement
from ingestion.query.stored_sketches import add_sketch_functions
from ingestion.segments.errors import DeepStorageError
from ingestion.specs.base import Message
from ingestion.specs.messages.sql import SqlHead, SqlOrder, SqlStatement, SqlTables, SqlTail

_PIECE = 256 * 1024  # bytes of a chunk
_BESIDE_BYTES = 768 * 1024 * 1024  # addresses that DuckDB, Python and pyarrow use beside DuckDB's own limit


def answer(orders: BinaryIO, answers: BinaryIO) -> None:
    """Read a statement, have its files named, run it. Whoever asks may be killed meanwhile, and so may this process."""
    asked = SqlStatement.model_validate_json(orders.readline())
    _limit(asked)
    try:
        statement, tables = read_checked(asked)
    except Refused as error:
        _send(answers, SqlTables(refusal=shorten(str(error))))
        return
    except RecursionError:
        _send(answers, SqlTables(refusal="The statement is nested too deeply."))
        return
    _send(answers, SqlTables(tables=tables, explain=statement.explain))
    line = orders.readline()
    if line:
        order = SqlOrder.model_validate_json(line)
        asked = _narrowed(asked, order)
        try:
            statement = read_with_columns(asked, statement, tables, order)
        except (Refused, RecursionError) as error:
            _send(answers, SqlHead(refusal=shorten(str(error))))
            return
        _run(asked, statement, order, answers)


def _narrowed(asked: SqlStatement, order: SqlOrder) -> SqlStatement:
    """With the order's limits, which hold from now on."""
    limits = order.limits
    if limits is None:
        return asked
    left_s, _ = signal.getitimer(signal.ITIMER_REAL)
    narrowed = asked.model_copy(
        update={
            "time_s": min(left_s, limits.time_s),
            "memory_bytes": min(asked.memory_bytes, limits.memory_bytes),
            "temporary_bytes": min(asked.temporary_bytes, limits.temporary_bytes),
        }
    )
    _limit(narrowed)
    return narrowed


def _limit(asked: SqlStatement) -> None:
    """From now on the process has so much time and memory. More time ends it, more memory fails in it."""
    signal.setitimer(signal.ITIMER_REAL, asked.time_s)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + 2 * asked.memory_bytes + _BESIDE_BYTES
    _, before = resource.getrlimit(resource.RLIMIT_AS)
    most = most if before == resource.RLIM_INFINITY else min(most, before)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _run(asked: SqlStatement, statement: Statement, order: SqlOrder, answers: BinaryIO) -> None:
    try:
        engine = open_locked(asked, order)
        add_sketch_functions(engine, statement.sql)
        if statement.explain:
            _send(answers, SqlHead(plan=plan_of(engine, statement)))
            return
        relation = engine.sql(statement.sql)
        result = Result(relation.to_arrow_reader(BATCH_ROWS), order.max_rows)
        chunks = _chunks(asked, result, order)
        first = next(chunks, b"")  # what fails at once is answered with a status
        head = SqlHead(names=relation.columns, types=[str(kind) for kind in relation.types])
    except (duckdb.Error, pa.ArrowException, MemoryError, DeepStorageError) as error:
        text, unavailable = _refusal(asked, order, error)
        _send(answers, SqlHead(refusal=text, unavailable=unavailable))
        return
    _send(answers, head)
    error_text = ""
    try:
        for chunk in chain([first], chunks):
            for start in range(0, len(chunk), _PIECE):
                _send_chunk(answers, chunk[start : start + _PIECE])
    except (duckdb.Error, pa.ArrowException, MemoryError) as error:
        error_text, _ = _refusal(asked, order, error)
    answers.write(b"0\n")
    _send(answers, SqlTail(rows=result.rows, truncated=result.truncated, error=error_text))


def _chunks(asked: SqlStatement, result: Result, order: SqlOrder) -> Iterator[bytes]:
    if asked.druid is None:
        return result.chunks(order.format)
    return druid_output.chunks(asked.druid, result.schema, result.batches())


def _refusal(asked: SqlStatement, order: SqlOrder, error: Exception) -> tuple[str, bool]:
    if isinstance(error, (MemoryError, pa.ArrowMemoryError)):
        error = duckdb.OutOfMemoryException()
    if isinstance(error, pa.ArrowNotImplementedError):
        return f"A column's type has no form in this format: {error}", False
    if not isinstance(error, duckdb.Error):
        print(f"a query failed: {error}", file=sys.stderr)
        return "Deep storage can't be read. The log of the web process has the cause.", True
    text, unavailable = refusal_of(error, asked, order)
    if unavailable:
        print(f"a query failed: {error}", file=sys.stderr)
    return text, unavailable


def _send_chunk(answers: BinaryIO, chunk: bytes) -> None:
    """A small one: whoever asked holds it in memory."""
    answers.write(b"%d\n" % len(chunk) + chunk)
    answers.flush()


def _send(answers: BinaryIO, message: Message) -> None:
    answers.write(message.model_dump_json().encode() + b"\n")
    answers.flush()
