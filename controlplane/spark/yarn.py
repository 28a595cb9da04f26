"""Drivers on YARN: what its ResourceManager says of them and of its cores, their end, and their logs.

A driver is the first container of its application, and has the application's id. YARN gives a container no environment
but by Spark's properties, and these must not stand on a command line: they are the submission's standard input.
"""

from __future__ import annotations

import getpass
import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
from django.conf import settings

from controlplane.spark.cluster_state import Application, Cluster, Driver

MASTER = "yarn"
SUBMITTED = re.compile(r"Submitted application (application_\d+_\d+)")
PROPERTIES = "/dev/stdin"
# Of our applications: no other one of the cluster is asked for.
_TAG = "headgate"
_ACTIVE, _ENDED = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING", "FINISHED,FAILED,KILLED"
_ENDED_S = 3600  # so long ago one may have ended that is asked for
_NOT_SENT = ("PATH", "HOME", "SPARK_HOME", "HADOOP_CONF_DIR", "HADOOP_USER_NAME")  # the submission's own
_LOG = re.compile(rb"LogLength:(\d+)\nLogContents:\n")
_CONTAINER = re.compile(r"container_(?:e\d+_)?(\d+_\d+)_")
_GROWTH = 65_536  # of a log, between two questions
_TIMEOUT_S = 2.0


def conf(overrides: Mapping[str, str]) -> dict[str, str]:
    """What an application there is submitted with. ``overrides``: the operator's properties.

    YARN starts no driver again: it knows less than heartbeats do, and would have two that work for one task.
    """
    tags = [_TAG, *filter(None, [overrides.get("spark.yarn.tags")])]
    start = f"{settings.TASK_START_TIMEOUT.total_seconds():.0f}s"  # without it Spark would end a slow one before
    return {
        "spark.yarn.am.waitTime": overrides.get("spark.yarn.am.waitTime", start),
        "spark.yarn.submit.waitAppCompletion": "false",
        "spark.yarn.maxAppAttempts": "1",
        "spark.yarn.tags": ",".join(tags),
    }


def properties(operators: str, environment: Mapping[str, str]) -> str:
    """The operator's file of properties, and the driver's environment as Spark takes it.

    YARN has a shell set it: names of tasks, tokens and addresses hold nothing that means something there.
    """
    sent = {f"spark.yarn.appMasterEnv.{k}": v for k, v in environment.items() if k not in _NOT_SENT}
    return "\n".join([operators, *(f"{name}={_escaped(value)}" for name, value in sent.items())])


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def read_cluster(address: str) -> Cluster:
    """By the ResourceManager at this address. Raises httpx2's errors, ``ValueError``, ``KeyError``, ``TypeError``.

    One that is on standby answers with the address of the other, which is such an error.
    """
    metrics = _get(f"{address}/ws/v1/cluster/metrics")["clusterMetrics"]
    active = _applications(address, states=_ACTIVE)
    ended_since = int((time.time() - _ENDED_S) * 1000)
    # The last, so that one that ends between the two questions has ended.
    ended = _applications(address, states=_ENDED, finishedTimeBegin=str(ended_since))
    return cluster_of(metrics, active, ended)


def cluster_of(
    metrics: Mapping[str, Any], active: Sequence[Mapping[str, Any]], ended: Sequence[Mapping[str, Any]]
) -> Cluster:
    """From the ResourceManager's JSON: its metrics, and applications that have not ended, or have lately."""
    return Cluster(
        cores=metrics["totalVirtualCores"],
        used=metrics["allocatedVirtualCores"],
        worker_mb=metrics["totalMB"],
        applications=[_application(a) for a in active],
        drivers={a["id"]: Driver(_state(a), a.get("amContainerLogs", "")) for a in (*active, *ended)},
    )


def _applications(address: str, **wanted: str) -> list[dict[str, Any]]:
    parameters = {"applicationTags": _TAG, "deSelects": "resourceRequests", **wanted}
    found = _get(f"{address}/ws/v1/cluster/apps", parameters)["apps"]
    return list(found["app"]) if found else []


def _application(found: Mapping[str, Any]) -> Application:
    """Its driver's core, the first, is not counted: indexers have the others."""
    cores = max(0, found["allocatedVCores"] - 1)
    return Application(found["name"], cores, cores == 0, found["startedTime"])


def _state(found: Mapping[str, Any]) -> str:
    if found["state"] in _ENDED.split(","):
        return str(found["state"])
    return "RUNNING" if found.get("amContainerLogs") else "SUBMITTED"


def _get(url: str, parameters: Mapping[str, str] | None = None) -> dict[str, Any]:
    answer = httpx2.get(url, params=parameters, timeout=_TIMEOUT_S, trust_env=False)
    document: dict[str, Any] = answer.raise_for_status().json()
    return document


def kill(address: str, application_id: str) -> bool:
    """Ask the ResourceManager at this address to end it. Whether it has taken that in. Raises httpx2's errors."""
    user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    url = f"{address}/ws/v1/cluster/apps/{application_id}/state"
    parameters, wanted = {"user.name": user}, {"state": "KILLED"}
    return httpx2.put(url, params=parameters, json=wanted, timeout=_TIMEOUT_S, trust_env=False).is_success


def submission(spark_home: str) -> dict[str, str]:
    """What a submission needs in its environment, and the driver does not get."""
    kept = {name: os.environ[name] for name in ("HOME", "HADOOP_USER_NAME") if name in os.environ}
    return {**kept, "HADOOP_CONF_DIR": settings.HADOOP_CONF_DIR, "SPARK_HOME": spark_home}


def log_address(page: str) -> str:
    """Where a NodeManager gives the log of the container that has this page."""
    host, _, container = page.partition("/node/containerlogs/")
    return f"{host}/ws/v1/node/containers/{container.partition('/')[0]}/logs/stderr?format=octet-stream"


def gives(address: str) -> bool:
    """Whether a log is at a NodeManager."""
    return "/ws/v1/node/containers/" in address


def read_log(address: str, offset: int, max_bytes: int) -> tuple[int, bytes]:
    """How long the log is, and bytes of it; a negative offset counts from its end. Raises ``OSError``.

    A NodeManager gives so many bytes from the log's begin or from its end, whichever is less.
    """
    size, _ = _read(address, 0)
    start = min(size, offset if offset >= 0 else max(0, size + offset))
    if max_bytes <= 0 or start == size:
        return size, b""
    end = min(size, start + max_bytes)
    if end > size - start:
        grown, content = _read(address, start - size - _GROWTH)
        first = grown - len(content)
        if first <= start:
            return size, content[start - first : end - first]
    return size, _read(address, end)[1][start:end]


def _read(address: str, count: int) -> tuple[int, bytes]:
    try:
        answer = httpx2.get(f"{address}&size={count}", timeout=_TIMEOUT_S, trust_env=False).raise_for_status()
        content = answer.content
    except httpx2.HTTPError as error:
        application = next(iter(_CONTAINER.findall(address)), "")
        raise OSError(
            "YARN's NodeManager does not have it any more, or does not answer. "
            f"Read it with: yarn logs -applicationId application_{application} ({error})"
        ) from error
    head = _LOG.search(content)
    if head is None:
        raise OSError(f"YARN's NodeManager has no log there: {content[:200]!r}")
    size = int(head[1])
    length = min(size, abs(count))
    return size, content[head.end() : head.end() + length]
