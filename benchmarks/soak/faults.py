"""What is done to the stack, by chance of a seed: begun, and undone some seconds later; several at once."""

from __future__ import annotations

import heapq
import itertools
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import httpx2
import psutil
import psycopg

from benchmarks.soak.lanes import Lane
from benchmarks.soak.producers import COLUMNS
from controlplane.common.applications import running_applications
from controlplane.common.process_identity import Identity
from controlplane.embedded.errors import ServiceFailed
from controlplane.embedded.service import Service
from tests.support.house import House

MAX_INDEXERS = 3
POLL_S = 0.1
READY_S = 1.0

Undo = Callable[[], None]


@dataclass(frozen=True)
class Entry:
    """One line of the log: when (seconds since the beginning), what was done."""

    at_s: float
    description: str

    def __str__(self) -> str:
        return f"{self.at_s:7.1f} s  {self.description}"


@dataclass
class Away:
    """A service, or the source of a lane that was suspended: from when until when, by the machine's clock."""

    name: str
    begin: datetime
    end: datetime | None = None


@dataclass(frozen=True)
class Fault:
    """One kind. ``run`` says what it did, "" when it could not; it may plan what ends it."""

    weight: float
    requires: frozenset[str]
    run: Callable[[], str]


@dataclass
class Faults:
    """Runs until its time is over, then undoes what is still being done. One thread."""

    house: House
    lanes: list[Lane]
    chance: random.Random
    echo: Callable[[str], None] = print
    also: list[Fault] = field(default_factory=list)  # beside those that are always done
    log: list[Entry] = field(default_factory=list)
    away: list[Away] = field(default_factory=list)
    _started_s: float = field(default_factory=time.monotonic)
    _unavailable: set[str] = field(default_factory=set)
    _scheduled: list[tuple[float, int, Undo]] = field(default_factory=list)
    _number: itertools.count[int] = field(default_factory=itertools.count)

    def note(self, what: str) -> None:
        """To the log, and said."""
        entry = Entry(time.monotonic() - self._started_s, what)
        self.log.append(entry)
        self.echo(str(entry))

    def run(self, seconds: float, gap_s: float) -> None:
        """A fault every ``gap_s`` seconds or so; those that wait for others to end leave it to the next."""
        end = time.monotonic() + seconds
        kinds = [*self._kinds(), *self.also]
        while time.monotonic() < end:
            self._wait(min(self.chance.uniform(0.4, 1.6) * gap_s, end - time.monotonic()))
            possible = [kind for kind in kinds if not kind.requires & self._unavailable]
            kind = self.chance.choices(possible, [k.weight for k in possible])[0]
            self.attempt(kind.run)

    def undo_all(self) -> None:
        """Whatever is away comes back, whatever sleeps wakes, and every supervisor follows its spec."""
        while self._scheduled:
            heapq.heappop(self._scheduled)[2]()
        for lane in self.lanes:
            lane.suspended = False
            lane.submit(self.house)
            self.returns(lane.kind)
        self.note("all faults are over; every supervisor has its last spec")

    def _kinds(self) -> list[Fault]:
        store, api = frozenset({"postgres"}), frozenset({"postgres", "web"})
        kinds = [
            Fault(5, store, self._kill_an_indexer),
            Fault(3, store, self._freeze_an_indexer),
            Fault(2.5, frozenset(), self._kill_an_application),
            Fault(1.5, api, self._add_a_column),
            Fault(1.5, api, self._scale),
            Fault(1, api, self._suspend),
            Fault(1.5, frozenset({"proxy"}), self._break_publishes),
            Fault(1, frozenset({"kafka"}), lambda: self.take_down(self.house.kafka, Service.kill, 1, 8)),
            Fault(1, frozenset({"kafka"}), lambda: self.take_down(self.house.kafka, Service.stop, 1, 5)),
            Fault(1, frozenset({"kafka"}), lambda: self._pause(self.house.kafka)),
            Fault(1.5, store, lambda: self.take_down(self.house.postgres, _stop_at_once, 0.2, 6)),
        ]
        for service in (self.house.web, self.house.worker, self.house.beat):
            killed = partial(self.take_down, service, Service.kill, 0.2, 8)
            kinds.append(Fault(1, frozenset({service.name}), killed))
        return kinds

    def attempt(self, do: Callable[[], str]) -> None:
        """What the stack refuses in the state it is in is noted, and no failure."""
        try:
            what = do()
        except (AssertionError, httpx2.HTTPError, psycopg.OperationalError) as problem:
            what = f"not done: {type(problem).__name__} {str(problem)[:200]}"
        if what:
            self.note(what)

    def _wait(self, seconds: float) -> None:
        """Time passes; what is due is undone."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            while self._scheduled and self._scheduled[0][0] <= time.monotonic():
                heapq.heappop(self._scheduled)[2]()
            time.sleep(POLL_S)

    def plan(self, seconds: float, undo: Undo) -> None:
        """Have something undone so many seconds from now."""
        heapq.heappush(self._scheduled, (time.monotonic() + seconds, next(self._number), undo))

    def leaves(self, *names: str) -> None:
        """What needs one of these is not done until they are back."""
        self._unavailable.update(names)
        self.away += [Away(name, datetime.now(UTC)) for name in names]

    def returns(self, *names: str) -> None:
        self._unavailable.difference_update(names)
        for away in self.away:
            if away.name in names and away.end is None:
                away.end = datetime.now(UTC)

    # Processes

    def _pick_indexer(self) -> tuple[Lane, Identity] | None:
        rows = self.house.sql(
            "SELECT d.name, i.pid FROM tasks_indexer i JOIN tasks_task t ON t.id = i.task_id"
            " JOIN datasources_datasource d ON d.id = t.datasource_id"
            " WHERE t.status = 'RUNNING' AND i.pid > 0 AND i.state <> 'stopped' ORDER BY d.name, i.number"
        )
        while rows:
            name, pid = rows.pop(self.chance.randrange(len(rows)))
            with suppress(psutil.Error):  # a row may outlive its process
                return next(lane for lane in self.lanes if lane.datasource == name), Identity.of(pid)
        return None

    def _kill_an_indexer(self) -> str:
        target = self._pick_indexer()
        if target is None:
            return ""
        lane, process = target
        os.kill(process.pid, signal.SIGKILL)
        return f"{lane.kind}: indexer with pid {process.pid} killed"

    def _freeze_an_indexer(self) -> str:
        target = self._pick_indexer()
        if target is None:
            return ""
        lane, process = target
        seconds = self.chance.uniform(1, 20)
        os.kill(process.pid, signal.SIGSTOP)
        self.plan(seconds, lambda: _wake(process))
        return f"{lane.kind}: indexer with pid {process.pid} sleeps for {seconds:.1f} s"

    def _kill_an_application(self) -> str:
        running = [task for task, _ in running_applications(self.house.home.tasks)]
        if not running:
            return ""
        task = self.chance.choice(running)
        self.house.kill_application(task)
        return f"application of task {task} killed"

    # Services

    def take_down(self, service: Service, how: Callable[[Service], None], least_s: float, most_s: float) -> str:
        seconds = self.chance.uniform(least_s, most_s)
        self.leaves(service.name)
        how(service)
        self.plan(seconds, lambda: self.restart(service.name, [service]))
        return f"{service.name}: {how.__name__.strip('_').replace('_', ' ')}, away for {seconds:.1f} s"

    def restart(self, what: str, services: Sequence[Service], *names: str) -> None:
        """Start them; other things are done while they do not answer yet. ``names`` come back with them."""
        for service in services:
            service.stop()
            service.start()
        self._await(what, services, names, time.monotonic() + max(s.ready_timeout_s for s in services))

    def _await(self, what: str, services: Sequence[Service], names: Sequence[str], end: float) -> None:
        try:
            for service in services:
                service.wait_ready(POLL_S)
        except ServiceFailed:
            if time.monotonic() > end or not all(service.running for service in services):
                raise
            self.plan(READY_S, partial(self._await, what, services, names, end))
            return
        self.returns(*(service.name for service in services), *names)
        self.note(f"{what}: is back")

    def _pause(self, service: Service) -> str:
        seconds = self.chance.uniform(2, 15)
        self.leaves(service.name)
        service.pause()
        self.plan(seconds, lambda: self._resume(service))
        return f"{service.name}: paused for {seconds:.1f} s"

    def _resume(self, service: Service) -> None:
        service.resume()
        service.wait_ready()
        self.returns(service.name)
        self.note(f"{service.name}: goes on")

    def _break_publishes(self) -> str:
        fault, seconds = self.chance.choice(["refuse", "lose_answer", "cut"]), self.chance.uniform(0.5, 8)
        self.leaves("proxy")
        self.house.proxy.set(fault)
        self.plan(seconds, self._restore_publishes)
        return f"publishes meet a proxy that does this for {seconds:.1f} s: {fault}"

    def _restore_publishes(self) -> None:
        self.house.proxy.set("pass")
        self.returns("proxy")

    # Supervisors

    def _add_a_column(self) -> str:
        lane = self.chance.choice(self.lanes)
        if lane.columns == COLUMNS:
            return ""
        lane.columns += 1
        lane.submit(self.house)
        return f"{lane.kind}: new spec with {lane.added()[-1]}"

    def _scale(self) -> str:
        lane = self.chance.choice(self.lanes)
        count = self.chance.randint(1, MAX_INDEXERS)
        self.house.api("POST", f"/api/v1/supervisors/{lane.datasource}/scale/", {"taskCount": count})
        lane.task_count = count
        return f"{lane.kind}: taskCount {count}"

    def _suspend(self) -> str:
        lane = self.chance.choice([lane for lane in self.lanes if not lane.suspended] or self.lanes)
        self.house.api("POST", f"/druid/indexer/v1/supervisor/{lane.datasource}/suspend")
        lane.suspended = True
        self.away.append(Away(lane.kind, datetime.now(UTC)))
        seconds = self.chance.uniform(2, 12)
        self.plan(seconds, lambda: self.attempt(lambda: self._resume_supervisor(lane)))
        return f"{lane.kind}: suspended for {seconds:.1f} s"

    def _resume_supervisor(self, lane: Lane) -> str:
        """While the control plane is away it is asked again a second later."""
        if self._unavailable & {"postgres", "web"}:
            self.plan(1, lambda: self.attempt(lambda: self._resume_supervisor(lane)))
            return ""
        self.house.api("POST", f"/druid/indexer/v1/supervisor/{lane.datasource}/resume")
        lane.suspended = False
        self.returns(lane.kind)
        return f"{lane.kind}: resumed"


def _stop_at_once(postgres: Service) -> None:
    """PostgreSQL's immediate stop."""
    os.kill(postgres.pid, signal.SIGQUIT)
    with suppress(psutil.Error):
        psutil.Process(postgres.pid).wait(20)


def _wake(process: Identity) -> None:
    if running := process.find():
        with suppress(psutil.Error):
            running.send_signal(signal.SIGCONT)
