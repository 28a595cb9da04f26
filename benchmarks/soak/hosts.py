"""Three hosts, which die as a whole or process by process, and how long each source was silent meanwhile.

The first is the house with its own web, worker and beat. Of the others one has a web and a worker, one a web and a
beat. Requests go to the webs in turn.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from benchmarks.measure import longest_silence
from benchmarks.soak.faults import Fault, Faults
from benchmarks.soak.lanes import Lane, publish_times
from controlplane.embedded import apps
from controlplane.embedded.service import Service
from tests.support.hosts import Host, new_host
from tests.support.house import House

LONGEST_SILENCE_S = 60.0
AWAY_S = (1.0, 30.0)  # of a host: shorter and longer than the bound of heartbeats
STORES = ("kafka", "postgres")  # without these no source can go on


@dataclass
class Hosts:
    """Beside the other faults. At most one is away at a time."""

    house: House
    faults: Faults
    lanes: list[Lane]
    chance: random.Random
    hosts: list[Host] = field(default_factory=list)
    lost: int = 0
    killed: int = 0
    _began: datetime = datetime.min
    _ended: datetime = datetime.min

    def open(self) -> None:
        """Start those beside the house."""
        house = self.house
        own = Host("one", house.home.tasks, [house.web, house.worker, house.beat])
        others = [new_host(house, "two", web=True), new_host(house, "three", web=True, beat=True, worker=False)]
        self.hosts += [own, *others]
        for host in others:
            host.start()
        house.spread_over(*(service for host in others for service in host.services if isinstance(service, apps.Web)))

    def close(self) -> None:
        """Those beside the house end, with all that they have started."""
        for host in self.hosts[1:]:
            host.stop()

    def kinds(self) -> list[Fault]:
        kinds = [Fault(2, frozenset({"host", *_names(host)}), partial(self._lose, host)) for host in self.hosts]
        for service in (service for host in self.hosts[1:] for service in host.services):
            kinds.append(Fault(1, frozenset({service.name}), partial(self._kill, service)))
        return [*kinds, Fault(3, frozenset(), self._kill_an_application)]

    def _lose(self, host: Host) -> str:
        tasks, seconds = list(host.tasks()), self.chance.uniform(*AWAY_S)
        self.faults.leaves("host", *_names(host))
        host.kill()
        back = partial(self.faults.restart, f"host {host.name}", host.services, "host")
        self.faults.plan(seconds, back)
        self.lost += 1
        return f"host {host.name}: lost with {len(host.services)} processes and {len(tasks)} tasks for {seconds:.1f} s"

    def _kill(self, service: Service) -> str:
        self.killed += 1
        return self.faults.take_down(service, Service.kill, 0.2, 8)

    def _kill_an_application(self) -> str:
        """Of any host."""
        running = [(host, task) for host in self.hosts for task in host.tasks()]
        if not running:
            return ""
        host, task = self.chance.choice(running)
        self.house.kill_application(task)
        self.killed += 1
        return f"host {host.name}: application of task {task} killed"

    # Silences

    def begin(self) -> None:
        """All sources publish: from now on none may be silent."""
        self._began = datetime.now(UTC)

    def end(self) -> None:
        """There are no more records."""
        self._ended = datetime.now(UTC)

    def silences(self) -> dict[str, float]:
        """Kind → seconds at most without a publish, apart from those in which it was suspended or a store away."""
        return {
            lane.kind: longest_silence(publish_times(self.house, lane), self._began, self._ended, self._excused(lane))
            for lane in self.lanes
        }

    def _excused(self, lane: Lane) -> list[tuple[datetime, datetime]]:
        names = {*STORES, lane.kind}
        return [(away.begin, away.end or self._ended) for away in self.faults.away if away.name in names]

    def wrong(self) -> list[str]:
        """What was silent for too long, and a run in which no host was lost."""
        found = [
            f"{kind}: silent for {seconds:.0f} s"
            for kind, seconds in self.silences().items()
            if seconds > LONGEST_SILENCE_S
        ]
        return found if self.lost else [*found, "hosts: none was lost"]

    def results(self) -> dict[str, Any]:
        """Keys as documented in benchmarks/README.md."""
        silences = self.silences()
        return {
            **{f"{kind}_silence_s": seconds for kind, seconds in silences.items()},
            "longest_silence_s": max(silences.values()),
            "hosts_lost": self.lost,
            "processes_killed": self.killed,
        }


def _names(host: Host) -> list[str]:
    return [service.name for service in host.services]
