"""A Spark standalone cluster: a master and workers that are machines of their own, as far as one machine can be.

Each has a loopback address, folders and an environment of its own: Java, Spark, and nothing of this project's Python.
None runs until a test says of which size it wants them.
For a while it may have two masters, of which a ZooKeeper elects the acting one and keeps what that knows.
"""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import psutil

from controlplane.embedded.home import PROJECT
from controlplane.embedded.ports import choose_port
from controlplane.embedded.processes import Child
from controlplane.embedded.spark_classes import submit_options
from tests.support.processes import command_lines
from tests.support.quick_java import QUICK_JAVA
from tests.support.waiting import wait_for

SMALL, LARGE = (1, "2g"), (4, "6g")  # cores and memory of a worker
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_ZOOKEEPER = "org.apache.zookeeper.server.ZooKeeperServerMain"
_EXECUTOR = "CoarseGrainedExecutorBackend"
_CONF = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true", "spark.master.rest.enabled": "false"}


def spark_home() -> Path:
    found = importlib.util.find_spec("pyspark")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent


class Master:
    """One of them: its process, and where it listens."""

    def __init__(self, taken: Sequence[int] = ()) -> None:
        self.port = choose_port(None, list(taken))
        self.web = f"http://127.0.0.1:{choose_port(None, [*taken, self.port])}"
        self.process: Child | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def says(self) -> dict[str, Any] | None:
        """By its page's JSON; None while it does not answer."""
        try:
            found: dict[str, Any] = httpx2.get(f"{self.web}/json/", trust_env=False, timeout=5.0).json()
        except (httpx2.HTTPError, ValueError):  # its server listens before it has anything to say
            return None
        return found


class SparkCluster:
    """``hosts``: a worker at each address; ``variables``: its environment."""

    def __init__(self, folder: Path, hosts: Sequence[str], variables: Mapping[str, str]) -> None:
        self.folder = folder
        self._code = folder / "code"
        self._variables = {**variables, "PYTHONPATH": str(self._code)}
        self.secret = secrets.token_hex(16)
        self.conf = folder / "conf"
        self.conf.mkdir(parents=True)
        (self.conf / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in _CONF.items()))
        self._masters: list[Master] = []
        self._recovery = ""  # Java options of masters
        self._size = SMALL
        self._hosts = hosts
        self._workers: dict[str, Child] = {}

    def _start_master(self, master: Master) -> None:
        where = ["--host", "127.0.0.1", "--port", str(master.port), "--webui-port", master.web.rpartition(":")[2]]
        master.process = self._start(_MASTER, "127.0.0.1", *where, options=self._recovery)
        wait_for("Spark's master is up", lambda: master.says() is not None, 180, master.process.output)

    def restart_master(self) -> None:
        """It has no recovery: applications are forgotten, workers register anew by themselves."""
        self._start_master(self.lose_master())
        self._await_workers()

    @contextmanager
    def with_standby(self, cores: int, memory: str) -> Iterator[None]:
        """Machines of this size with two masters, which elect one and recover. Nothing may run at either end."""
        port, folder = choose_port(None), self.folder / "zookeeper"
        folder.mkdir()
        # A session has at most 20 ticks: for so long an election waits for a master that was killed.
        lines = [f"clientPort={port}", f"dataDir={folder}", "clientPortAddress=127.0.0.1", "tickTime=500"]
        (folder / "zoo.cfg").write_text("\n".join([*lines, "admin.enableServer=false\n"]))
        zookeeper = self._start(_ZOOKEEPER, "127.0.0.1", str(folder / "zoo.cfg"))
        wait_for("ZooKeeper is up", lambda: _listens(port), 60, zookeeper.output)
        first = Master()
        recovery = f"-Dspark.deploy.recoveryMode=ZOOKEEPER -Dspark.deploy.zookeeper.url=127.0.0.1:{port}"
        try:
            self._start_anew((cores, memory), [first, Master([first.port])], recovery)
            yield
        finally:
            self.stop()
            zookeeper.kill()

    def resize(self, cores: int, memory: str) -> None:
        """One master without recovery, and machines of this size. Nothing may run where there are others."""
        if not self._masters:
            self._start_anew((cores, memory), [Master()])
        elif self._size != (cores, memory):
            self._start_anew((cores, memory))

    def _start_anew(self, size: tuple[int, str], masters: Sequence[Master] = (), recovery: str = "") -> None:
        """``masters``: those that run, unless there are others."""
        self._stop_workers()
        if masters:
            self.stop()
            self._masters, self._recovery = list(masters), recovery
            for master in masters:
                self._start_master(master)
            self.await_master()
        self._size = size
        self._workers = {host: self._worker(host) for host in self._hosts}
        self._await_workers()

    def lose_master(self) -> Master:
        """The acting one is gone."""
        lost = self.await_master()
        assert lost.process is not None
        lost.process.kill()
        return lost

    def await_master(self) -> Master:
        """Until one acts."""
        return wait_for("a master acts", self._acting, 90, self.logs)

    def return_master(self, master: Master) -> None:
        """One that was lost is there again, as a standby."""
        self._start_master(master)

    def _acting(self) -> Master | None:
        return next((m for m in self._masters if (m.says() or {}).get("status") == "ALIVE"), None)

    def _await_workers(self) -> None:
        def alive() -> list[tuple[str, int]]:
            return sorted((w["host"], w["cores"]) for w in self.seen()["workers"] if w["state"] == "ALIVE")

        wanted = sorted((host, self._size[0]) for host in self._workers)
        wait_for("Spark's workers are up", lambda: alive() == wanted, 180, self.logs)

    @contextmanager
    def code_installed(self) -> Iterator[None]:
        """The machines have the project's code where their Python looks for it."""
        self._code.symlink_to(PROJECT)
        try:
            yield
        finally:
            self._code.unlink()

    @contextmanager
    def code_missing(self) -> Iterator[None]:
        """They had it, and have it again afterwards."""
        self._code.unlink()
        try:
            yield
        finally:
            self._code.symlink_to(PROJECT)

    def lose(self, host: str, replaced: bool = True) -> None:
        """The machine is gone, with all that runs on it; another one takes its place, or none until ``replace``."""
        for process in self._on(host):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._workers[host].kill()
        if replaced:
            self.replace(host)

    def replace(self, host: str) -> None:
        """Another machine takes the place of one that was lost."""
        self._workers[host] = self._worker(host)

    def host_of_driver(self, driver_id: str) -> str:
        """Where the acting master has a driver run; empty while it runs nowhere."""
        seen = self.seen()
        worker = next((d["worker"] for d in seen.get("activedrivers", ()) if d["id"] == driver_id), "")
        return next((str(w["host"]) for w in seen["workers"] if w["id"] == worker), "")

    def host_of(self, pid: int) -> str:
        """Where a process runs."""
        return next(host for host in self._workers if pid in {p.pid for p in self._on(host)})

    def _on(self, host: str) -> list[psutil.Process]:
        """The executors there and their Python, which a worker starts in sessions of their own or not."""
        return psutil.Process(self._workers[host].pid).children(recursive=True)

    def _worker(self, host: str) -> Child:
        cores, memory = self._size
        size = ["--cores", str(cores), "--memory", memory, "--webui-port", "0"]
        return self._start(_WORKER, host, "--host", host, *size, self.address)

    @property
    def address(self) -> str:
        return f"spark://{','.join(master.address for master in self._masters)}"

    @property
    def settings(self) -> dict[str, str]:
        """Headgate's, for this cluster."""
        return {
            "HEADGATE_SPARK_MASTER": self.address,
            "HEADGATE_SPARK_MASTER_WEB": ",".join(master.web for master in self._masters),
            "HEADGATE_SPARK_SECRET": self.secret,
        }

    def seen(self) -> dict[str, Any]:
        """What the acting master says of its workers and applications."""
        acting = self._acting()
        return (acting.says() if acting else None) or {"workers": [], "activeapps": []}

    def application(self, name: str) -> dict[str, Any] | None:
        return next((a for a in self.seen()["activeapps"] if a["name"] == name), None)

    def environment(self, host: str, with_secret: bool = True) -> dict[str, str]:
        folder = self.folder / host
        folder.mkdir(exist_ok=True)
        # A folder with configuration would be first on the class path, and Java would take no shared classes.
        conf = " ".join(f"-D{name}={value}" for name, value in _CONF.items())
        secret = {"_SPARK_AUTH_SECRET": self.secret, "SPARK_DAEMON_JAVA_OPTS": conf} if with_secret else {}
        shared_classes = submit_options().get("SPARK_SUBMIT_OPTS", "")
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": host,
            "SPARK_WORKER_DIR": str(folder / "work"),
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_DAEMON_MEMORY": "128m",
            "JDK_JAVA_OPTIONS": f"{QUICK_JAVA} {shared_classes}",  # of executors, too
            **({"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}),
            **secret,
            **self._variables,
        }

    def says_to_a_stranger(self) -> str:
        """What a worker that does not know the secret hears from the master."""
        environment = self.environment("127.0.0.4", with_secret=False)
        command = [str(spark_home() / "bin" / "spark-class"), _WORKER, "--webui-port", "0", self.address]
        stranger = Child(command, self.folder / "stranger.log", environment=environment)
        try:
            told = re.compile("(Failed to connect to master|Successfully registered|Caused by: .*Exception: ).*")
            return wait_for(
                "an answer to a stranger",
                lambda: " ".join(m[0] for m in told.finditer(stranger.output())),
                120,
                stranger.output,
            )
        finally:
            stranger.kill()

    def tells(self) -> list[str]:
        """Command lines of any process, and logs of the cluster, that hold the secret."""
        lines = [line for _, line in command_lines(psutil.process_iter()) if self.secret in line]
        return lines + [str(log) for log in self._logs() if self.secret in log.read_text(errors="replace")]

    def _start(self, name: str, host: str, *arguments: str, options: str = "") -> Child:
        environment = self.environment(host)
        environment["SPARK_DAEMON_JAVA_OPTS"] += f" {options}"
        command = [str(spark_home() / "bin" / "spark-class"), name, *arguments]
        return Child(command, self.folder / f"{host}.log", environment=environment, folder=self.folder / host)

    def executors(self) -> list[psutil.Process]:
        """Of all that runs there."""
        return [p for host in self._workers for p in self._on(host) if _EXECUTOR in _command(p)]

    def logs(self) -> str:
        """The end of what the daemons and the executors have written."""
        return "\n".join(f"{log}:\n{log.read_text(errors='replace')[-3000:]}" for log in self._logs())

    def _logs(self) -> list[Path]:
        return [*self.folder.glob("*.log"), *self.folder.glob("*/work/*/*/std*")]

    def _stop_workers(self) -> None:
        for child in self._workers.values():
            child.stop()
        self._workers = {}

    def stop(self) -> None:
        """All of it; it can run again."""
        self._stop_workers()
        for master in self._masters:
            if master.process:
                master.process.stop()
        self._masters = []


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def _command(process: psutil.Process) -> str:
    """Empty of one that has ended meanwhile."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@contextmanager
def spark_cluster(folder: Path, hosts: Sequence[str], variables: Mapping[str, str]) -> Iterator[SparkCluster]:
    """One that is stopped at the end."""
    cluster = SparkCluster(folder, hosts, variables)
    try:
        yield cluster
    finally:
        cluster.stop()
