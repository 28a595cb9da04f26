"""What the master of a Spark standalone cluster says of its cores, and of the applications that have or want some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
from django.conf import settings
from django.core.cache import cache

_KEY = "spark.master"
_CACHE_S = 2
_TIMEOUT_S = 2.0
_WAITING = "WAITING"


@dataclass(frozen=True)
class Application:
    """An application that the master knows."""

    name: str  # the task's id, of one of ours
    cores: int  # how many it has
    waiting: bool  # it wants its first ones
    submitted_at_ms: int
    executor_mb: int = 0


@dataclass(frozen=True)
class Driver:
    """A driver that runs, or ran, on the cluster."""

    state: str  # Spark's: SUBMITTED while it waits for a core
    worker_web: str = ""  # the page of the worker that has it

    @property
    def has_ended(self) -> bool:
        return self.state in ("FINISHED", "KILLED", "FAILED", "ERROR")


@dataclass(frozen=True)
class Cluster:
    """What a Spark cluster has, and what of it is in use."""

    cores: int  # of workers that are alive
    used: int  # of these cores
    worker_mb: int = 0  # of the largest worker
    applications: Sequence[Application] = ()  # those that have not ended
    drivers: Mapping[str, Driver] = field(default_factory=dict)  # by id, also some that have ended

    @property
    def free(self) -> int:
        return max(0, self.cores - self.used)

    def would_get_cores(self, name: str, ends: Sequence[str]) -> bool:
        """Whether an application that waits would get cores if those in ``ends`` gave back theirs: the master serves
        who came first.
        """
        application = next((a for a in self.applications if a.name == name), None)
        if application is None or not any(a.cores for a in self.applications if a.name in ends):
            return False
        before = [a for a in self.applications if a.waiting and a.submitted_at_ms < application.submitted_at_ms]
        return not any(a.executor_mb <= self.worker_mb for a in before)


def cluster() -> Cluster | None:
    """What the master says of its cluster now; None without a cluster, and when it does not answer."""
    if not settings.SPARK_MASTER.startswith("spark://"):
        return None
    cached = cache.get(_KEY)
    if cached is None:
        cached = (_query_master(),)
        cache.set(_KEY, cached, timeout=_CACHE_S)
    cluster: Cluster | None = cached[0]
    return cluster


def has_cores(name: str) -> bool:
    """Whether the master has given an application cores: its executors run, or are being started."""
    current = cluster()
    return current is not None and any(a.name == name and a.cores for a in current.applications)


def alive_master() -> str:
    """The address of the page of the master that acts; empty when none answers."""
    return next((address for address, _ in _alive_masters()), "")


def _query_master() -> Cluster | None:
    return next((cluster for _, cluster in _alive_masters()), None)


def _alive_masters() -> Iterator[tuple[str, Cluster]]:
    """Of several masters, one is ALIVE."""
    for address in settings.SPARK_MASTER_WEB:
        try:
            document = httpx2.get(f"{address}/json/", timeout=_TIMEOUT_S, trust_env=False).raise_for_status().json()
            if document["status"] == "ALIVE":
                yield address, read_cluster(document)
        except (httpx2.HTTPError, ValueError, KeyError, TypeError):
            continue


def read_cluster(document: dict[str, Any]) -> Cluster:
    """From the master's JSON."""
    drivers = [*document.get("activedrivers", ()), *document.get("completeddrivers", ())]
    alive = [w for w in document["workers"] if w["state"] == "ALIVE"]
    webs = {w["id"]: w["webuiaddress"] for w in document["workers"]} if drivers else {}
    return Cluster(
        cores=sum(w["cores"] for w in alive),
        used=sum(w["coresused"] for w in alive),
        worker_mb=max((w["memory"] for w in alive), default=0),
        applications=[
            Application(a["name"], a["cores"], a["state"] == _WAITING, a["starttime"], a["memoryperexecutor"])
            for a in document["activeapps"]
        ],
        drivers={d["id"]: Driver(d["state"], webs.get(d["worker"], "")) for d in drivers},
    )
