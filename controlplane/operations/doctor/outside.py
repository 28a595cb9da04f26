"""What Headgate stands on beside its metadata store: Kafka, Java, Spark, deep storage."""

from __future__ import annotations

import importlib.metadata
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from urllib.parse import urlsplit

import httpx2
from django.conf import settings

from controlplane.common.errors import HeadgateError, Unavailable
from controlplane.common.processes import conversation, write_line
from controlplane.connections.models import Connection
from controlplane.connections.named_connections import kafka_properties, properties_of
from controlplane.connections.probe import cluster_features, try_kafka
from controlplane.connections.probe_report import Clock, Failed
from controlplane.connections.secrets import SecretsLost
from controlplane.embedded import prerequisites
from controlplane.operations.doctor.findings import Check, Finding, fail, ok, warn
from controlplane.supervisors.models import Supervisor
from ingestion.specs.kafka.providers import Value
from ingestion.specs.messages.deep_storage import Probed, ProbeOrder

DEEP_STORAGE, JAVA, SPARK, PYTHON = "deep storage", "Java", "Spark", "Python of executors"
FREE_BYTES = 5 * 1024**3
HTTP_S = 3.0
OLDEST_JAVA = prerequisites.JAVA
_SHARE_FEATURE = "share.version"


def kafka_checks() -> tuple[list[Finding], list[Check]]:
    """Of each connection, and of what supervisors connect to by themselves; those that can't be tried are findings.

    Uses Django's connection; the checks do not.
    """
    faults: list[Finding] = []
    checks: dict[str, Check] = {}
    reading = _supervisors()
    for connection in (
        Connection.objects.filter(kind=Connection.Kinds.KAFKA).select_related("team").order_by("team__name", "name")
    ):
        name = f"Kafka {connection.team.name}/{connection.name}"
        shares = any(
            s.io_config.connection == connection.name and s.datasource.team_id == connection.team_id and _shares(s)
            for s in reading
        )
        _add(checks, faults, name, partial(properties_of, connection), shares)
    for supervisor in reading:
        if supervisor.io_config.connection is None:
            servers = supervisor.io_config.consumerProperties.get("bootstrap.servers")
            _add(checks, faults, f"Kafka {servers}", partial(_own, supervisor), _shares(supervisor))
    if settings.DEFAULT_BOOTSTRAP and f"Kafka {settings.DEFAULT_BOOTSTRAP}" not in checks:
        default: dict[str, Value] = {"bootstrap.servers": settings.DEFAULT_BOOTSTRAP}
        _add(checks, faults, f"Kafka {settings.DEFAULT_BOOTSTRAP}", lambda: default, shares=False)
    return faults, list(checks.values())


def _supervisors() -> list[Supervisor]:
    active = Supervisor.objects.filter(terminated_at=None).select_related("datasource")
    return list(active.order_by("pk").with_current())


def _shares(supervisor: Supervisor) -> bool:
    return supervisor.io_config.traits.in_share_group


def _own(supervisor: Supervisor) -> dict[str, Value]:
    return kafka_properties(supervisor.datasource.team_id, supervisor.io_config, supervisor.current.secrets)


def _add(
    checks: dict[str, Check], faults: list[Finding], name: str, properties: Callable[[], dict[str, Value]], shares: bool
) -> None:
    if name in checks and not shares:
        return
    try:
        found = properties()
    except SecretsLost as lost:
        faults.append(fail(name, str(lost), "Set HEADGATE_OLD_SECRET_KEYS to the earlier key, or enter them again."))
    except HeadgateError as error:
        faults.append(fail(name, error.detail, "Correct the spec or the connection."))
    else:
        checks[name] = Check(name, lambda: check_kafka(name, found, shares))


def check_kafka(name: str, properties: Mapping[str, Value], shares: bool) -> Iterator[Finding]:
    """Name, address, TCP, TLS, login; then what the cluster can. ``shares``: a supervisor reads with a share group."""
    report = try_kafka(properties)
    if not report.ok:
        yield fail(name, f"{report.label}: {report.message}", report.advice)
        return
    try:
        levels = cluster_features(properties, Clock(5.0))
    except Failed as failed:
        yield warn(name, failed.message, failed.advice)
        return
    version = f"metadata.version {levels.get('metadata.version', 'unknown')}"
    if levels.get(_SHARE_FEATURE, 0) >= 1:
        yield ok(name, f"the login works; {version}, share groups are on")
        return
    found = f"the login works; {version}, share groups are off"
    if shares:
        advice = "They need Kafka 4.2 or newer: kafka-features.sh upgrade --feature share.version=1."
        yield fail(name, f"{found}, but supervisors read with them", advice)
    else:
        yield ok(name, found)


def check_deep_storage() -> Iterator[Finding]:
    """With a file of its own, by a process of the data plane, as an indexer of this host would."""
    with conversation("ingestion.segments.probe") as (stdin, stdout):
        write_line(stdin, ProbeOrder(deep_storage=settings.DEEP_STORAGE).model_dump_json())
        line = stdout.readline()
    if not line:
        raise Unavailable("The process that tries deep storage ended unexpectedly.")
    probed = Probed.model_validate_json(line)
    place = settings.DEEP_STORAGE.split("?")[0]
    if probed.error:
        done = f"{', '.join(probed.done)} worked; then: " if probed.done else ""
        yield fail(DEEP_STORAGE, f"{place}: {done}{probed.error}", "See the page Deep storage: rights, credentials.")
    elif probed.free_bytes is not None and probed.free_bytes < FREE_BYTES:
        found = f"{place}: {probed.free_bytes / 1024**3:.1f} GiB free"
        yield fail(DEEP_STORAGE, found, "Make room, or shorten retention: indexers pause when it is full.")
    else:
        free = "" if probed.free_bytes is None else f"; {probed.free_bytes / 1024**3:.1f} GiB free"
        yield ok(DEEP_STORAGE, f"{place}: {', '.join(probed.done)} work{free}")


def check_java() -> Iterator[Finding]:
    """Of this host: drivers run on the hosts of workers."""
    problem = prerequisites.java_problem()
    if problem:
        yield fail(JAVA, problem, "Install Java 17 on every host of a worker.")
    else:
        version = prerequisites.java_version(prerequisites.java_program() or "java")
        yield ok(JAVA, f"Java {version} on this host")


def check_spark() -> Iterator[Finding]:
    """The master, if there is one; that it is of our version, and has workers."""
    ours = importlib.metadata.version("pyspark")
    if not settings.SPARK_MASTER.startswith("spark://"):
        yield ok(SPARK, f"{ours}; HEADGATE_SPARK_MASTER is {settings.SPARK_MASTER}")
        return
    for part in settings.SPARK_MASTER.removeprefix("spark://").split(","):
        place = urlsplit(f"//{part}")
        try:
            socket.create_connection((place.hostname or "", place.port or 7077), HTTP_S).close()
        except OSError as error:
            reason = error.strerror or "no answer"
            yield fail(SPARK, f"the master {part} can't be reached: {reason}", "Check the address and the network.")
    alive = False
    for address in settings.SPARK_MASTER_WEB:
        try:
            document = httpx2.get(f"{address}/json/", timeout=HTTP_S, trust_env=False).raise_for_status().json()
            page = httpx2.get(f"{address}/", timeout=HTTP_S, trust_env=False).text
        except (httpx2.HTTPError, ValueError):
            continue
        if document.get("status") == "ALIVE":
            alive = True
            yield judge_master(address, document, page, ours)
    if not alive:
        found = f"no master at {', '.join(settings.SPARK_MASTER_WEB)} is alive"
        yield fail(SPARK, found, "Start it, or correct HEADGATE_SPARK_MASTER_WEB.")


def judge_master(address: str, document: Mapping[str, object], page: str, ours: str) -> Finding:
    """``document``: the master's JSON; ``page``: its HTML, which alone has its version."""
    match = re.search(r'class="version"[^>]*>\s*([^<\s]+)', page)
    theirs = match[1] if match else None
    workers = document.get("aliveworkers", 0)
    found = f"the master {address} is alive, version {theirs or 'unknown'}, with {workers} workers"
    if theirs is not None and theirs.split(".")[:2] != ours.split(".")[:2]:
        return fail(SPARK, f"{found}; Headgate has {ours}", f"Run Spark {ours} on the cluster.")
    if not workers:
        return fail(SPARK, found, "Start a Spark worker.")
    return ok(SPARK, found)


def check_python() -> Iterator[Finding]:
    """Driver and executors must have the same Python: 3.11 can't unpickle what 3.12 sends."""
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if settings.SPARK_MASTER != "local" and settings.SPARK_PYTHON == "shipped":
        yield ok(PYTHON, f"{ours}, sent with each application")
        return
    program = os.environ.get("PYSPARK_PYTHON", sys.executable)
    command = [program, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        theirs = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        yield fail(PYTHON, f"{program} does not run", "Correct PYSPARK_PYTHON.")
        return
    if theirs != ours:
        yield fail(PYTHON, f"{program} is {theirs}, Headgate's is {ours}", "Point PYSPARK_PYTHON to the same version.")
    elif settings.SPARK_MASTER == "local":
        yield ok(PYTHON, f"{program} is {theirs}, as Headgate's")
    else:
        advice = f"Check it on each machine: {os.path.basename(program)} --version, and that the packages are alike."
        yield warn(PYTHON, f"{theirs} here; HEADGATE_SPARK_PYTHON is installed, so executors have their own", advice)
