"""The publish transaction through HTTP: 20 writers on 4 partitions, store empty and with 100,000 ranges settled.

Each writer settles batches of its own offsets, with a hole after each, so that ranges can't be folded. Paced runs ask
for 50 publishes a second in all and measure each answer; the unpaced run measures how many a second there can be.

What each process spends on it is told beside: that a busy machine changes little.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import psycopg

from benchmarks.measure import percentile
from benchmarks.stack import add_stack_options, stack
from ingestion.specs.source_traits import SHARE_GROUP
from tests.support.house import House

DAY = datetime(2025, 6, 1, tzinfo=UTC)
BATCH = 100
HOLE = 1
WARM_UP_S = (
    5.0  # in which the web process opens its connections and PostgreSQL plans: they are a start's, not a publish's
)
FIRST_OFFSET = 1_000_000_000
PARTITIONS = 4
OFFSET_BITS = 44
MakeRequest = Callable[[int, int, int, int], Any]  # of epoch, partition, and the offsets' start and stop


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    add_stack_options(parser)
    parser.add_argument("--writers", type=int, default=20)
    parser.add_argument("--rate", type=float, default=50.0, help="publishes a second in the paced runs")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each run")
    parser.add_argument("--settled", type=int, default=100_000, help="ranges in the store for the second half")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Empty store, then with settled ranges: paced p50 and p99 in milliseconds, unpaced publishes a second."""
    results: dict[str, Any] = {"writers": options.writers, "rate": options.rate}
    with stack(options) as house:
        task, token = make_task(house)
        offsets = Offsets()
        publishes(house.url, task, token, offsets, options.writers, WARM_UP_S, options.rate)
        for name in ("empty", "settled"):
            if name == "settled":
                fill(house, options.settled)
            before = processor_s(house)
            paced = publishes(house.url, task, token, offsets, options.writers, options.seconds, options.rate)
            spent = {part: s - before[part] for part, s in processor_s(house).items()}
            results |= {f"{name}_p{p}_ms": 1000 * percentile(paced, p / 100) for p in (50, 99)}
            results[f"{name}_paced_per_s"] = len(paced) / options.seconds
            results |= {f"{name}_{part}_cpu_ms": 1000 * s / len(paced) for part, s in spent.items()}
            unpaced = publishes(house.url, task, token, offsets, options.writers, options.seconds, None)
            results[f"{name}_publishes_per_s"] = len(unpaced) / options.seconds
    return results


def processor_s(house: House) -> dict[str, float]:
    """Seconds of processor time so far of the web process, PostgreSQL, and the Celery workers (upkeep).

    Without Spark's processes, which workers start: that of compaction starts while this goes on.
    """
    parts = {"web": house.web, "postgres": house.postgres, "upkeep": house.worker}
    return {name: _family_s(service.pid) for name, service in parts.items() if getattr(service, "pid", None)}


def _family_s(pid: int) -> float:
    root = psutil.Process(pid)
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            if any("ingestion/spark" in word or "ingestion.spark" in word for word in process.cmdline()):
                continue
            times = process.cpu_times()
            total += times.user + times.system + (times.children_user + times.children_system) * (process.pid == pid)
    return total


def make_task(house: House) -> tuple[str, str]:
    """A task that no application runs, and its token."""
    os.environ.update(house.environment)
    import django

    django.setup()
    from django.utils import timezone

    from controlplane.datasources.models import Datasource
    from controlplane.tasks.lifecycle import new_token
    from controlplane.tasks.models import Status, Task
    from controlplane.teams.models import Team
    from ingestion.specs.tasks.ingestion_spec import parse_task_spec

    datasource = Datasource.objects.create(name="publish-bench", team=Team.objects.get(name="demo"))
    now = timezone.now()
    task = Task.objects.create(
        id=f"publish-bench-{uuid.uuid4().hex[:8]}",
        kind=SHARE_GROUP.kind,
        datasource=datasource,
        spec=parse_task_spec(house.spec("bench", "publish-bench", idleConfig={"enabled": False})).canonical(),
        status=Status.RUNNING,
        created_at=now,
        started_at=now,
        last_heartbeat_at=now + timedelta(days=1),
    )
    return task.pk, new_token(task)


def fill(house: House, count: int) -> None:
    """Settle ``count`` ranges with holes between them, below the offsets the writers use."""
    with psycopg.connect(house.postgres.dsn) as connection:
        connection.execute(
            "INSERT INTO publishing_settledrange (span, settled_at) SELECT"
            " int8range((k.id << %s) + 2 * n, (k.id << %s) + 2 * n + 1), now()"
            " FROM generate_series(0, %s) n, publishing_progresskey k",
            (OFFSET_BITS, OFFSET_BITS, count // PARTITIONS - 1),
        )
        connection.execute("COMMIT")
    with psycopg.connect(house.postgres.dsn, autocommit=True) as connection:
        connection.execute("ANALYZE publishing_settledrange")


class Offsets:
    """Hands out batches of each partition, each offset once, from far above what ``fill`` settles."""

    def __init__(self, first: int = FIRST_OFFSET) -> None:
        self._lock = threading.Lock()
        self._next = dict.fromkeys(range(PARTITIONS), first)

    def take(self, partition: int) -> tuple[int, int]:
        with self._lock:
            start = self._next[partition]
            self._next[partition] += BATCH + HOLE
            return start, start + BATCH


def _day_request(epoch: int, partition: int, start: int, stop: int) -> Any:
    return request_of("publish-bench", DAY, timedelta(days=1), epoch, partition, start, stop)


def publishes(
    url: str,
    task: str,
    token: str,
    offsets: Offsets,
    writers: int,
    seconds: float,
    rate: float | None,
    request: MakeRequest = _day_request,
) -> list[float]:
    """Seconds that each publish took. ``rate``: in all, per second; None: as fast as they go."""
    end = time.monotonic() + seconds

    def write(number: int) -> list[float]:
        return _writer(url, task, token, number, offsets, end, rate and writers / rate, request)

    with ThreadPoolExecutor(writers) as pool:
        return [seconds for timings in pool.map(write, range(writers)) for seconds in timings]


def _writer(
    url: str,
    task: str,
    token: str,
    number: int,
    offsets: Offsets,
    end: float,
    pause: float | None,
    make_request: MakeRequest,
) -> list[float]:
    from ingestion.client.http import HttpControlPlane
    from ingestion.specs.messages.protocol import StartRequest

    client = HttpControlPlane(url, task, token)
    epoch = client.start(number, StartRequest(cluster_id="c", topic_id="t", host="bench", pid=1)).epoch
    timings = []
    due = time.monotonic() + (pause or 0) * number / 20
    while time.monotonic() < end:
        if pause is not None:
            time.sleep(max(0.0, due - time.monotonic()))
            due += pause
        request = make_request(epoch, number % PARTITIONS, *offsets.take(number % PARTITIONS))
        began = time.monotonic()
        client.publish(number, request)
        timings.append(time.monotonic() - began)
    client.close()
    return timings


def _put(path: str, size_bytes: int) -> None:
    """A file of that size, as the control plane looks whether it is there."""
    file = Path(os.environ["HEADGATE_DEEP_STORAGE"]) / path
    file.parent.mkdir(exist_ok=True, parents=True)
    with file.open("wb") as opened:
        opened.truncate(size_bytes)


def request_of(
    folder: str, begins: datetime, length: timedelta, epoch: int, partition: int, start: int, stop: int
) -> Any:
    """A publish of one file in the interval that begins then, with these offsets of one partition."""
    from ingestion.specs.counters import Counters
    from ingestion.specs.messages.protocol import Column, PublishRequest, SegmentFile

    file = SegmentFile(
        path=f"{folder}/{uuid.uuid4()}.parquet",
        interval_start=begins,
        interval_end=begins + length,
        rows=stop - start,
        size_bytes=10_000,
        sha256="0" * 64,
        min_time=begins,
        max_time=begins,
        columns=[Column(name=f"column_{n}", type="string") for n in range(6)],
        offsets={partition: [(start, stop)]},
    )
    _put(file.path, file.size_bytes)
    return PublishRequest(
        publish_id=uuid.uuid4(),
        epoch=epoch,
        topic_id="t",
        segments=[file],
        outcomes={},
        counters=Counters(polled=stop - start, published=stop - start),
    )
