"""What the Iceberg catalog costs: loads of large tables, planning by PyIceberg, and publishes beside loads.

A table has 100 segments in each interval. Each size has a store and a process of its own. The first snapshot is built
in that process, as Celery would. Then the table is loaded while nothing changes, and every second while 20 writers
publish 50 times a second into its last hundred intervals.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import httpx2

from benchmarks.measure import percentile
from benchmarks.pages import Site, site, times
from benchmarks.pages_store import DATASOURCE, fill
from benchmarks.timeline import WARM_UP_S, Writing

ADDRESS = f"/iceberg/v1/namespaces/demo/tables/{DATASOURCE}"
SIZES, MAIN = (10_000, 100_000, 1_000_000), 100_000
MOST_PLANNED = 100_000  # segments, as PyIceberg needs some 75 s and gigabytes for a million
Results = dict[str, Any]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    parser.add_argument(
        "--segments", type=int, nargs="+", default=list(SIZES), help="of the tables, one after the other"
    )
    parser.add_argument("--requests", type=int, default=20, help="loads while nothing changes")
    parser.add_argument("--seconds", type=float, default=20.0, help="of publishing, alone and beside loads")


def run(options: argparse.Namespace) -> Results:
    """By size: seconds of the first build, milliseconds of loads, plans and publishes.

    The keys without a size are those of 100,000 segments, or of the largest table if there is none.
    """
    results: Results = {}
    for segments in options.segments:
        # A process of its own: Django's settings, and so the store, are read once.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            measured = pool.apply(_measure, (segments, options.requests, options.seconds))
        results |= {f"{segments}_{key}": figure for key, figure in measured.items()}
        if segments == MAIN or MAIN not in options.segments:
            results |= {key: measured[key] for key in ("warm_load_p95_ms", "publish_p99_ms")}
    return results


def _measure(segments: int, requests: int, seconds: float) -> Results:
    with site() as running_site:
        began = time.monotonic()
        length = fill(running_site.environment, 100, 2, segments, max(1, segments // 100))
        results: Results = {"fill_s": time.monotonic() - began}
        results |= _first_snapshot()
        results |= _loads(running_site, requests)
        results |= _plans(running_site, segments)
        return results | _beside_publishes(running_site, length, seconds)


def _first_snapshot() -> Results:
    from controlplane.catalog.building import Outcome, build
    from controlplane.datasources.models import Datasource

    began = time.monotonic()
    outcome = build(Datasource.objects.get(name=DATASOURCE), 3600.0)
    assert outcome is Outcome.BUILT
    return {"cold_build_s": time.monotonic() - began}


def _loads(running_site: Site, requests: int) -> Results:
    """The first one, which is cold in the web process, and those after it."""
    with _client(running_site) as client:
        first = _load_ms(client)
    milliseconds = times(running_site, ADDRESS, requests)
    warm = {f"warm_load_p{p}_ms": percentile(milliseconds, p / 100) for p in (50, 95)}
    return {"cold_load_ms": first, **warm}


def _plans(running_site: Site, segments: int) -> Results:
    """Which files a scan by PyIceberg reads: of a day, of all, and of all again with the manifests that it keeps."""
    from pyiceberg.catalog import load_catalog

    from controlplane.teams.models import ApiToken, User

    _, secret = ApiToken.objects.create(user=User.objects.filter(is_superuser=True)[0], name="benchmark")
    table = load_catalog("headgate", type="rest", uri=f"{running_site.url}/iceberg", token=secret).load_table(
        ("demo", DATASOURCE)
    )
    end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    day = f"__time >= '{(end - timedelta(days=1)).isoformat()}' AND __time < '{end.isoformat()}'"
    results = _planned("plan_day", table.scan(row_filter=day))
    if segments > MOST_PLANNED:
        return results
    results |= _planned("plan_all", table.scan())
    assert results["plan_all_files"] == segments
    return results | _planned("plan_again", table.scan())


def _planned(key: str, scan: Any) -> Results:
    began = time.perf_counter()
    files = sum(1 for _ in scan.plan_files())
    return {f"{key}_files": files, f"{key}_ms": 1000 * (time.perf_counter() - began)}


def _beside_publishes(running_site: Site, length: timedelta, seconds: float) -> Results:
    """Publishes alone, and beside a reader who loads the table every second, which is a snapshot each time."""
    from controlplane.segments.models import Snapshot

    writing = Writing(running_site, DATASOURCE, length, seed=2)
    writing.publish(WARM_UP_S)
    alone = writing.publish(seconds)
    before, over = Snapshot.objects.count(), Event()
    with ThreadPoolExecutor(1) as pool:
        reading: Future[list[float]] = pool.submit(_load_until, running_site, over)
        beside = writing.publish(seconds)
        over.set()
        loads = reading.result()
    return {
        "publish_alone_p99_ms": 1000 * percentile(alone, 0.99),
        "publish_p99_ms": 1000 * percentile(beside, 0.99),
        "publish_paced_per_s": len(beside) / seconds,
        "load_beside_p50_ms": percentile(loads, 0.5),
        "load_beside_p95_ms": percentile(loads, 0.95),
        "snapshots_beside": Snapshot.objects.count() - before,
    }


def _load_until(running_site: Site, over: Event) -> list[float]:
    milliseconds = []
    with _client(running_site) as client:
        while not over.wait(1.0):
            milliseconds.append(_load_ms(client))
    return milliseconds


def _client(running_site: Site) -> httpx2.Client:
    return httpx2.Client(base_url=running_site.url, cookies=dict(running_site.cookies), trust_env=False, timeout=120.0)


def _load_ms(client: httpx2.Client) -> float:
    began = time.perf_counter()
    answer = client.get(ADDRESS)
    took = 1000 * (time.perf_counter() - began)
    if answer.status_code != 200:
        raise RuntimeError(f"{ADDRESS} answers {answer.status_code}: {answer.text[:200]}")
    return took
