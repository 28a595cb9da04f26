"""What each page takes with a full metadata store, and what open pages cost the web process.

The store gets 10,000 tasks, 500 supervisors and 1,000,000 segments, without a task that runs. Every page is asked for
some times, one after the other, as a logged-in browser does. Then 200 pages are open, each with its stream, while
changes come as 500 running tasks would cause them: each page asks again for what changed, as its script does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import psutil
import redis

from benchmarks.measure import percentile
from benchmarks.pages_store import DATASOURCE, SUPERVISOR, TASK, fill
from controlplane.embedded import apps
from controlplane.embedded.home import temporary_home
from controlplane.embedded.postgres import Postgres
from controlplane.embedded.valkey import Valkey

PAGES = {
    "home": "/",
    "overview": "/api/v1/overview/",
    "supervisors": "/supervisors/",
    "supervisors_last": "/supervisors/?page=10",
    "supervisors_rest": "/api/v1/supervisors/?limit=500",
    "supervisor": f"/supervisors/{SUPERVISOR}/",
    "lag": f"/supervisors/{SUPERVISOR}/lag/",
    "share_group": f"/supervisors/{SUPERVISOR}/share-group/",
    "spec": f"/supervisors/{SUPERVISOR}/spec/",
    "tasks": "/tasks/",
    "tasks_search": "/tasks/?search=9999",
    "task": f"/tasks/{TASK}/",
    "datasources": "/datasources/",
    "datasource": f"/datasources/{DATASOURCE}/",
    "timeline": f"/datasources/{DATASOURCE}/timeline.json?width=700",
    "intervals": f"/datasources/{DATASOURCE}/intervals/",
    "segments": f"/datasources/{DATASOURCE}/segments/",
    "columns": f"/datasources/{DATASOURCE}/columns/",
    "quarantine": f"/datasources/{DATASOURCE}/quarantine/",
    "progress": f"/datasources/{DATASOURCE}/progress/",
    "events": f"/datasources/{DATASOURCE}/events/",
}
WARM_UP = 3  # requests of each page that are not counted
SETTLE_S = 5.0
Results = dict[str, Any]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    parser.add_argument("--requests", type=int, default=20, help="of each page")
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--supervisors", type=int, default=500)
    parser.add_argument("--segments", type=int, default=1_000_000)
    parser.add_argument("--streams", type=int, default=200, help="open pages")
    parser.add_argument("--seconds", type=float, default=60.0, help="for which they are open")
    parser.add_argument(
        "--changes", type=float, default=250.0, help="a second, meanwhile: 500 tasks, every two seconds"
    )


def run(options: argparse.Namespace) -> Results:
    """Milliseconds of each page, the slowest p95 of all, and the web process's share of a core."""
    with site() as running_site:
        began = time.monotonic()
        fill(running_site.environment, options.tasks, options.supervisors, options.segments)
        results: Results = {"fill_s": time.monotonic() - began}
        for name, address in PAGES.items():
            milliseconds = times(running_site, address, options.requests)
            results |= {
                f"{name}_p50_ms": percentile(milliseconds, 0.5),
                f"{name}_p95_ms": percentile(milliseconds, 0.95),
            }
        slowest = max(PAGES, key=lambda name: results[f"{name}_p95_ms"])
        results |= {"slowest": slowest, "slowest_p95_ms": results[f"{slowest}_p95_ms"]}
        return results | asyncio.run(_measure_streams(running_site, options))


@dataclass(frozen=True)
class Site:
    url: str
    pid: int
    redis_url: str
    environment: Mapping[str, str]
    cookies: Mapping[str, str]


@contextmanager
def site() -> Iterator[Site]:
    """PostgreSQL, Valkey and the web process: nothing that reads or runs."""
    with ExitStack() as services:
        home = services.enter_context(temporary_home())
        postgres = services.enter_context(Postgres(home))
        valkey = services.enter_context(Valkey(home))
        port = home.ports.assign("web")
        environment = apps.environment(home, postgres=postgres, valkey=valkey, web_port=port)
        apps.prepare_database(home, environment)
        web = services.enter_context(apps.Web(home, environment, port=port))
        assert web.pid is not None
        cookies = login(web.url, apps.LOGIN_USER, apps.login_password(home))
        yield Site(web.url, web.pid, valkey.url, environment, cookies)


def login(url: str, username: str, password: str) -> dict[str, str]:
    """The cookies of somebody who has logged in."""
    with httpx2.Client(base_url=url, trust_env=False) as client:
        form = client.get("/login/").text
        token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)[0]
        answer = client.post(
            "/login/",
            data={"username": username, "password": password, "csrfmiddlewaretoken": token},
            headers={"Referer": f"{url}/login/"},
        )
        if answer.status_code != 302:
            raise RuntimeError("could not log in")
        return dict(client.cookies)


def times(site: Site, address: str, requests: int) -> list[float]:
    """Milliseconds of each request."""
    milliseconds = []
    with httpx2.Client(base_url=site.url, cookies=dict(site.cookies), trust_env=False, timeout=60.0) as client:
        for _ in range(WARM_UP + requests):
            began = time.perf_counter()
            answer = client.get(address)
            milliseconds.append(1000 * (time.perf_counter() - began))
            if answer.status_code != 200:
                raise RuntimeError(f"{address} answers {answer.status_code}")
    return milliseconds[WARM_UP:]


@dataclass
class Subscription:
    """What an open page listens to, and asks for when it has changed."""

    topic: str
    part: str


def _subscription(number: int) -> Subscription:
    """Ten in a hundred look at home, twenty at lists, the rest at one supervisor or task each."""
    kind = number % 10
    if kind == 0:
        return Subscription("team", "/")
    if kind in (1, 2):
        return Subscription("team", "/supervisors/" if kind == 1 else "/tasks/")
    name = f"s{number % 500:04d}"
    return Subscription(f"supervisor:{name}", f"/supervisors/{name}/live/")


async def _measure_streams(site: Site, options: argparse.Namespace) -> Results:
    limits = httpx2.Limits(max_connections=None)
    refresh_ms: list[float] = []
    async with httpx2.AsyncClient(
        base_url=site.url, cookies=dict(site.cookies), trust_env=False, timeout=None, limits=limits
    ) as client:
        pages = [asyncio.create_task(_page(client, _subscription(n), refresh_ms)) for n in range(options.streams)]
        publisher = asyncio.create_task(_publish_changes(site, options))
        await asyncio.sleep(SETTLE_S)
        process, before, refreshes_before = psutil.Process(site.pid), time.monotonic(), len(refresh_ms)
        spent = process.cpu_times()
        await asyncio.sleep(options.seconds)
        now = process.cpu_times()
        passed, used = time.monotonic() - before, now.user + now.system - spent.user - spent.system
        broken = sum(page.done() for page in pages)
        for task in (*pages, publisher):
            task.cancel()
        await asyncio.gather(*pages, publisher, return_exceptions=True)
    counted = refresh_ms[refreshes_before:]
    return {
        "streams": options.streams,
        "streams_broken": broken,
        "streams_cpu_percent": 100 * used / passed,
        "streams_mb": process.memory_info().rss / 1e6,
        "refreshes_per_s": len(counted) / passed,
        "refresh_p95_ms": percentile(counted, 0.95) if counted else 0.0,
    }


async def _page(client: httpx2.AsyncClient, subscription: Subscription, refresh_ms: list[float]) -> None:
    """A browser's: its stream, and the part that it asks for again."""
    etag = event_id = ""
    async with client.stream("GET", "/-/live/", params={"t": subscription.topic}) as events:
        events.raise_for_status()
        async for line in events.aiter_lines():
            if line.startswith("id: "):
                event_id = line.removeprefix("id: ")
            if line != "event: changed":
                continue
            began = time.perf_counter()
            headers = {"HX-Request": "true", "If-None-Match": etag, "Last-Event-ID": event_id}
            answer = await client.get(subscription.part, headers=headers)
            if answer.status_code not in (200, 304):
                raise RuntimeError(f"{subscription.part} answers {answer.status_code}")
            refresh_ms.append(1000 * (time.perf_counter() - began))
            etag = answer.headers.get("ETag", etag)


async def _publish_changes(site: Site, options: argparse.Namespace) -> None:
    """Tell what the watch over running tasks would; now and then somebody does something."""
    client = redis.Redis.from_url(site.redis_url)
    # The site's team and its supervisors are the ones that were filled in.
    changes = _changes(options.supervisors)
    while True:
        for _ in range(max(1, round(options.changes / 10))):
            client.publish("headgate:changes", json.dumps(next(changes)))
        await asyncio.sleep(0.1)


def _changes(supervisors: int) -> Iterator[dict[str, Any]]:
    """Changes of supervisors at random; each thousandth is somebody's doing."""
    number, rng = 0, random.Random(1)
    while True:
        number += 1
        name = f"s{rng.randrange(supervisors):04d}"
        change: dict[str, Any] = {"team": 1, "datasource": name, "supervisor": name, "task": f"task-{name}"}
        yield change | ({"urgent": True} if number % 1000 == 0 else {})
