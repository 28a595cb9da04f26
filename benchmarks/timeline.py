"""What a full metadata store costs: the timeline at any zoom, lists, plans, and publishes into it.

One datasource has all segments, in hours, or in minutes when that would be more than ten years. Addresses are asked for
one after the other through HTTP, plans are made in this process, and publishes come 50 a second from 20 writers. At
last a rule drops a tenth of it beside publishes, and the datasource is deleted.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any
from urllib.parse import urlencode

import psycopg

from benchmarks.measure import percentile
from benchmarks.pages import Site, site, times
from benchmarks.pages_store import DATASOURCE, fill

API, PAGE = f"/api/v1/datasources/{DATASOURCE}", f"/datasources/{DATASOURCE}"
EMPTY = "s0001"  # a datasource without segments
WRITERS, RATE, WARM_UP_S = 20, 50.0, 5.0
Results = dict[str, Any]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    parser.add_argument("--segments", type=int, default=1_000_000)
    parser.add_argument("--intervals", type=int, default=20_000)
    parser.add_argument("--requests", type=int, default=20, help="of each address")
    parser.add_argument("--seconds", type=float, default=20.0, help="of publishing")


def run(options: argparse.Namespace) -> Results:
    """Milliseconds: of each zoom and list, the slowest p95 of both, of plans of a day, and p99 of publishes."""
    with site() as running_site:
        began = time.monotonic()
        length = fill(running_site.environment, 1_000, 50, options.segments, options.intervals)
        results: Results = {"fill_s": time.monotonic() - began}
        span = length * options.intervals
        results |= _time_addresses(
            running_site, options.requests, {f"zoom_{k}": a for k, a in _zooms(span).items()}, "timeline"
        )
        results |= _time_addresses(
            running_site, options.requests, {f"list_{k}": a for k, a in _lists(span).items()}, "lists"
        )
        results |= _plans(span, 5 * options.requests)
        results |= _publishes(running_site, length, options.seconds)
        return results | _removals(running_site, length, options.segments, options.intervals)


# Of minutes, 33 hours have nearly as many as get a bar each, and 34.7 as many as are looked at one by one.
_DAYS = (
    ("10_years", 3650),
    ("year", 365),
    ("5_weeks", 34.7),
    ("month", 30),
    ("week", 7),
    ("33_hours", 33 / 24),
    ("day", 1),
    ("hour", 1 / 24),
)


def _zooms(span: timedelta) -> dict[str, str]:
    """Of the whole, and of windows in its middle."""
    middle = datetime.now(UTC) - span / 2
    addresses = {"all": f"{API}/timeline/", "page": f"{PAGE}/timeline.json?width=1400"}
    addresses["layers"] = f"{PAGE}/timeline.json?width=1400&layers=unused,merged,late"
    for name, days in _DAYS:
        if days < span.days:
            half = timedelta(days=days) / 2
            addresses[name] = f"{API}/timeline/?{_window(middle - half, middle + half)}"
    return addresses


def _window(start: datetime, end: datetime) -> str:
    return urlencode({"from": start.isoformat(), "to": end.isoformat(), "width": 1000})


def _lists(span: timedelta) -> dict[str, str]:
    middle = datetime.now(UTC) - span / 2
    day = urlencode({"from": middle.isoformat(), "to": (middle + timedelta(days=1)).isoformat()})
    half = urlencode({"from": (middle - span).isoformat(), "to": middle.isoformat()})
    return {
        "segments": f"{API}/segments/",
        "segments_day": f"{API}/segments/?{day}",
        "segments_half": f"{API}/segments/?{half}",
        "segments_page": f"{PAGE}/segments/",
        "segments_page_day": f"{PAGE}/segments/?{day}",
        "intervals_page": f"{PAGE}/intervals/",
        "datasource_page": f"{PAGE}/",
        "datasource": f"{API}/",
        "columns_page": f"{PAGE}/columns/",
        "datasources": "/api/v1/datasources/",
        "datasources_page": "/datasources/",
        "manifest_day": f"{API}/manifest/?{day}",
    }


def _time_addresses(running_site: Site, requests: int, addresses: Mapping[str, str], group: str) -> Results:
    p95s = {name: percentile(times(running_site, address, requests), 0.95) for name, address in addresses.items()}
    return {f"{name}_p95_ms": ms for name, ms in p95s.items()} | {f"{group}_p95_ms": max(p95s.values())}


def _plans(span: timedelta, plans: int) -> Results:
    """All that a reader needs of a day's segments, each time another day."""
    from controlplane.datasources.models import Datasource
    from controlplane.segments.selectors.planning import live_segments

    datasource, rng, milliseconds = Datasource.objects.get(name=DATASOURCE), random.Random(1), []
    for _ in range(plans):
        end = datetime.now(UTC) - timedelta(days=rng.random() * max(0, span.days - 1))
        planned = live_segments(datasource, end - timedelta(days=1), end)
        began = time.perf_counter()
        files = len(planned.values_list("id", "path", "size_bytes", "rows", "min_time", "max_time"))
        milliseconds.append(1000 * (time.perf_counter() - began))
    return {
        "plan_day_files": files,
        "plan_day_p50_ms": percentile(milliseconds, 0.5),
        "plan_day_p95_ms": percentile(milliseconds, 0.95),
    }


def _removals(running_site: Site, length: timedelta, segments: int, intervals: int) -> Results:
    """What a drop rule takes for a tenth of the segments, and publishes beside it; then the whole datasource deleted.

    ``longest``: transactions, as whoever waits for a row or cleans up sees them.
    """
    from controlplane.datasources.models import Datasource
    from controlplane.retention import rule_runner
    from controlplane.retention.datasource_deletion import continue_deleting, delete_datasource
    from controlplane.retention.rules import read_rules
    from controlplane.segments.models import Segment
    from controlplane.supervisors.models import Supervisor
    from controlplane.tasks.models import Task
    from controlplane.teams.models import User

    datasource, user = Datasource.objects.get(name=DATASOURCE), User.objects.filter(is_superuser=True).first()
    assert user is not None
    dropped = read_rules([{"type": "dropBeforeByPeriod", "period": f"PT{_hours(length, intervals * 9 // 10)}H"}])
    rule_runner.set_rules(user=user, datasource=datasource, rules=dropped)
    results: Results = {}
    with ThreadPoolExecutor(1) as pool:
        dropping = pool.submit(_timed, rule_runner.run)
        during = _publishes(running_site, length, 10.0, seed=3)
        results |= dict(zip(("drop_s", "drop_segments", "drop_longest_ms"), dropping.result(), strict=True))
    results["drop_publish_p99_ms"] = during["publish_p99_ms"]
    Task.objects.update(status="SUCCESS")
    Supervisor.objects.update(terminated_at=datetime.now(UTC))
    began, answer_s = time.monotonic(), 0.0

    def delete() -> int:
        nonlocal answer_s
        amount = delete_datasource(user=user, datasource=datasource, name=DATASOURCE)
        answer_s = time.monotonic() - began
        continue_deleting(3600.0)
        return amount.segments

    results |= dict(zip(("delete_s", "delete_segments", "delete_longest_ms"), _timed(delete), strict=True))
    assert not Segment.objects.filter(datasource=datasource, kill_began_at=None).exists()
    return results | {"delete_answer_s": answer_s}


def _hours(length: timedelta, intervals: int) -> int:
    return int(length * intervals / timedelta(hours=1))


def _timed(work: Callable[[], Any]) -> tuple[float, Any, float]:
    """Seconds, what came of it, and its longest transaction in milliseconds."""
    from django.db import connection

    connection.ensure_connection()
    pid, dsn = connection.connection.info.backend_pid, os.environ["DATABASE_URL"]
    over, longest = Event(), 0.0

    def poll() -> None:
        nonlocal longest
        with psycopg.connect(dsn, autocommit=True) as store:
            while not over.wait(0.02):
                row = store.execute(_RUNS_FOR, (pid,)).fetchone()
                longest = max(longest, float(row[0] or 0) if row else 0.0)

    poller = Thread(target=poll, daemon=True)
    poller.start()
    began = time.monotonic()
    outcome = work()
    took = time.monotonic() - began
    over.set()
    poller.join()
    connection.close()
    return took, outcome, longest


_RUNS_FOR = "SELECT 1000 * extract(epoch FROM clock_timestamp() - xact_start) FROM pg_stat_activity WHERE pid = %s"


def _publishes(running_site: Site, length: timedelta, seconds: float, seed: int = 2) -> Results:
    """Into one of the last hundred intervals each; in turn as many into a datasource that had no segments.

    What both take alike is the machine's, or any publish's: it is not the store's size.
    """
    writing = {name: Writing(running_site, name, length, seed) for name in (DATASOURCE, EMPTY)}
    took: dict[str, list[float]] = {name: [] for name in writing}
    for name in writing:
        writing[name].publish(WARM_UP_S)
    for name in (DATASOURCE, EMPTY, EMPTY, DATASOURCE):
        took[name] += writing[name].publish(seconds / 2)
    full = {f"publish_p{p}_ms": 1000 * percentile(took[DATASOURCE], p / 100) for p in (50, 99)}
    empty = {f"publish_empty_p{p}_ms": 1000 * percentile(took[EMPTY], p / 100) for p in (50, 99)}
    return {**full, **empty, "publish_paced_per_s": len(took[DATASOURCE]) / seconds}


class Writing:
    """Writers of one datasource's task."""

    def __init__(self, running_site: Site, datasource: str, length: timedelta, seed: int) -> None:
        from benchmarks.publish import FIRST_OFFSET, PARTITIONS, Offsets
        from controlplane.sources.models import Source
        from controlplane.tasks.lifecycle import new_token
        from controlplane.tasks.models import Task

        self._url, self._datasource, self._length = running_site.url, datasource, length
        self._task = f"task-{datasource}"
        self._token = new_token(Task.objects.get(pk=self._task))
        self._offsets, self._random = Offsets(FIRST_OFFSET * (1 + seed)), random.Random(seed)
        self._newest = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        # No Kafka can be asked whether it has these offsets.
        ends = {str(partition): [0, 0, 10 * FIRST_OFFSET] for partition in range(PARTITIONS)}
        Source.objects.filter(topic=datasource).update(topic_id="t", bounds=ends)

    def publish(self, seconds: float) -> list[float]:
        """Seconds of each publish."""
        from benchmarks.publish import publishes

        return publishes(self._url, self._task, self._token, self._offsets, WRITERS, seconds, RATE, self._request)

    def _request(self, epoch: int, partition: int, start: int, stop: int) -> Any:
        from benchmarks.publish import request_of

        begins = self._newest - self._random.randrange(100) * self._length
        return request_of(self._datasource, begins, self._length, epoch, partition, start, stop)
