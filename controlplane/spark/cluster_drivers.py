"""Drivers on a cluster: how one is submitted, its end and its log; Spark's standalone cluster, YARN or Kubernetes.

A standalone cluster takes no Python file for a driver. It takes a class of Spark's own, ``PythonRunner``, which runs
Python: that is the driver's first process, as it is that of ``spark-submit`` on this machine. The submission goes over
Spark's own encrypted protocol: its REST server knows no secret.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import httpx2
from django.conf import settings

from controlplane.spark import kubernetes, spark_conf, spark_master, yarn

_RUNNER = "org.apache.spark.deploy.PythonRunner"
_SUBMITTED = re.compile(r"Driver successfully submitted as (driver-[\w.-]+)")
_BYTES = re.compile(rb"==== Bytes (\d+)-(\d+) of (\d+) of [^\n]*\n")
_TIMEOUT_S = 2.0


def submit_command(conf: Mapping[str, str], module: str) -> list[str]:
    """What submits a driver that runs this module, says its id, and ends. Raises ``OSError``.

    Not by Spark's scripts: what they add to the environment the driver would get.
    """
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if os.environ.get("JAVA_HOME") else shutil.which("java")
    if java is None:
        raise OSError("there is no Java: set JAVA_HOME")
    classes = f"{spark_conf.spark_home()}/jars/*"
    if spark_conf.on_yarn():
        classes = f"{settings.HADOOP_CONF_DIR}:{classes}"
        where, properties = ["--master", yarn.MASTER], yarn.PROPERTIES
        program = [str(Path(settings.BASE_DIR, *module.split(".")).with_suffix(".py"))]
    elif spark_conf.on_kubernetes():
        where, properties = ["--master", settings.SPARK_MASTER], str(spark_conf.operator_file())
        program = [kubernetes.program(module)]
    else:
        where, properties = ["--master", _reachable_masters(), "--class", _RUNNER], str(spark_conf.operator_file())
        program = [spark_conf.driver_file(), "-m", "", module]
    command = [str(java), "-Xmx256m", "-cp", classes, "org.apache.spark.deploy.SparkSubmit", *where]
    command += ["--deploy-mode", "cluster"]
    if spark_conf.on_yarn() or spark_conf.operator_file().is_file():
        command += ["--properties-file", properties]
    for name, value in conf.items():
        command += ["--conf", f"{name}={value}"]
    return [*command, *program]


@contextmanager
def standard_input(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[IO[bytes]]:
    """What a submission, or another application, is to read: nothing, unless it goes to YARN. On Kubernetes, the
    driver's Secret is made first. Raises ``OSError``."""
    if pod := kubernetes.pod_of(command):
        try:
            spark_conf.kubernetes_api().keep_environment(pod, environment)
        except httpx2.HTTPError as error:
            reason = kubernetes.reason_of(error)
            raise OSError(f"Kubernetes' API server did not make the driver's Secret: {reason}") from error
    if yarn.PROPERTIES not in command:
        with Path(os.devnull).open("rb") as nothing:
            yield nothing
        return
    with tempfile.TemporaryFile() as file:  # it has no name: nobody else can open it
        file.write(yarn.properties(spark_conf.operator_text(), environment).encode())
        file.seek(0)
        yield file


def wait_for(process: subprocess.Popen[bytes], command: Sequence[str]) -> None:
    """Wait for the end of a process that was started with this command. The Secret of a pod that was not made goes."""
    if process.wait() != 0 and (pod := kubernetes.pod_of(command)):
        with suppress(OSError, httpx2.HTTPError):
            spark_conf.kubernetes_api().forget(pod)


def _reachable_masters() -> str:
    """The master's address; of several, those that take a connection: with one that does not, a submission fails."""
    scheme, _, addresses = str(settings.SPARK_MASTER).partition("://")
    masters = addresses.split(",")
    reachable = [address for address in masters if _is_reachable(address)] if len(masters) > 1 else []
    return f"{scheme}://{','.join(reachable or masters)}"


def _is_reachable(address: str) -> bool:
    parts = urlsplit(f"//{address}")
    try:
        socket.create_connection((parts.hostname or "", parts.port or 7077), _TIMEOUT_S).close()
    except (OSError, ValueError):
        return False
    return True


def environment(own: Mapping[str, str], java: str) -> dict[str, str]:
    """Of a submission, and so of the driver: Spark's workers add it to their own. Credentials are the machines' own.
    Raises ``OSError``."""
    java_options = {"JDK_JAVA_OPTIONS": os.environ.get("JDK_JAVA_OPTIONS", java), "PYTHONUNBUFFERED": "1"}
    if spark_conf.on_kubernetes():
        # Without a locale, Java reads the letters of a command line as ASCII.
        return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", **own, **java_options}
    installed = {} if spark_conf.ships_python() else {"PYTHONPATH": str(settings.BASE_DIR)}
    return {
        **(yarn.submission(spark_conf.spark_home()) if spark_conf.on_yarn() else {}),
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        **own,
        "HEADGATE_ON_CLUSTER": "1",
        "HEADGATE_SPARK_MASTERS": settings.SPARK_MASTER,
        **java_options,
        **installed,
        **spark_conf.environment(),
    }


def submitted_as(output: str) -> str:
    """The driver's id, by what the last submission has written; empty if there is none."""
    pattern = kubernetes.SUBMITTED if spark_conf.on_kubernetes() else _SUBMITTED
    ids = (yarn.SUBMITTED if spark_conf.on_yarn() else pattern).findall(output)
    return ids[-1] if ids else ""


def kill(driver_id: str) -> bool:
    """Ask the master to end it: by SIGTERM, some seconds later by SIGKILL. Whether the master has taken that in."""
    try:
        if spark_conf.on_kubernetes():
            spark_conf.kubernetes_api().kill(driver_id)
            return True
        web = spark_master.alive_master()
        if spark_conf.on_yarn():
            return web != "" and yarn.kill(web, driver_id)
        parameters = {"id": driver_id, "terminate": "true"}
        answer = httpx2.post(f"{web}/driver/kill/", params=parameters, timeout=_TIMEOUT_S, trust_env=False)
    except (OSError, httpx2.HTTPError):
        return False
    return web != "" and answer.is_redirect


def is_gone(driver_id: str) -> bool:
    """Whether the manager, which has not listed this driver, is sure that it has none. A standalone master forgets."""
    if not spark_conf.on_kubernetes() or ":" not in driver_id:
        return False
    try:
        return spark_conf.kubernetes_api().is_gone(driver_id)
    except (OSError, httpx2.HTTPError):
        return False


def log_address(driver_id: str) -> str:
    """Where the log is read; empty while no Spark worker runs the driver, and when the master does not answer."""
    cluster = spark_master.cluster()
    driver = cluster.drivers.get(driver_id) if cluster else None
    if driver is None or not driver.worker_web:
        return ""
    if spark_conf.on_yarn():
        return yarn.log_address(driver.worker_web)
    if spark_conf.on_kubernetes():
        return kubernetes.log_address(driver_id, driver.worker_web)
    return f"{driver.worker_web}/log/?driverId={driver_id}&logType=stderr"


def read_log(address: str, offset: int, max_bytes: int) -> tuple[int, bytes]:
    """How long the log is, and bytes of it; a negative offset counts from its end. Raises ``OSError``."""
    if yarn.gives(address):
        return yarn.read_log(address, offset, max_bytes)
    if kubernetes.gives(address):
        log = _read_pod(address)
        start = offset if offset >= 0 else max(0, len(log) + offset)
        return len(log), log[start : start + max(0, max_bytes)]
    size, _ = _read(address, 0, 1)
    if max_bytes <= 0:
        return size, b""
    start = offset if offset >= 0 else max(0, size + offset)
    return size, _read(address, start, max_bytes)[1] if start < size else b""


def _read_pod(address: str) -> bytes:
    try:
        return spark_conf.kubernetes_api().log(address)
    except httpx2.HTTPError as error:
        raise OSError(f"Kubernetes does not give it: {kubernetes.reason_of(error)}") from error


def _read(address: str, start: int, count: int) -> tuple[int, bytes]:
    try:
        answer = httpx2.get(f"{address}&offset={start}&byteLength={count}", timeout=_TIMEOUT_S, trust_env=False)
        head = _BYTES.match(answer.raise_for_status().content)
    except httpx2.HTTPError as error:
        raise OSError(f"the Spark worker does not answer: {error}") from error
    if head is None:
        raise OSError(f"the Spark worker has no log there: {answer.text[:200]!r}")
    return int(head[3]), answer.content[head.end() :]
