"""A query's process against bare DuckDB on the same files: 1, 100 and 10,000 segments, and ten queries at once.

Headgate's side is all that a query needs but HTTP and the metadata store: the fork, the check of the statement, locking
DuckDB, the query and its rows as JSON. Bare DuckDB is one connection that stays open. Both have two threads.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from django.conf import settings

from ingestion.query.engine import THREADS
from ingestion.specs.messages.sql import SqlColumn, SqlHead, SqlOrder, SqlStatement, SqlTable, SqlTables

ROWS = 5_000  # of a segment
AT_ONCE = 10
_MIB = 1024 * 1024
_QUERY = "SELECT kind, count(*), sum(n) FROM {} WHERE n % 7 > 0 GROUP BY kind ORDER BY kind"
_TYPES = {"__time": "TIMESTAMPTZ", "kind": "VARCHAR", "n": "BIGINT"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    parser.add_argument("--segments", type=int, nargs="*", default=[1, 100, 10_000])
    parser.add_argument("--rounds", type=int, default=7, help="alternating, after one to warm up; medians are compared")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Keys as documented in benchmarks/README.md."""
    settings.configure(BASE_DIR=Path(__file__).parent.parent)
    results: dict[str, Any] = {"wrong": 0}
    with tempfile.TemporaryDirectory() as folder, _Headgate(Path(folder)) as headgate, _bare() as bare:
        for count in options.segments:
            files = _segments(Path(folder), count)
            results |= _compare(headgate, bare, files, options.rounds)
            results["wrong"] += headgate.ask(files) != _of_bare(bare, files)
        files = _segments(Path(folder), 100)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            results["ten_at_once_ms"] = _ms(lambda: list(pool.map(lambda _: headgate.ask(files), range(AT_ONCE))))
    return results


def _compare(headgate: _Headgate, bare: duckdb.DuckDBPyConnection, files: list[Path], rounds: int) -> dict[str, float]:
    cold = _ms(lambda: headgate.ask(files))
    _of_bare(bare, files)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(_ms(lambda: headgate.ask(files)))
        theirs.append(_ms(lambda: _of_bare(bare, files)))
    count, mine, its = len(files), median(ours), median(theirs)
    print(f"{count:,} segments: headgate {mine:.0f} ms (first {cold:.0f}), bare DuckDB {its:.0f} ms", flush=True)
    return {
        f"first_{count}_ms": cold,
        f"headgate_{count}_ms": mine,
        f"bare_{count}_ms": its,
        f"beyond_{count}_ms": mine - 1.5 * its,
    }


def _ms(action: Callable[[], Any]) -> float:
    began = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - began)


def _segments(folder: Path, count: int) -> list[Path]:
    """One file, and hard links to it."""
    files = [folder / f"{number}.parquet" for number in range(count)]
    if not files[0].exists():
        _write(files[0])
    for file in files[1:]:
        if not file.exists():
            os.link(files[0], file)
    return files


def _write(file: Path) -> None:
    random = np.random.default_rng(1)
    types = [pa.timestamp("us", "UTC"), pa.string(), pa.int64()]
    fields = [
        pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})
        for number, (name, kind) in enumerate(zip(_TYPES, types, strict=True), 1)
    ]
    kinds = [f"k{n}" for n in random.integers(0, 10, ROWS)]
    times = pa.array(range(ROWS), types[0])
    table = pa.table([times, kinds, random.integers(0, 1_000_000, ROWS)], schema=pa.schema(fields))
    pq.write_table(table, file, compression="zstd", compression_level=1)


def _bare() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": THREADS})


def _of_bare(bare: duckdb.DuckDBPyConnection, files: list[Path]) -> list[list[Any]]:
    names = ", ".join(f"'{file}'" for file in files)
    return [list(row) for row in bare.execute(_QUERY.format(f"read_parquet([{names}])")).fetchall()]


class _Headgate:
    """The control plane's part of a query, without its database."""

    def __init__(self, folder: Path) -> None:
        # After the settings: the modules read them.
        from controlplane.common.processes import passed_environment
        from controlplane.common.ready_process import ReadyProcess

        self._folder = folder
        self._process = ReadyProcess("ingestion.query.fork_server", passed_environment())

    def __enter__(self) -> _Headgate:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def ask(self, files: list[Path]) -> list[list[Any]]:
        from controlplane.query.conversation import Conversation

        process = Conversation(self._process.connect(), lambda: False)
        asked = SqlStatement(sql=_QUERY.format("t"), time_s=120, memory_bytes=512 * _MIB, temporary_bytes=2_048 * _MIB)
        with tempfile.TemporaryDirectory() as scratch:
            process.send(asked)
            SqlTables.model_validate_json(process.read_line())
            process.send(self._order(files, scratch))
            head = SqlHead.model_validate_json(process.read_line())
            if head.refusal:
                raise RuntimeError(head.refusal)
            content = b"".join(iter(process.read_chunk, b""))
            process.close()
        rows: list[list[Any]] = json.loads(b"[" + content + b"]")
        return rows

    def _order(self, files: list[Path], scratch: str) -> SqlOrder:
        columns = [SqlColumn(id=n, name=name, type=kind) for n, (name, kind) in enumerate(_TYPES.items(), 1)]
        sizes = [(file.name, file.stat().st_size) for file in files]
        table = SqlTable(columns=columns, files=sizes)
        return SqlOrder(deep_storage=str(self._folder), tables=[table], scratch=scratch, format="json", max_rows=100)
