"""One topic, read by five engines: how soon after its records each of them has the right sums.

Beside a running stream, each engine has its session open and has read the table. Then records come at once, and all
engines ask at the same time, again and again, until they have all of them. Spark 4.1 and DuckDB have environments of
their own, which the first run installs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

import headgate
from benchmarks.stack import add_stack_options, stack
from tests.support import duckdb_reader
from tests.support.house import House
from tests.support.records import numbered, published
from tests.support.spark_session import spark_session

NAME = "engines"
PATIENCE_S = 120.0  # after which an engine that has other sums is wrong
_PAUSE_S = 0.1
_SUMS = "SELECT count(*), sum(n), sum(value) FROM {}"
Sums = tuple[int, int, int]  # of rows, of their ``n`` and of their ``value``
Engine = Callable[[], Sums]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    add_stack_options(parser)
    parser.add_argument("--records", type=int, default=10_000, help="of a round")
    parser.add_argument("--rounds", type=int, default=5, help="after one to warm up")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Keys as documented in benchmarks/README.md."""
    rounds: list[dict[str, float]] = []
    records = options.records
    with stack(options) as house, tempfile.TemporaryDirectory() as folder, ExitStack() as sessions:
        topic = house.topic(NAME)
        house.supervise(house.kafka_spec(topic, NAME))
        house.produce(topic, numbered(0, records))
        published(house, NAME, records)
        engines = _open(house, Path(folder), sessions)
        for engine in engines.values():
            engine()
        for turn in range(1, options.rounds + 2):
            seconds = _round(house, topic, engines, turn * records, records)
            print(
                f"round {turn - 1}: " + ", ".join(f"{name} {took:.1f} s" for name, took in seconds.items()), flush=True
            )
            rounds.append(seconds)
        house.rest()
    wrong = sum(took > PATIENCE_S for seconds in rounds for took in seconds.values())
    longest = {f"{name}_s": max(seconds[name] for seconds in rounds[1:]) for name in engines}
    return {**longest, "slowest_s": max(longest.values()), "wrong": wrong, "records": options.records}


def _open(house: House, folder: Path, sessions: ExitStack) -> dict[str, Engine]:
    """Each with its session."""
    duckdb = sessions.enter_context(
        _asking(
            duckdb_reader.query_program(f"{house.url}/iceberg"),
            duckdb_reader.environment(house.token),
            folder / "duckdb",
        )
    )
    spark41 = sessions.enter_context(_asking(*_spark41(house), folder / "spark41"))
    spark = sessions.enter_context(spark_session(folder, "local[2]"))
    catalog = load_catalog("headgate", type="rest", uri=f"{house.url}/iceberg", token=house.token)
    return {
        "sql": lambda: _sums(house.api("POST", "/api/v1/sql/", {"query": _SUMS.format(NAME)})["rows"]),
        "pyiceberg": lambda: _by_pyiceberg(catalog),
        "duckdb": lambda: _sums(duckdb(_SUMS.format(f"headgate.demo.{NAME}"))),
        "spark41": lambda: _sums(spark41(_SUMS.format(f"headgate.demo.{NAME}"))),
        "headgate_read": lambda: _by_connector(house, spark),
    }


def _spark41(house: House) -> tuple[list[str], dict[str, str]]:
    """Its command, with the line of the datasource's page, and environment."""
    os.environ.update(house.environment)
    import django  # not at the top: the settings are read when it is set up

    django.setup()
    from controlplane.feed.manifest import open_snippets
    from tests.support import spark_reader

    line = open_snippets("demo", NAME, house.url)["Iceberg in Spark 4.1"]
    return spark_reader.query_program(line), spark_reader.environment(house.token)


def _by_pyiceberg(catalog: Any) -> Sums:
    table = catalog.load_table(("demo", NAME))
    rows = table.scan(selected_fields=("n", "value")).to_arrow()
    return rows.num_rows, sum(rows["n"].to_pylist()), sum(rows["value"].to_pylist())


def _by_connector(house: House, spark: SparkSession) -> Sums:
    rows = headgate.read(spark, NAME, url=house.url, token=house.token)
    return _sums(rows.selectExpr("count(*)", "sum(n)", "sum(value)").collect())


def _sums(rows: Any) -> Sums:
    [[count, *sums]] = rows
    return int(count), int(sums[0]), int(sums[1])


def _round(house: House, topic: str, engines: dict[str, Engine], first: int, records: int) -> dict[str, float]:
    """Seconds of each engine from the first record of these to the sums of all."""
    last = first + records
    wanted = last, last * (last - 1) // 2, 3 * last * (last - 1) // 2
    with ThreadPoolExecutor(len(engines)) as pool:
        began = time.monotonic()
        waiting = {name: pool.submit(_await, engine, wanted, began) for name, engine in engines.items()}
        house.produce(topic, numbered(first, last))
        return {name: future.result() for name, future in waiting.items()}


def _await(engine: Engine, wanted: Sums, began: float) -> float:
    """After how long it has these sums; more than ``PATIENCE_S`` if it never does, or has sums that do not agree."""
    while time.monotonic() < began + PATIENCE_S:
        count, numbers, values = found = engine()
        if found == wanted:
            return time.monotonic() - began
        if count >= wanted[0] or values != 3 * numbers:
            break
        time.sleep(_PAUSE_S)
    return 2 * PATIENCE_S


@contextmanager
def _asking(command: list[str], environment: dict[str, str], folder: Path) -> Iterator[Callable[[str], Any]]:
    """A program that answers each line of SQL with a line of JSON; what it logs is in ``folder/log``."""
    folder.mkdir()
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None and stdout is not None

        def ask(query: str) -> Any:
            print(query, file=stdin, flush=True)
            for line in stdout:
                if line.startswith("["):
                    return json.loads(line)
            raise RuntimeError(f"{command[0]} ended: {(folder / 'log').read_text()[-2000:]}")

        try:
            yield ask
        finally:
            stdin.close()
            process.terminate()
            process.wait(30)
