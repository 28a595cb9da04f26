"""From one version to this one under ingestion: process after process, then back, and every record counted.

A stack with the code of ``--from`` reads a share group and stored offsets. This version migrates the store, then web,
worker, beat and the tasks change to it one after another, and web, worker and beat change back. A client asks all the
time.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import httpx2
import psutil

from benchmarks.measure import longest_gaps
from benchmarks.soak import LAST_RECORDS, Waiting, kill_leftovers
from benchmarks.soak.lanes import PARTITIONS, Lane, publish_times, published
from benchmarks.soak.producers import Producing
from benchmarks.soak.verdict import judge, read_log, settled
from controlplane.common.applications import running_applications
from controlplane.embedded import apps
from controlplane.embedded.home import PROJECT, default_cache, temporary_home
from controlplane.embedded.spark_classes import prepare_classes
from tests.support.house import House
from tests.support.waiting import wait_for

KINDS = ("share_group", "offset_range")
PAUSE_S = 0.1
ASKS_EVERY_S = 0.5
SETTLE_S = 300.0  # of a machine that does much else
# A repair that waits for its start when everything is stopped at the end counts as failed: nothing went wrong.
_FAILED = (
    "SELECT id || ': ' || error || ' ' || message FROM tasks_task WHERE status = 'FAILED'"
    " AND NOT (kind = 'repair' AND launched_at IS NULL AND goal <> 'continue')"
)
_HEARTBEAT = (
    "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - last_heartbeat_at)), 0)::float FROM tasks_task"
    " WHERE status = 'RUNNING'"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """From which version, how long, how much."""
    parser.add_argument("--from", dest="revision", help="git revision to begin with (before the newest migration)")
    parser.add_argument("--dwell", type=float, default=10.0, help="seconds after each step (%(default)g)")
    parser.add_argument("--rate", type=int, default=200, help="records a second to each topic (%(default)s)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Keys as documented in benchmarks/README.md."""
    revision = options.revision or version_before()
    with code_of(revision) as old, temporary_home() as home, kill_leftovers(home):
        prepare_classes(home.log("spark-classes"))
        os.environ["HEADGATE_CACHE_DIR"] = str(default_cache())  # old code would look in its own folder
        house = House(home, code=old)
        try:
            return {"from": revision or "this version", **Upgrade(house, old, options).results()}
        finally:
            house.close()


def version_before() -> str | None:
    """The git revision before the newest migration was added; None in a copy that lacks this history."""
    with suppress(subprocess.CalledProcessError, FileNotFoundError):
        added = _git("log", "-1", "--diff-filter=A", "--format=%H", "--", "*/migrations/0*.py").decode().strip()
        return _git("rev-parse", "--verify", f"{added}^").decode().strip()
    return None


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=PROJECT, stdout=subprocess.PIPE, check=True).stdout


@contextmanager
def code_of(revision: str | None) -> Iterator[Path]:
    """A folder with the files of a git revision, and the packages that it needs and this one has no more.

    Without a revision it is a copy of this version. Raises ``CalledProcessError`` when there is no such revision, or
    no package index.
    """
    with tempfile.TemporaryDirectory(prefix="headgate-code-") as folder:
        if revision:
            subprocess.run(["tar", "-x", "-C", folder], input=_git("archive", revision), check=True)
        else:
            shutil.copytree(PROJECT, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*", "node_modules"))
        pins = re.findall(
            r"^([\w.-]+)(?:\[.*\])?(==\S+)", (Path(folder) / "requirements.txt").read_text(), re.MULTILINE
        )
        if missing := [name + version for name, version in pins if not _is_installed(name)]:
            install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, *missing]
            subprocess.run(install, check=True)
        yield Path(folder)


def _is_installed(name: str) -> bool:
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False


class Client:
    """Asks for a page of REST and for ``readyz`` again and again, through the proxy, as people's programs do."""

    def __init__(self, house: House, path: str) -> None:
        self.asked, self.errors, self.slowest_s = 0, list[str](), 0.0
        self._stopped = threading.Event()
        self._http = httpx2.Client(base_url=house.proxy.url, timeout=30.0, trust_env=False)
        self._headers = {"Authorization": f"Bearer {house.token}", "X-Headgate-Team": "demo"}
        self._thread = threading.Thread(target=self._run, args=(path,), daemon=True)
        self._thread.start()

    def _run(self, path: str) -> None:
        while not self._stopped.wait(ASKS_EVERY_S):
            for address in (path, "/readyz"):
                began = time.monotonic()
                try:
                    status = str(self._http.get(address, headers=self._headers).status_code)
                except httpx2.HTTPError as problem:
                    status = repr(problem)
                self.asked, self.slowest_s = self.asked + 1, max(self.slowest_s, time.monotonic() - began)
                if status != "200":
                    self.errors.append(f"{datetime.now():%H:%M:%S} {address} {status}")

    def finish(self) -> None:
        self._stopped.set()
        self._thread.join(60)


class Upgrade:
    """The steps, in the order of docs/operations/upgrades.md, and what each of them cost."""

    def __init__(self, house: House, old: Path, options: argparse.Namespace) -> None:
        self.house, self.old, self.options = house, old, options
        self.lanes = [Lane(kind, house.topic(kind.replace("_", "-"), PARTITIONS), task_count=1) for kind in KINDS]
        self.waiting = Waiting(house, SETTLE_S)
        self.steps: list[tuple[str, datetime, datetime]] = []
        self.heartbeat_s = 0.0

    def results(self) -> dict[str, Any]:
        house, rate = self.house, self.options.rate
        for lane in self.lanes:
            lane.submit(house)
        streams = {lane.kind: Producing(house.bootstrap, lane.topic, rate, "upgrade") for lane in self.lanes}
        self.waiting.for_each(self.lanes, "publishes", lambda lane: published(house, lane))
        client = Client(house, f"/api/v1/datasources/{self.lanes[0].datasource}/")
        self._step("before", lambda: None)
        house.environment["PYTHONPATH"] = str(PROJECT)  # of what starts from now on
        self._step("migrate", lambda: house.manage("migrate", "--no-input"))
        self._step("web", lambda: self._web("web-new"))
        self._step("worker", house.worker.restart)
        self._step("beat", house.beat.restart)
        self._step("tasks", self._replace_tasks)
        house.environment["PYTHONPATH"] = str(self.old)
        self._step("back", self._back)
        client.finish()
        for lane in self.lanes:
            streams[lane.kind].finish()
            streams[lane.kind].send(LAST_RECORDS, "upgrade last")
        logs = {lane.kind: read_log(house.bootstrap, lane.topic, PARTITIONS) for lane in self.lanes}
        self.waiting.for_each(
            self.lanes, "has settled", lambda lane: settled(house, lane, streams[lane.kind].ledger, logs[lane.kind])
        )
        silences = self._silences()
        self.waiting.until("every task has ended", house.rest)
        verdicts = {lane.kind: judge(house, lane, streams[lane.kind].ledger, logs[lane.kind]) for lane in self.lanes}
        wrong = self.waiting.timed_out + [str(row[0]) for row in house.sql(_FAILED)]
        wrong += [f"{kind}: {line}" for kind, verdict in verdicts.items() for line in verdict.faults]
        for line in wrong + client.errors:
            print(f"WRONG: {line}", flush=True)
        return {
            **{f"{kind}_stored": verdict.stored for kind, verdict in verdicts.items()},
            **{f"{kind}_redelivered": verdict.totals.get("redelivered") for kind, verdict in verdicts.items()},
            **silences,
            "longest_silence_s": max(silences.values()),
            "oldest_heartbeat_s": self.heartbeat_s,
            "client_requests": client.asked,
            "client_errors": client.errors,
            "client_slowest_s": client.slowest_s,
            "refused": ", ".join(f"{what}: {times}" for what, times in sorted(house.proxy.refusals.items())),
            "lost": sum(verdict.lost for verdict in verdicts.values()),
            "duplicated": sum(verdict.duplicated for verdict in verdicts.values()),
            "wrong": wrong,
            "load": os.getloadavg()[0],
        }

    def _step(self, name: str, do: Callable[[], Any]) -> None:
        """Do it, then look on until the time is over and each lane has published something since."""
        began = self._now()
        do()
        rows = {lane.kind: published(self.house, lane) for lane in self.lanes}
        print(f"{began:%H:%M:%S} {name}: done after {(self._now() - began).total_seconds():.1f} s", flush=True)
        end = time.monotonic() + self.options.dwell
        while time.monotonic() < end:
            self.heartbeat_s = max(self.heartbeat_s, self.house.sql(_HEARTBEAT)[0][0])
            time.sleep(PAUSE_S)
        self.waiting.for_each(
            self.lanes, f"publishes after {name}", lambda lane: published(self.house, lane) > rows[lane.kind]
        )
        self.steps.append((name, began, self._now()))

    def _now(self) -> datetime:
        """By the clock of the store, as publishes have it."""
        return self.house.sql("SELECT clock_timestamp()")[0][0]

    def _web(self, name: str) -> None:
        home = self.house.home
        self.house.switch_web(apps.Web(home, self.house.environment, port=home.ports.assign(name), name=name))

    def _replace_tasks(self) -> None:
        """Each supervisor hands off, until none of its applications has the old code."""
        assert len(list(self._old_applications())) >= len(self.lanes), "they had the old code until now"
        for lane in self.lanes:
            self.house.api("POST", f"/api/v1/supervisors/{lane.datasource}/handoff/")
        self.waiting.until(
            "every task has the new code",
            lambda: wait_for("no application has the old code", lambda: not list(self._old_applications()), SETTLE_S),
        )

    def _old_applications(self) -> Iterator[str]:
        """Of supervisors: repairs and merges end by themselves."""
        for task, process in running_applications(self.house.home.tasks):
            with suppress(psutil.Error):  # it may end meanwhile
                code = psutil.Process(process.pid).environ()["PYTHONPATH"]
                if code == str(self.old) and any(
                    f"_{lane.datasource}_" in task and not task.startswith("repair_") for lane in self.lanes
                ):
                    yield task

    def _back(self) -> None:
        """The tasks keep the new code."""
        self._web("web-old")
        self.house.worker.restart()
        self.house.beat.restart()

    def _silences(self) -> dict[str, float]:
        """Of each kind over all steps, and of each step over the kinds: seconds between two publishes."""
        times = {lane.kind: publish_times(self.house, lane) for lane in self.lanes}
        gaps = {kind: longest_gaps(found, self.steps) for kind, found in times.items()}
        by_step = {f"{name}_silence_s": max(gaps[kind][name] for kind in KINDS) for name, *_ in self.steps}
        return {f"{kind}_silence_s": max(gaps[kind].values()) for kind in KINDS} | by_step
