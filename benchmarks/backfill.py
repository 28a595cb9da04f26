"""A live reader beside a backfill with as many indexers, and a backfill alone against a plain reader of the same topic.

An operator fills what was skipped while the feed goes on. The feed is one that the reader holds when it is alone: a
fifth of what a plain reader has just read at full speed. A reader that is never behind leaves processors free, and the
backfill may take these; ``ratio_live`` says whether it takes more. Two readers at full speed on two cores would only
say how the kernel shares them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.measure import PARTITIONS, await_rows, backlog, backlog_of, lost_and_duplicated
from benchmarks.offsets import DIMENSIONS, TUNING, Outcome
from benchmarks.stack import add_stack_options, stack
from tests.support.house import House
from tests.support.waiting import wait_for

SAMPLE_S = 1.0
_WAIT_S = 300.0
_READ_BY = (
    "SELECT coalesce(sum(f.published), 0), extract(epoch FROM max(f.last_publish_at) - min(f.started_at))"
    " FROM publishing_indexerfence f JOIN tasks_task t ON t.id = f.task_id WHERE t.supervisor_id = %s"
)
_ACTIVE = "SELECT id FROM tasks_task WHERE supervisor_id = %s AND status IN ('PENDING', 'RUNNING')"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    add_stack_options(parser)
    parser.add_argument("--records", type=int, default=8_000_000, help="that there are to fill")
    parser.add_argument("--indexers", type=int, default=PARTITIONS, help="of each reader and each backfill")
    parser.add_argument("--feed", type=float, default=0.2, help="the live feed, as a share of a plain reader's rate")
    parser.add_argument("--seconds", type=int, default=30, help="of the live feed: alone, and beside, at most")
    parser.add_argument("--rounds", type=int, default=2, help="alternating; the medians are compared")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Alternates all parts; keys as documented in benchmarks/README.md."""
    outcome = Outcome()
    with stack(options) as house:
        for turn in range(options.rounds):
            topic = house.topic(f"backfill-{turn}", PARTITIONS)
            backlog(house, topic, options.records)
            _plain(house, topic, turn, options, outcome)
            _alone(house, topic, turn, options, outcome)
            _beside(house, topic, turn, options, outcome)
            print(f"round {turn + 1}: { ({k: round(v[-1]) for k, v in outcome.figures.items()}) }", flush=True)
    medians = outcome.medians()
    return {
        **medians,
        "ratio_live": medians["live_beside_rows_per_s"] / medians["live_alone_rows_per_s"],
        "ratio_backfill": medians["backfill_rows_per_s"] / medians["plain_rows_per_s"],
        "lost": outcome.lost,
        "duplicated": outcome.duplicated,
        **{name: getattr(options, name) for name in ("records", "indexers", "feed", "seconds", "rounds")},
    }


def _plain(house: House, topic: str, turn: int, options: argparse.Namespace, outcome: Outcome) -> None:
    """The backlog by an ordinary reader."""
    name = f"plain-{turn}"
    supervisor = _supervise(house, topic, name, options, useEarliestOffset=True)
    await_rows(house, name, options.records)
    outcome.note(plain_rows_per_s=_rate(house, supervisor))
    _end(house, name, options.records, outcome)


def _alone(house: House, topic: str, turn: int, options: argparse.Namespace, outcome: Outcome) -> None:
    """The backlog by a backfill, while the reader that it belongs to is suspended."""
    name = f"alone-{turn}"
    supervisor = _supervise(house, topic, name, options, useEarliestOffset=False)
    house.running_task(name)
    house.api("POST", f"/druid/indexer/v1/supervisor/{supervisor}/suspend")
    wait_for("the reader has ended", lambda: not house.sql(_ACTIVE, supervisor), _WAIT_S, lambda: house.logs(name))
    backfill = _fill(house, supervisor)
    await_rows(house, name, options.records)
    outcome.note(backfill_rows_per_s=_rate(house, backfill))
    _end(house, name, options.records, outcome)


def _beside(house: House, topic: str, turn: int, options: argparse.Namespace, outcome: Outcome) -> None:
    """A reader at the topic's end, without a backfill and then with one; the feed goes on all the time."""
    name = f"live-{turn}"
    supervisor = _supervise(house, topic, name, options, useEarliestOffset=False)
    house.running_task(name)
    rate = options.feed * outcome.figures["plain_rows_per_s"][-1]
    end = options.records + int(rate * (2 * options.seconds + _WAIT_S / 10))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        fed = pool.submit(_feed, house.bootstrap, topic, options.records, end, rate)
        wait_for("the live reader publishes", lambda: _read_by(house, supervisor), _WAIT_S, lambda: house.logs(name))
        fed_alone, alone = _live_rates(house, supervisor, topic, options.seconds, lambda: False)
        backfill = _fill(house, supervisor)
        wait_for("the backfill publishes", lambda: _read_by(house, backfill), _WAIT_S, lambda: house.logs(name))

        def filled() -> bool:
            return _read_by(house, backfill) >= options.records

        fed_beside, beside = _live_rates(house, supervisor, topic, options.seconds, filled)
        outcome.note(fed_alone_rows_per_s=fed_alone, live_alone_rows_per_s=alone)
        outcome.note(fed_beside_rows_per_s=fed_beside, live_beside_rows_per_s=beside)
        fed.result()
    await_rows(house, name, end)
    _end(house, name, end, outcome)


def _feed(bootstrap: str, topic: str, begin: int, end: int, rate: float) -> None:
    config = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 50, "compression.type": "lz4"}
    backlog_of(Producer(config), topic, end, range(PARTITIONS), begin, rate)


def _supervise(house: House, topic: str, name: str, options: argparse.Namespace, **io_config: Any) -> str:
    spec = house.kafka_spec(topic, name, TUNING, taskCount=options.indexers, **io_config)
    spec["dataSchema"]["dimensionsSpec"] = {"dimensions": DIMENSIONS}
    return house.supervise(spec)


def _fill(house: House, supervisor: str) -> str:
    """The id of a backfill of all that is not settled."""
    wanted = {"start_position": "earliest", "end_position": "latest"}
    return str(house.api("POST", f"/api/v1/supervisors/{supervisor}/backfills/", wanted)["backfill"])


def _read_by(house: House, supervisor: str) -> int:
    return int(house.sql(_READ_BY, supervisor)[0][0])


def _rate(house: House, supervisor: str) -> float:
    """Rows a second, from the start of its first indexer to its last publish."""
    [(rows, seconds)] = house.sql(_READ_BY, supervisor)
    return float(rows) / float(seconds)


def _live_rates(
    house: House, supervisor: str, topic: str, seconds: float, ended: Callable[[], bool]
) -> tuple[float, float]:
    """Rows a second that are fed and that are read.

    By the straight line through all looks: a handoff more or less at an end does not matter.
    """
    began = time.monotonic()
    with closing(Consumer({"bootstrap.servers": house.bootstrap, "group.id": "looks at ends only"})) as consumer:

        def look() -> tuple[float, int, int]:
            ends = [consumer.get_watermark_offsets(TopicPartition(topic, p), _WAIT_S)[1] for p in range(PARTITIONS)]
            return time.monotonic() - began, sum(ends), _read_by(house, supervisor)

        looks = [look()]
        while looks[-1][0] < seconds and not ended():
            time.sleep(SAMPLE_S)
            looks.append(look())
    at, fed, read = np.array(looks).T
    return float(np.polyfit(at, fed, 1)[0]), float(np.polyfit(at, read, 1)[0])


def _end(house: House, name: str, count: int, outcome: Outcome) -> None:
    house.rest()
    lost, duplicated = lost_and_duplicated(house, name, count)
    outcome.lost, outcome.duplicated = outcome.lost + lost, outcome.duplicated + duplicated
