"""From POST to rows: the first of a few that wait, and all of many beside Spark Structured Streaming from its start.

Everything is at its defaults, ``startDelay`` included, but for ``useEarliestOffset`` and the number of indexers.
Spark's time begins with its process, too: each side starts its JVM, its Python and its connections. Then the first row
again, by an application that waited for the task; and short tasks from POST to their end, both ways.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import psutil
import psycopg

from benchmarks.measure import PARTITIONS, await_rows, backlog, lost_and_duplicated, published, span
from benchmarks.offsets import DIMENSIONS, Outcome
from benchmarks.peers import spark_rate_from_start
from benchmarks.short_tasks import MARGIN, short_tasks
from benchmarks.stack import add_stack_options, stack
from controlplane.common.applications import process_in
from tests.support.house import House
from tests.support.waiting import wait_for
from tests.support.waiting_spares import waiting_spares

POLL_S = 0.02
FIRST_ROW_TIMEOUT_S = 300.0
SPARE_TIMEOUT_S = 180.0
_VISIBLE = (
    "SELECT 1 FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s LIMIT 1"
)
_MILESTONES = (
    "SELECT min(t.created_at), min(t.started_at), min(f.started_at) FROM tasks_task t"
    " JOIN datasources_datasource d ON d.id = t.datasource_id LEFT JOIN publishing_indexerfence f ON f.task_id = t.id"
    " WHERE d.name = %s"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes, and how each side runs."""
    add_stack_options(parser)
    parser.add_argument("--waiting", type=int, default=2_000, help="records that wait when the first row is timed")
    parser.add_argument("--records", type=int, default=4_000_000, help="of the comparison with Spark; 0: without it")
    parser.add_argument("--indexers", type=int, default=PARTITIONS, help="of the comparison")
    parser.add_argument("--rounds", type=int, default=3, help="alternating; the medians are compared")
    parser.add_argument("--spark-cores", type=int, default=4, help="N of local[N]")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Alternates all sides; keys as documented in benchmarks/README.md."""
    outcome = Outcome()
    with stack(options) as house:
        full = house.topic("start")
        backlog(house, full, options.records)
        for turn in range(options.rounds):
            _first_row(house, "kafka", turn, options.waiting, outcome)
            _first_row(house, "share", turn, options.waiting, outcome)
            if options.records:
                _full_backlog(house, full, turn, options, outcome)
                _spark(house, full, options, outcome)
            print(f"round {turn + 1}: { ({k: round(v[-1], 2) for k, v in outcome.figures.items()}) }", flush=True)
        with house.set_up_with(**MARGIN):
            for turn in range(options.rounds):
                _short_tasks(house, turn, options.waiting, outcome)
        with house.set_up_with(HEADGATE_SPARE_APPLICATIONS="1", **MARGIN):
            for turn in range(options.rounds):
                outcome.note(spare_mb=_await_spare(house))
                _first_row(house, "kafka", turn, options.waiting, outcome, "_spare", startDelay="PT0S")
                _await_spare(house)
                _first_row(house, "share", turn, options.waiting, outcome, "_spare")
                _short_tasks(house, turn, options.waiting, outcome, "_spare", _await_spare)
                if options.records:
                    _await_spare(house)
                    _full_backlog(house, full, turn, options, outcome, "_spare", startDelay="PT0S")
                    _spark(house, full, options, outcome)
    medians = outcome.medians()
    if options.records:
        for way in ("", "_spare"):
            ours = medians[f"from_submit{way}_rows_per_s"]
            medians[f"ratio_from_submit{way}"] = ours / medians["spark_from_start_rows_per_s"]
    names = ("waiting", "records", "rounds", "indexers", "spark_cores")
    settings = {name: getattr(options, name) for name in names}
    return {**medians, "lost": outcome.lost, "duplicated": outcome.duplicated, **settings}


def spec_at_defaults(house: House, kind: str, topic: str, datasource: str, **io_config: Any) -> dict[str, Any]:
    """The least that a spec must say, and that a backlog is to be read."""
    share = house.spec(topic, datasource)
    needed = ("topic", "consumerProperties", "inputFormat", *(["groupId"] if kind == "share" else []))
    shared = {name: share["ioConfig"][name] for name in needed}
    schema = {**share["dataSchema"], "granularitySpec": {"segmentGranularity": "DAY", "rollup": False}}
    return {
        "type": "kafka" if kind == "kafka" else share["type"],
        "dataSchema": schema,
        "ioConfig": {**shared, "useEarliestOffset": True, **io_config},
    }


def _await_spare(house: House) -> float:
    """Wait until an application waits for a task; the memory of its processes in MiB, shared memory counted once."""
    [folder] = wait_for("a spare waits", lambda: waiting_spares(house), SPARE_TIMEOUT_S)
    identity = process_in(folder)
    first = psutil.Process(identity.pid) if identity else psutil.Process()
    return sum(p.memory_full_info().pss for p in (first, *first.children(recursive=True))) / 2**20


def _first_row(
    house: House, kind: str, turn: int, count: int, outcome: Outcome, way: str = "", **io_config: Any
) -> None:
    """A supervisor of its own on a topic of its own."""
    topic = house.topic(f"first-{kind}{way.replace('_', '-')}-{turn}")
    backlog(house, topic, count)
    submitted, began = datetime.now(UTC), time.monotonic()
    house.supervise(spec_at_defaults(house, kind, topic, topic, **io_config))
    first_row_s = _visible_after(house, topic, began)
    await_rows(house, topic, count)
    created, running, reading = house.sql(_MILESTONES, topic)[0]
    prefix = way if kind == "kafka" else f"{way}_{kind}"
    outcome.note(
        **{
            f"task{prefix}_s": (created - submitted).total_seconds(),
            f"running{prefix}_s": (running - submitted).total_seconds(),
            f"reading{prefix}_s": (reading - submitted).total_seconds(),
            f"first_row{prefix}_s": first_row_s,
        }
    )
    house.rest()
    _check(house, topic, count, outcome)


def _short_tasks(
    house: House,
    turn: int,
    count: int,
    outcome: Outcome,
    way: str = "",
    await_spare: Callable[[House], object] = lambda _: None,
) -> None:
    took = short_tasks(house, f"short{way.replace('_', '-')}-{turn}", count, await_spare)
    seconds = {"batch": took.batch_s, "replay": took.replay_s, "repair": took.repair_s}
    outcome.note(**{f"{name}{way}_s": value for name, value in seconds.items()})
    for datasource in took.datasources:
        _check(house, datasource, count, outcome)
    print(f"short tasks{way}: { ({name: round(value, 2) for name, value in seconds.items()}) }", flush=True)


def _visible_after(house: House, datasource: str, began: float) -> float:
    """Seconds since ``began``, by a connection that is open already."""
    with psycopg.connect(house.postgres.dsn, autocommit=True) as connection:
        while time.monotonic() - began < FIRST_ROW_TIMEOUT_S:
            if connection.execute(_VISIBLE, (datasource,)).fetchone():
                return time.monotonic() - began
            time.sleep(POLL_S)
    raise RuntimeError(f"no row within {FIRST_ROW_TIMEOUT_S:.0f} s: {house.logs(datasource)}")


def _spark(house: House, topic: str, options: argparse.Namespace, outcome: Outcome) -> None:
    rate = spark_rate_from_start(house.bootstrap, topic, options.records, options.spark_cores)
    outcome.note(spark_from_start_rows_per_s=rate)
    print(f"Spark: {rate:,.0f} rows a second", flush=True)


def _full_backlog(
    house: House,
    topic: str,
    turn: int,
    options: argparse.Namespace,
    outcome: Outcome,
    way: str = "",
    **io_config: Any,
) -> None:
    """A supervisor from its submission to the last row of all."""
    datasource = f"start{way.replace('_', '-')}-{turn}"
    submitted = datetime.now(UTC)
    spec = spec_at_defaults(house, "kafka", topic, datasource, taskCount=options.indexers, **io_config)
    spec["dataSchema"]["dimensionsSpec"] = {"dimensions": DIMENSIONS}
    house.supervise(spec)
    await_rows(house, datasource, options.records)
    _, last = span(house, datasource)
    house.rest()
    if published(house, datasource) != options.records:
        raise RuntimeError(f"{published(house, datasource):,} rows of {options.records:,}")
    rate = options.records / (last - submitted).total_seconds()
    outcome.note(**{f"from_submit{way}_rows_per_s": rate})
    print(f"from submit{way}: {rate:,.0f} rows a second", flush=True)
    _check(house, datasource, options.records, outcome)


def _check(house: House, datasource: str, count: int, outcome: Outcome) -> None:
    lost, duplicated = lost_and_duplicated(house, datasource, count)
    outcome.lost, outcome.duplicated = outcome.lost + lost, outcome.duplicated + duplicated
