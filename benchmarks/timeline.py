"""What a full metadata store costs: the timeline at any zoom, lists, plans, and publishes into it.

One datasource has all segments, in hours, or in minutes when that would be more than ten years. Addresses are asked for
one after the other through HTTP, plans are made in this process, and publishes come 50 a second from 20 writers.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from benchmarks.measure import percentile
from benchmarks.pages import Site, site, times
from benchmarks.pages_store import DATASOURCE, TASK, fill

API, PAGE = f"/api/v1/datasources/{DATASOURCE}", f"/datasources/{DATASOURCE}"
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
    with site() as opened:
        began = time.monotonic()
        length = fill(opened.environment, 1_000, 50, options.segments, options.intervals)
        results: Results = {"fill_s": time.monotonic() - began}
        span = length * options.intervals
        results |= _asked(opened, options.requests, {f"zoom_{k}": a for k, a in _zooms(span).items()}, "timeline")
        results |= _asked(opened, options.requests, {f"list_{k}": a for k, a in _lists(span).items()}, "lists")
        results |= _plans(span, 5 * options.requests)
        results |= _publishes(opened, length, options.seconds)
        return results


def _zooms(span: timedelta) -> dict[str, str]:
    """Of the whole, and of windows in its middle."""
    middle = datetime.now(UTC) - span / 2
    found = {"all": f"{API}/timeline/", "page": f"{PAGE}/timeline.json?width=1400"}
    found["layers"] = f"{PAGE}/timeline.json?width=1400&layers=unused,merged,late"
    for name, days in (("10_years", 3650), ("year", 365), ("month", 30), ("week", 7), ("day", 1), ("hour", 1 / 24)):
        if days < span.days:
            half = timedelta(days=days) / 2
            found[name] = f"{API}/timeline/?{_window(middle - half, middle + half)}"
    return found


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


def _asked(opened: Site, requests: int, addresses: Mapping[str, str], of_all: str) -> Results:
    found = {name: percentile(times(opened, address, requests), 0.95) for name, address in addresses.items()}
    return {f"{name}_p95_ms": ms for name, ms in found.items()} | {f"{of_all}_p95_ms": max(found.values())}


def _plans(span: timedelta, plans: int) -> Results:
    """All that a reader needs of a day's segments, each time another day."""
    from controlplane.datasources.models import Datasource
    from controlplane.segments.selectors import live_segments

    datasource, of, took = Datasource.objects.get(name=DATASOURCE), random.Random(1), []
    for _ in range(plans):
        end = datetime.now(UTC) - timedelta(days=of.random() * max(0, span.days - 1))
        planned = live_segments(datasource, end - timedelta(days=1), end)
        began = time.perf_counter()
        files = len(planned.values_list("id", "path", "size_bytes", "rows", "min_time", "max_time"))
        took.append(1000 * (time.perf_counter() - began))
    return {
        "plan_day_files": files,
        "plan_day_p50_ms": percentile(took, 0.5),
        "plan_day_p95_ms": percentile(took, 0.95),
    }


def _publishes(opened: Site, length: timedelta, seconds: float) -> Results:
    """Each into one of the last hundred intervals."""
    from benchmarks.publish import FIRST_OFFSET, PARTITIONS, Offsets, publishes, request_of
    from controlplane.segments.models import Source
    from controlplane.tasks.lifecycle import new_token
    from controlplane.tasks.models import Task

    token, of = new_token(Task.objects.get(pk=TASK)), random.Random(2)
    newest = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    # No Kafka can be asked whether it has these offsets.
    ends = {str(partition): [0, 0, 2 * FIRST_OFFSET] for partition in range(PARTITIONS)}
    Source.objects.filter(topic=DATASOURCE).update(topic_id="t", bounds=ends)

    def request(epoch: int, partition: int, start: int, stop: int) -> Any:
        return request_of(DATASOURCE, newest - of.randrange(100) * length, length, epoch, partition, start, stop)

    offsets = Offsets()
    publishes(opened.url, TASK, token, offsets, WRITERS, WARM_UP_S, RATE, request)
    took = publishes(opened.url, TASK, token, offsets, WRITERS, seconds, RATE, request)
    return {f"publish_p{p}_ms": 1000 * percentile(took, p / 100) for p in (50, 99)} | {
        "publish_paced_per_s": len(took) / seconds
    }
