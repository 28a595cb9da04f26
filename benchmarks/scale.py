"""What heartbeats, publishes, pages and upkeep cost the control plane, with as many clients as a large site has.

500 supervisors of real topics, 2,000 tasks and 10,000 indexers: no Spark application runs, clients of the protocol say
what each would say. They share the machine's cores with the control plane, so processor time is what is counted.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx2
from confluent_kafka import TopicCollection
from confluent_kafka.admin import NewTopic

from benchmarks.measure import percentile
from benchmarks.pages import login
from benchmarks.publish import BATCH, DAY, PARTITIONS, make_task, processor_s, request_of
from benchmarks.scale_clients import THREADS, Applications, Beaten, RunningTask
from benchmarks.stack import add_stack_options, stack
from ingestion.client.http import HttpControlPlane
from ingestion.specs.messages.protocol import StartRequest
from tests.support.house import House
from tests.support.waiting import wait_for

PAGES = {"home": "/", "supervisors": "/supervisors/", "tasks": "/tasks/", "rest": "/api/v1/supervisors/?limit=500"}
# Compaction would read files that are not there.
SETTINGS = {
    "HEADGATE_AUTO_COMPACTION": "0",
    "HEADGATE_REPAIR_PERIOD": "15",
    "HEADGATE_REPAIR_MARGIN": "30",
    "HEADGATE_TASK_HEARTBEAT_TIMEOUT": "120",
}
SETTLE_S = 10.0
SILENT_S = 30.0
# Those of supervisors wait for slots; more run beside them, as backfills and bounded reads do.
_MORE = """
    INSERT INTO tasks_task SELECT (jsonb_populate_record(t, jsonb_build_object(
        'id', t.id || '-' || n, 'supervisor_id', ''
    ))).* FROM tasks_task t, generate_series(2, %s) n RETURNING 1
"""
_TAKE = "UPDATE tasks_task SET launched_at = now(), host = 'elsewhere' WHERE status = 'PENDING' RETURNING id"
_ENDED = "SELECT id, status, error FROM tasks_task WHERE status NOT IN ('PENDING', 'RUNNING')"
_READERS = """
    SELECT t.id, d.name FROM tasks_task t JOIN datasources_datasource d ON d.id = t.datasource_id
    WHERE t.supervisor_id <> '' ORDER BY d.name
"""
Results = dict[str, Any]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    add_stack_options(parser)
    parser.add_argument("--supervisors", type=int, default=500)
    parser.add_argument("--tasks", type=int, default=2_000, help="a multiple of the supervisors")
    parser.add_argument("--indexers", type=int, default=5, help="of each task")
    parser.add_argument("--period", type=float, default=10.0, help="seconds between two heartbeats of a task")
    parser.add_argument("--publishes", type=float, default=50.0, help="a second")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each phase")


def run(options: argparse.Namespace) -> Results:
    """Keys as documented in benchmarks/README.md."""
    with stack(options) as house:
        house.environment.update(SETTINGS, HEADGATE_WORKER_CAPACITY=str(options.indexers))
        for app in (house.web, house.worker, house.beat):
            app.restart()
        began = time.monotonic()
        tasks = _open(house, options)
        writers = _writers(house, tasks)
        results: Results = {"tasks": len(tasks), "open_s": time.monotonic() - began}
        site = Site(house, Applications(house.url, tasks), options.seconds)
        site.applications.beat(SETTLE_S, options.period)
        silent = site.phase(options.period, seconds=0, beside=_nothing)
        usual = site.phase(options.period)
        with_publishes = site.phase(
            options.period, beside=lambda: _publish(writers, options.seconds, options.publishes)
        )
        with_pages = site.phase(options.period, beside=lambda: _pages(house, options.seconds))
        results |= _costs(silent, usual, with_publishes) | with_pages.beside
        phases = (usual, with_publishes, with_pages)
        refused = [line for phase in phases for line in phase.beaten.refused]
        ended = [f"{task} is {status}: {error[:200]}" for task, status, error in house.sql(_ENDED)]
        results["wrong"] = [*refused, *ended]
    for line in results["wrong"][:10]:
        print(f"WRONG: {line}", flush=True)
    return results


@dataclass
class Phase:
    """What was done, and what it cost."""

    beaten: Beaten
    seconds: float
    spent_s: dict[str, float]  # processor time of web, postgres, upkeep
    wal_bytes: int
    beside: Results = field(default_factory=dict)

    def cores(self, part: str) -> float:
        return self.spent_s[part] / self.seconds

    def beyond(self, before: Phase, part: str) -> float:
        """Seconds of processor time."""
        return self.spent_s[part] - before.cores(part) * self.seconds


@dataclass
class Site:
    """The control plane, and those that speak to it all the time."""

    house: House
    applications: Applications
    seconds: float

    def phase(self, period_s: float, *, seconds: float | None = None, beside: Callable[[], Results] = dict) -> Phase:
        """Heartbeats for some time, and something beside them."""
        spent, wal, began = processor_s(self.house), _wal(self.house), time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(beside)
            beaten = self.applications.beat(self.seconds if seconds is None else seconds, period_s)
            found = other.result()
        now = processor_s(self.house)
        passed = time.monotonic() - began
        phase = Phase(beaten, passed, {k: now[k] - spent[k] for k in now}, _wal(self.house) - wal, found)
        cores = {part: round(phase.cores(part), 2) for part in phase.spent_s}
        print(f"{len(beaten.seconds)} heartbeats in {passed:.0f} s, cores: {cores}, beside: {found}", flush=True)
        return phase


def _wal(house: House) -> int:
    [(position,)] = house.sql("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::int8")
    return int(position)


def _nothing() -> Results:
    """For less time than a silent task is given."""
    time.sleep(SILENT_S)
    return {}


def _costs(silent: Phase, usual: Phase, publishes: Phase) -> Results:
    """Of one heartbeat and one publish: what a phase spent beyond what it would have at the pace of the one before."""
    count, published = len(usual.beaten.seconds), publishes.beside["publishes"]
    results: Results = {
        "heartbeats_per_s": count / usual.seconds,
        "heartbeats_late": usual.beaten.late + publishes.beaten.late,
        "heartbeat_p50_ms": 1000 * percentile(usual.beaten.seconds, 0.5),
        "heartbeat_p99_ms": 1000 * percentile(usual.beaten.seconds, 0.99),
        "heartbeat_wal_bytes": (usual.wal_bytes - silent.wal_bytes * usual.seconds / silent.seconds) / count,
        **publishes.beside,
    }
    more_wal = publishes.wal_bytes - usual.wal_bytes * publishes.seconds / usual.seconds
    results["publish_wal_bytes"] = more_wal / published
    for part in usual.spent_s:
        results[f"heartbeat_{part}_cpu_ms"] = 1000 * usual.beyond(silent, part) / count
        results[f"publish_{part}_cpu_ms"] = 1000 * publishes.beyond(usual, part) / published
        results[f"rest_{part}_cores"] = silent.cores(part)
        results[f"all_{part}_cores"] = publishes.cores(part)
    return results


def _open(house: House, options: argparse.Namespace) -> list[RunningTask]:
    """Topics, their supervisors, and all tasks, each with its token."""
    _fill_the_pool(house, options.indexers)
    names = [f"scale-{n:04d}" for n in range(options.supervisors)]
    publishes_each = options.seconds * options.publishes / options.supervisors
    records = BATCH * (1 + math.ceil(publishes_each / PARTITIONS))  # in each partition
    for future in house.admin.create_topics([NewTopic(name, PARTITIONS) for name in names]).values():
        future.result(60)
    for name in names:
        for partition in range(PARTITIONS):
            for _ in range(records):
                house.producer.produce(name, b"{}", partition=partition)
        house.producer.flush(30)
        house.supervise(house.spec(name, taskCount=options.indexers, idleConfig={"enabled": False}))
    waiting = "SELECT 1 FROM tasks_task WHERE status = 'PENDING' AND supervisor_id <> ''"
    wait_for("every supervisor has its task", lambda: len(house.sql(waiting)) >= len(names), 600)
    house.sql(_MORE, options.tasks // options.supervisors)
    return [RunningTask(task, _token(task), options.indexers) for (task,) in house.sql(_TAKE)]


def _fill_the_pool(house: House, indexers: int) -> None:
    """With a task that never ends, so that no other is launched: a client stands for its application."""
    task, _ = make_task(house)
    house.sql(
        "UPDATE tasks_task SET indexers_wanted = %s, launched_at = now() WHERE id = %s RETURNING 1", indexers, task
    )


def _token(task: str) -> str:
    from controlplane.tasks.lifecycle import new_token  # not at the top: the settings are read when it is loaded
    from controlplane.tasks.models import Task

    return new_token(Task(id=task))


@dataclass
class Writer:
    """A supervisor's first indexer, which publishes: its client, and how often it has."""

    client: HttpControlPlane
    datasource: str
    topic_id: str
    epoch: int
    publishes: int = 0

    def publish(self) -> float:
        """Seconds that one took, of a file with the next records of one partition after the other."""
        turn, partition = divmod(self.publishes, PARTITIONS)
        start = turn * BATCH
        request = request_of(self.datasource, DAY, timedelta(days=1), self.epoch, partition, start, start + BATCH)
        self.publishes += 1
        began = time.monotonic()
        self.client.publish(0, request.model_copy(update={"topic_id": self.topic_id}))
        return time.monotonic() - began


def _writers(house: House, tasks: list[RunningTask]) -> list[Writer]:
    tokens, readers = {task.id: task.token for task in tasks}, house.sql(_READERS)
    cluster_id = house.admin.describe_cluster().result(30).cluster_id
    topics = house.admin.describe_topics(TopicCollection([topic for _, topic in readers]))
    writers = []
    for task, topic in readers:
        topic_id = str(topics[topic].result(30).topic_id)
        client = HttpControlPlane(house.url, task, tokens[task])
        begin = StartRequest(cluster_id=cluster_id, topic_id=topic_id, host="elsewhere", pid=1000)
        writers.append(Writer(client, topic, topic_id, client.start(0, begin).epoch))
    return writers


def _publish(writers: list[Writer], seconds: float, rate: float) -> Results:
    """So many a second in all, by one writer after the other."""
    begin, count = time.monotonic(), int(seconds * rate)

    def publish(number: int) -> float:
        time.sleep(max(0.0, begin + number / rate - time.monotonic()))
        return writers[number % len(writers)].publish()

    with ThreadPoolExecutor(min(THREADS, len(writers))) as pool:
        took = list(pool.map(publish, range(count)))
    results = {f"publish_p{p}_ms": 1000 * percentile(took, p / 100) for p in (50, 99)}
    return {"publishes": count, "publishes_per_s": count / (time.monotonic() - begin), **results}


def _pages(house: House, seconds: float) -> Results:
    """Each page again and again, one at a time, as one busy person would."""
    took: dict[str, list[float]] = {name: [] for name in PAGES}
    cookies, end = login(house.url, house.username, house.password), time.monotonic() + seconds
    with httpx2.Client(base_url=house.url, cookies=cookies, trust_env=False, timeout=60.0) as client:
        while time.monotonic() < end:
            for name, address in PAGES.items():
                began = time.monotonic()
                client.get(address).raise_for_status()
                took[name].append(time.monotonic() - began)
    return {f"{name}_p95_ms": 1000 * percentile(seconds, 0.95) for name, seconds in took.items()}
