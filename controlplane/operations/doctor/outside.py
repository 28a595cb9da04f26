"""What Headgate stands on beside its metadata store: Kafka, Java, Spark, deep storage."""

from __future__ import annotations

import importlib.metadata
import re
import socket
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
from controlplane.operations.doctor.findings import FAIL, OK, WARN, Check, Finding
from controlplane.spark import kubernetes, spark_conf, spark_master, yarn
from controlplane.supervisors.models import Supervisor
from ingestion.specs.kafka.providers import Value
from ingestion.specs.messages.deep_storage import Probed, ProbeOrder

FREE_BYTES = 5 * 1024**3
HTTP_S = 3.0
Properties = Callable[[], dict[str, Value]]


def kafka_checks() -> dict[str, Check]:
    """Of each connection, and of each cluster that supervisors or settings name themselves.

    Uses Django's connection; the checks do not.
    """
    connections = Connection.objects.filter(kind=Connection.Kinds.KAFKA).select_related("team")
    found: dict[str, Properties] = {
        f"Kafka {c.team.name}/{c.name}": partial(properties_of, c) for c in connections.order_by("team__name", "name")
    }
    sharing = set()
    active = Supervisor.objects.filter(terminated_at=None).select_related("datasource__team").order_by("pk")
    for supervisor in active.with_current():
        io_config, team = supervisor.io_config, supervisor.datasource.team
        if io_config.connection is None:
            name = f"Kafka {io_config.consumerProperties.get('bootstrap.servers')}"
            found.setdefault(name, partial(kafka_properties, team.pk, io_config, supervisor.current.secrets))
        else:
            name = f"Kafka {team.name}/{io_config.connection}"
        if io_config.traits.in_share_group:
            sharing.add(name)
    if settings.DEFAULT_BOOTSTRAP:
        default: dict[str, Value] = {"bootstrap.servers": settings.DEFAULT_BOOTSTRAP}
        found.setdefault(f"Kafka {settings.DEFAULT_BOOTSTRAP}", lambda: default)
    return {name: _kafka_check(properties, name in sharing) for name, properties in found.items()}


def _kafka_check(ask: Properties, shares: bool) -> Check:
    try:
        return partial(check_kafka, ask(), shares)
    except SecretsLost as lost:
        fault = Finding(True, FAIL, str(lost), "Set HEADGATE_OLD_SECRET_KEYS to the earlier key, or enter them again.")
    except HeadgateError as error:
        fault = Finding(True, FAIL, error.detail, "Correct the spec or the connection.")
    return lambda: [fault]


def check_kafka(properties: Mapping[str, Value], shares: bool) -> Iterator[Finding]:
    """Name, address, TCP, TLS, login; then what the cluster can. ``shares``: a supervisor reads with a share group."""
    report = try_kafka(properties)
    yield Finding(not report.ok, FAIL, f"{report.label}: {report.message}", report.advice)
    if not report.ok:
        return
    try:
        levels = cluster_features(properties, Clock(5.0))
    except Failed as failed:
        yield Finding(True, WARN, failed.message, failed.advice)
        return
    has_groups = levels.get("share.version", 0) >= 1
    found = f"the login works; metadata.version {levels.get('metadata.version', 'unknown')}, share groups are "
    advice = "They need Kafka 4.2 or newer: kafka-features.sh upgrade --feature share.version=1."
    yield Finding(shares and not has_groups, FAIL, f"{found}off, but supervisors read with them", advice)
    yield Finding(True, OK, found + ("on" if has_groups else "off"))


def check_deep_storage() -> Iterator[Finding]:
    """With a file of its own, by a process of the data plane, as an indexer of this host would."""
    with conversation("ingestion.segments.probe") as (stdin, stdout):
        write_line(stdin, ProbeOrder(deep_storage=settings.DEEP_STORAGE).model_dump_json())
        line = stdout.readline()
    if not line:
        raise Unavailable("The process that tries deep storage ended unexpectedly.")
    probed, place = Probed.model_validate_json(line), settings.DEEP_STORAGE.split("?")[0]
    done = f"{', '.join(probed.done)} worked; then: " if probed.done else ""
    yield Finding(
        probed.error, FAIL, f"{place}: {done}{probed.error}", "See the page Deep storage: rights, credentials."
    )
    free = "" if probed.free_bytes is None else f"; {probed.free_bytes / 1024**3:.1f} GiB free"
    is_full = probed.free_bytes is not None and probed.free_bytes < FREE_BYTES
    yield Finding(is_full, FAIL, place + free, "Make room, or shorten retention: indexers pause when it is full.")
    yield Finding(True, OK, f"{place}: {', '.join(probed.done)} work{free}")


def check_java() -> Iterator[Finding]:
    """Of this host: drivers run on the hosts of workers."""
    problem = prerequisites.java_problem()
    yield Finding(problem, FAIL, problem or "", "Install Java 17 on every host of a worker.")
    yield Finding(True, OK, f"Java {prerequisites.java_version(prerequisites.java_program() or 'java')} on this host")


def check_spark() -> Iterator[Finding]:
    """The masters, if there are any; that the one that acts is of our version, and has workers."""
    ours, masters = importlib.metadata.version("pyspark"), settings.SPARK_MASTER
    if masters == yarn.MASTER:
        yield from _check_yarn(ours)
        return
    if spark_conf.on_kubernetes():
        yield from _check_kubernetes(ours)
        return
    if not masters.startswith("spark://"):
        yield Finding(True, OK, f"{ours}; HEADGATE_SPARK_MASTER is {masters}")
        return
    for part in masters.removeprefix("spark://").split(","):
        place = urlsplit(f"//{part}")
        try:
            socket.create_connection((place.hostname or "", place.port or 7077), HTTP_S).close()
        except OSError as error:
            found = f"the master {part} can't be reached: {error.strerror or 'no answer'}"
            yield Finding(True, FAIL, found, "Check the address and the network.")
    if address := spark_master.alive_master():
        try:
            document = httpx2.get(f"{address}/json/", timeout=HTTP_S, trust_env=False).json()
            page = httpx2.get(f"{address}/", timeout=HTTP_S, trust_env=False).text
        except httpx2.HTTPError as error:
            found = f"the page of the master {address} does not answer: {error or type(error).__name__}"
            yield Finding(True, FAIL, found, "Try again. If it stays, see the master's log.")
            return
        yield from judge_master(address, document, page, ours)
    found = f"no master at {', '.join(settings.SPARK_MASTER_WEB)} is alive"
    yield Finding(not address, FAIL, found, "Start it, or correct HEADGATE_SPARK_MASTER_WEB.")


def _check_yarn(ours: str) -> Iterator[Finding]:
    cluster, places = spark_master.cluster(), ", ".join(settings.SPARK_MASTER_WEB)
    found = f"no ResourceManager of YARN answers at {places}"
    yield Finding(cluster is None, FAIL, found, "Start it, or correct HEADGATE_SPARK_MASTER_WEB.")
    found = f"{ours}; YARN at {places} has {cluster.cores if cluster else 0} cores"
    yield Finding(cluster is not None and not cluster.cores, FAIL, found, "Start a NodeManager.")
    yield Finding(True, OK, found)


def _check_kubernetes(ours: str) -> Iterator[Finding]:
    api = spark_conf.kubernetes_api()
    try:
        drivers = api.drivers()
        spark_conf.resident_conf("doctor", 1)
    except (OSError, httpx2.HTTPError, ValueError, KeyError) as error:
        found = f"tasks can't run in the namespace {api.namespace} of {api.address}: {kubernetes.reason_of(error)}"
        yield Finding(True, FAIL, found, "See Spark, On Kubernetes: the properties and rights that it needs.")
        return
    yield Finding(True, OK, f"{ours}; {len(drivers)} drivers have pods in the namespace {api.namespace}")


def judge_master(address: str, document: Mapping[str, object], page: str, ours: str) -> Iterator[Finding]:
    """``document``: the master's JSON; ``page``: its HTML, which alone has its version."""
    match = re.search(r'class="version"[^>]*>\s*([^<\s]+)', page)
    theirs, workers = match[1] if match else "unknown", document.get("aliveworkers", 0)
    found = f"the master {address} is alive, version {theirs}, with {workers} workers"
    is_other = match is not None and theirs.split(".")[:2] != ours.split(".")[:2]
    yield Finding(is_other, FAIL, f"{found}; Headgate has {ours}", f"Run Spark {ours} on the cluster.")
    yield Finding(not workers, FAIL, found, "Start a Spark worker.")
    yield Finding(True, OK, found)


def check_python() -> Iterator[Finding]:
    """Driver and executors must have the same Python: 3.11 can't unpickle what 3.12 sends."""
    version, is_sent = f"{sys.version_info[0]}.{sys.version_info[1]}", spark_conf.ships_python()
    is_local = settings.SPARK_MASTER == "local"
    if spark_conf.on_kubernetes():
        yield Finding(True, OK, f"{version} here; pods have that of their image")
        return
    found = f"{version} here; HEADGATE_SPARK_PYTHON is installed, so executors have their own {sys.executable}"
    advice = "Check its version on each machine, and that the packages are alike."
    yield Finding(not is_local and not is_sent, WARN, found, advice)
    yield Finding(True, OK, f"{version}, {'that of Headgate' if is_local else 'sent with each application'}")
