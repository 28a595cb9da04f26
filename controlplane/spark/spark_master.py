"""What the master of a Spark standalone cluster, YARN or Kubernetes says of its cores, applications and drivers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx2
from django.conf import settings
from django.core.cache import cache

from controlplane.spark import kubernetes, spark_conf, yarn
from controlplane.spark.cluster_state import Application, Cluster, Driver

_KEY = "spark.cluster"
_CACHE_S = 2
_TIMEOUT_S = 2.0
_WAITING = "WAITING"


def cluster() -> Cluster | None:
    """What the master says of its cluster now; None without a cluster, and when it does not answer."""
    if not settings.SPARK_MASTER.startswith((yarn.MASTER, kubernetes.MASTER, "spark://")):
        return None
    cached = cache.get(_KEY)
    if cached is None:
        cached = (_query_master(),)
        cache.set(_KEY, cached, timeout=_CACHE_S)
    cluster: Cluster | None = cached[0]
    return cluster


def cluster_with_cores() -> Cluster | None:
    """The cluster, where how many cores it has is known."""
    current = cluster()
    return current if current is not None and current.knows_cores else None


def has_cores(name: str) -> bool:
    """Whether the master has given an application cores: its executors run, or are being started."""
    if spark_conf.on_kubernetes():
        try:
            return spark_conf.kubernetes_api().has_executors(name)
        except (OSError, httpx2.HTTPError, ValueError, KeyError):
            return False
    current = cluster()
    return current is not None and any(a.name == name and a.cores for a in current.applications)


def alive_master() -> str:
    """The address of the page of the master that acts; empty when none answers."""
    return next((address for address, _ in _alive_masters()), "")


def _query_master() -> Cluster | None:
    return next((cluster for _, cluster in _alive_masters()), None)


def _alive_masters() -> Iterator[tuple[str, Cluster]]:
    """Of several masters, or of several ResourceManagers of YARN, one acts."""
    read: Callable[[str], Cluster | None] = yarn.read_cluster if spark_conf.on_yarn() else _read_standalone
    if spark_conf.on_kubernetes():
        read = _read_kubernetes
    for address in settings.SPARK_MASTER_WEB:
        try:
            found = read(address)
        except (OSError, httpx2.HTTPError, ValueError, KeyError, TypeError):
            continue
        if found is not None:
            yield address, found


def _read_kubernetes(_: str) -> Cluster:
    return kubernetes.read_cluster(spark_conf.kubernetes_api())


def _read_standalone(address: str) -> Cluster | None:
    document = httpx2.get(f"{address}/json/", timeout=_TIMEOUT_S, trust_env=False).raise_for_status().json()
    return read_cluster(document) if document["status"] == "ALIVE" else None


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
