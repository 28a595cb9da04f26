"""Offset ranges against Spark Structured Streaming, Flink SQL and bare consumers, on the same backlog in the same run.

Headgate's path is whole: decode, sort, Parquet, publish over HTTP. The peers parse the same JSON and write Parquet by
day, in a JVM that a pass over the same topic has warmed up. The bare consumers read values and do nothing else.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from benchmarks.bare_consumers import TUNED, bare_rate
from benchmarks.measure import PARTITIONS, await_rows, backlog, lost_and_duplicated, median, publishes, span
from benchmarks.peers import Topics, flink_rates, spark_rates
from benchmarks.stack import add_stack_options, stack
from tests.support.house import House

# What an indexer reads in a second stays in memory; numbers that hardly ever come twice have no dictionary.
TUNING = {
    "intermediateHandoffPeriod": "PT1S",
    "maxTotalRows": 250_000,
    "maxRowsInMemory": 1_000_000,
    "maxBytesInMemory": 256 * 1024 * 1024,
    "indexSpec": {"longEncoding": "longs"},
}
# Named, as the peers have their columns named.
DIMENSIONS = [{"type": "long", "name": "n"}, "kind", {"type": "long", "name": "value"}, "pad"]
_COMPARED = ("spark_rows_per_s", "flink_rows_per_s", "bare_rows_per_s", "bare_tuned_rows_per_s")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes, and how each side runs."""
    add_stack_options(parser)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--indexers", type=int, default=PARTITIONS)
    parser.add_argument("--tuning", type=json.loads, default=TUNING, help="Headgate's tuningConfig, as JSON")
    parser.add_argument("--rounds", type=int, default=3, help="alternating; the medians are compared")
    parser.add_argument("--peer", nargs="*", choices=("spark", "flink"), default=["spark"])
    parser.add_argument("--spark-cores", type=int, default=4, help="N of local[N]")
    parser.add_argument("--flink-parallelism", type=int, default=4)
    parser.add_argument("--flink-mode", choices=("batch", "streaming"), default="streaming")


@dataclass
class Outcome:
    """What the rounds gave: lists of a figure by key."""

    figures: dict[str, list[float]] = field(default_factory=dict)
    # Of all rounds, this and the next.
    lost: int = 0
    duplicated: int = 0

    def note(self, **values: float) -> None:
        """Add a round's figures."""
        for key, value in values.items():
            self.figures.setdefault(key, []).append(value)

    def medians(self) -> dict[str, float]:
        return {key: median(values) for key, values in self.figures.items()}


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Alternates all sides; keys as documented in benchmarks/README.md."""
    outcome = Outcome()
    with stack(options) as house:
        topics = Topics(house.bootstrap, house.topic("offsets"), house.topic("tiny"), options.records)
        backlog(house, topics.full, topics.count)
        for partition in range(PARTITIONS):
            house.produce(topics.tiny, [b'{"time":"2025-06-01T00:00:00.000Z","n":0}'], partition)
        for turn in range(options.rounds):
            for name, side in _sides(house, topics, options, turn).items():
                side(outcome)
                print(f"round {turn + 1}: {name} {outcome.figures[f'{name}_rows_per_s'][-1]:,.0f} rows/s", flush=True)
    medians = outcome.medians()
    ratios = {
        f"ratio_{key.removesuffix('_rows_per_s')}": medians["headgate_rows_per_s"] / medians[key]
        for key in _COMPARED
        if key in medians
    }
    return {**medians, **ratios, "lost": outcome.lost, "duplicated": outcome.duplicated, **_settings(options)}


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    names = ("records", "rounds", "indexers", "spark_cores", "flink_parallelism", "flink_mode")
    return {name: getattr(options, name) for name in names} | {"tuning": json.dumps(options.tuning)}


def _sides(
    house: House, topics: Topics, options: argparse.Namespace, turn: int
) -> dict[str, Callable[[Outcome], None]]:
    def bare(outcome: Outcome) -> None:
        outcome.note(bare_rows_per_s=bare_rate(topics.bootstrap, topics.full, topics.count, {}))

    def bare_tuned(outcome: Outcome) -> None:
        outcome.note(bare_tuned_rows_per_s=bare_rate(topics.bootstrap, topics.full, topics.count, TUNED))

    def headgate(outcome: Outcome) -> None:
        _headgate_pass(house, topics, f"offsets-{turn}", options, outcome)

    def spark(outcome: Outcome) -> None:
        rates = spark_rates(topics, options.spark_cores)
        outcome.note(spark_rows_per_s=rates.from_first_record, spark_from_start_rows_per_s=rates.from_start)

    def flink(outcome: Outcome) -> None:
        rates = flink_rates(topics, options.flink_parallelism, options.flink_mode)
        outcome.note(flink_rows_per_s=rates.from_first_record, flink_from_start_rows_per_s=rates.from_start)

    peers = {"spark": spark, "flink": flink}
    ours = {"bare": bare, "bare_tuned": bare_tuned, "headgate": headgate}
    return {**ours, **{name: peers[name] for name in options.peer}}


def _headgate_pass(
    house: House, topics: Topics, datasource: str, options: argparse.Namespace, outcome: Outcome
) -> None:
    """A supervisor from submit to the last publish; its rows are checked one by one."""
    submitted = datetime.now(UTC)
    spec = house.kafka_spec(topics.full, datasource, options.tuning, taskCount=options.indexers)
    spec["dataSchema"]["dimensionsSpec"] = {"dimensions": DIMENSIONS}
    house.supervise(spec)
    await_rows(house, datasource, topics.count)
    first, last = span(house, datasource)
    publish_count, segments = publishes(house, datasource)
    house.rest()
    lost, duplicated = lost_and_duplicated(house, datasource, topics.count)
    outcome.lost, outcome.duplicated = outcome.lost + lost, outcome.duplicated + duplicated
    outcome.note(
        headgate_rows_per_s=topics.count / (last - first).total_seconds(),
        headgate_from_submit_rows_per_s=topics.count / (last - submitted).total_seconds(),
        rows_per_publish=topics.count / publish_count,
        segments=segments,
    )
