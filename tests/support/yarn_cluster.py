"""A YARN cluster: a ResourceManager and machines in one JVM, whose containers are processes of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import psutil

from controlplane.embedded.home import default_cache
from controlplane.embedded.jvm import java
from controlplane.embedded.kafka_jars import Module, fetched, spark_jars
from controlplane.embedded.ports import choose_port
from controlplane.embedded.processes import Child
from tests.support.quick_java import QUICK_JAVA
from tests.support.undertaker import left_by
from tests.support.waiting import wait_for

HERE = Path(__file__).parent
# Spark's own jars are Hadoop's client of this version: what a cluster needs beside it is in one jar (56 MB), and in
# those of Bouncy Castle (10 MB). The jar's class for a cluster needs JUnit, which is not in it.
HADOOP = Module(
    "org.apache.hadoop",
    "hadoop-client-minicluster",
    "3.5.0",
    "Hadoop's mini cluster",
    HERE / "hadoop-minicluster-3.5.0.sha256",
    with_dependencies=False,
)
BOUNCY_CASTLE = Module("org.bouncycastle", "bcpkix-jdk18on", "1.82", "Bouncy Castle", HERE / "bouncycastle-1.82.sha256")
_JAVA_OPTIONS = f"-Xmx512m {QUICK_JAVA}"
_CONF = {
    "fs.defaultFS": "file:///",
    "yarn.scheduler.minimum-allocation-mb": "256",
    # With the default it counts memory alone, and each container as one core.
    "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.8",
    "yarn.nodemanager.address": "127.0.0.1:0",
    "yarn.nodemanager.localizer.address": "127.0.0.1:0",
    "yarn.nodemanager.webapp.address": "127.0.0.1:0",
    "yarn.nodemanager.vmem-check-enabled": "false",
    # The disk of who runs tests may be nearly full.
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
}
_SERVICES = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")


def fetch(log: Path) -> list[Path]:
    """The folders with the cluster's jars, downloaded the first time (66 MB)."""
    return [fetched(m, default_cache() / m.hashes.stem, log) for m in (HADOOP, BOUNCY_CASTLE)]


class YarnCluster:
    """``machines`` with so much memory and so many cores each, in a folder of its own."""

    def __init__(self, folder: Path, machines: int, memory_mb: int, cores: int) -> None:
        self.folder, self.conf, self.staging = folder, folder / "conf", folder / "staging"
        self.cores = machines * cores
        self.conf.mkdir(parents=True)
        jars = [f"{jars}/*" for jars in (*fetch(folder / "ivy.log"), spark_jars())]
        size = {"memory-mb": memory_mb, "cpu-vcores": cores}
        self.web = self._write_conf({f"yarn.nodemanager.resource.{name}": str(n) for name, n in size.items()})
        command = [java(), *_JAVA_OPTIONS.split(), "-cp", ":".join([str(self.conf), *jars])]
        command += [str(HERE / "MiniYarn.java"), str(folder), str(machines)]
        home = str(Path(java()).resolve().parents[1])  # of containers, too
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "JAVA_HOME": home, "LC_ALL": "C.UTF-8"}
        self._process = Child(command, folder / "yarn.log", environment=environment, folder=folder)

    def wait_ready(self, machines: int) -> None:
        wait_for("YARN's machines are there", lambda: self._machines() == machines, 180, self.logs)

    def _write_conf(self, size: Mapping[str, str]) -> str:
        """Hadoop's and Spark's. Returns the ResourceManager's page."""
        ports: list[int] = []
        for _ in _SERVICES:
            ports.append(choose_port(None, ports))
        addresses = {f"yarn.resourcemanager.{s}": f"127.0.0.1:{p}" for s, p in zip(_SERVICES, ports, strict=True)}
        values = {**_CONF, "hadoop.tmp.dir": str(self.folder / "tmp"), **addresses, **size}
        lines = [f"<property><name>{k}</name><value>{v}</value></property>\n" for k, v in values.items()]
        for name in ("core-site.xml", "yarn-site.xml", "capacity-scheduler.xml"):
            (self.conf / name).write_text(f"<configuration>\n{''.join(lines)}</configuration>\n")
        # Spark's jars are on all machines; a disk that they share has the staging folder.
        spark = {"spark.yarn.jars": f"local:{spark_jars()}/*", "spark.yarn.stagingDir": f"file:{self.staging}"}
        (self.folder / "spark").mkdir()
        (self.folder / "spark" / "spark-defaults.conf").write_text("".join(f"{k} {v}\n" for k, v in spark.items()))
        return f"http://127.0.0.1:{ports[-1]}"

    def _machines(self) -> int:
        assert self._process.running, self.logs()
        try:
            return int(self.metrics["activeNodes"])
        except httpx2.HTTPError:
            return 0

    @property
    def settings(self) -> dict[str, str]:
        """Headgate's, for this cluster."""
        return {
            "HEADGATE_SPARK_MASTER": "yarn",
            "HEADGATE_SPARK_MASTER_WEB": self.web,
            "HADOOP_CONF_DIR": str(self.conf),
            "SPARK_CONF_DIR": str(self.folder / "spark"),
        }

    def _asks(self, path: str) -> dict[str, Any]:
        answer = httpx2.get(f"{self.web}/ws/v1/cluster/{path}", trust_env=False, timeout=10.0).raise_for_status()
        document: dict[str, Any] = answer.json()
        return document

    @property
    def metrics(self) -> dict[str, Any]:
        """What the ResourceManager says of all."""
        found: dict[str, Any] = self._asks("metrics")["clusterMetrics"]
        return found

    def application(self, application_id: str) -> dict[str, Any]:
        """What the ResourceManager says of one."""
        found: dict[str, Any] = self._asks(f"apps/{application_id}")["app"]
        return found

    def kill(self, application_id: str) -> None:
        """By its operator."""
        url, user = f"{self.web}/ws/v1/cluster/apps/{application_id}/state", {"user.name": "operator"}
        answer = httpx2.put(url, params=user, json={"state": "KILLED"}, trust_env=False, timeout=10.0)
        answer.raise_for_status()

    def containers(self, application_id: str, number: int | None = None) -> list[psutil.Process]:
        """The processes of its containers; of the first, which is its driver's, with ``number`` 1."""
        sequence = application_id.removeprefix("application_")
        found = []
        for process in left_by(f"{self.folder}/machine-"):
            with suppress(psutil.Error):
                container = process.environ().get("CONTAINER_ID", "")
                if f"_{sequence}_" in container and number in (None, int(container.rpartition("_")[2])):
                    found.append(process)
        return found

    def logs(self) -> str:
        """The end of what YARN and its containers have written."""
        found = [self.folder / "yarn.log", *self.folder.glob("machine-*/logs/application_*/*/std*")]
        return "\n".join(f"{log}:\n{log.read_text(errors='replace')[-3000:]}" for log in found if log.exists())

    def stop(self) -> None:
        """With all containers: each is a session of its own."""
        self._process.stop()
        for process in left_by(f"{self.folder}/machine-"):
            with suppress(psutil.Error):
                process.kill()


@contextmanager
def yarn_cluster(folder: Path, machines: int, memory_mb: int, cores: int) -> Iterator[YarnCluster]:
    """One that is stopped at the end."""
    cluster = YarnCluster(folder, machines, memory_mb, cores)
    try:
        cluster.wait_ready(machines)
        yield cluster
    finally:
        cluster.stop()
