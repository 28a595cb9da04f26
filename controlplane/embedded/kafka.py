"""Kafka: broker and controller in one JVM (KRaft), with share groups, on the loopback address."""

from __future__ import annotations

import base64
import signal
import uuid
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from controlplane.common.process_identity import StopSteps
from controlplane.embedded.errors import ServiceFailed
from controlplane.embedded.files import remove_contents, write_atomically
from controlplane.embedded.home import Home
from controlplane.embedded.jvm import java
from controlplane.embedded.kafka_jars import VERSION, kafka_jars, spark_jars
from controlplane.embedded.ports import LOOPBACK, is_listening
from controlplane.embedded.processes import Child, run_to_end
from controlplane.embedded.service import Service

# Kafka's own dependencies log nowhere. PySpark ships what writes their messages, in one matching set.
LOGGING_JARS = ("slf4j-api-*.jar", "log4j-slf4j2-impl-*.jar", "log4j-api-*.jar", "log4j-core-*.jar")
LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.stdout.ref = stdout
appender.stdout.type = Console
appender.stdout.name = stdout
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %-5p %c{1} %m%n
"""
# For a program that is over before better code would have been compiled.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# One broker, so nothing can be replicated; few internal partitions, so that it starts and stops quickly.
DEFAULTS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # A member of a share group is given partitions with a heartbeat (5 s by default), and those of one that was killed
    # go to others when its session has ended (45 s by default), which begins anew when the broker does.
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "1000",
    "group.share.session.timeout.ms": "10000",
    "group.share.min.session.timeout.ms": "10000",
    # After a crash the controller lets the broker back in when its old session has ended (9 s by default).
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "1000",
    # The controller writes an empty record twice a second by default, for replicas to see that it lives.
    "metadata.max.idle.interval.ms": "0",
    "log.retention.hours": "8760",
    "log.cleaner.dedupe.buffer.size": "16777216",
}


class Kafka(Service):
    """A broker. `extra_properties` override or add to its `server.properties`, at every start.

    With `share_groups=False` its data is formatted with the feature `share.version` off, so that it refuses share
    groups. The Java heap is `heap_mb` at most. `version` is one of those whose jars are known.
    """

    stop_steps: StopSteps = ((signal.SIGTERM, 20.0),)

    def __init__(
        self,
        home: Home | Path | str,
        extra_properties: Mapping[str, str] | None = None,
        *,
        share_groups: bool = True,
        port: int | None = None,
        heap_mb: int = 512,
        name: str = "kafka",
        version: str = VERSION,
    ) -> None:
        super().__init__(home, name)
        self.port = port or self.home.ports.assign(name)
        self.share_groups = share_groups
        self.extra_properties = dict(extra_properties or {})
        self._heap_mb = heap_mb
        self.version = version
        self._folder = self.home.path / name
        self._properties_file = self._folder / "server.properties"

    @cached_property
    def controller_port(self) -> int:
        """Chosen when it is needed: who only asks for the address of a broker that runs has no use for one."""
        return self.home.ports.assign(f"{self.name}_controller")

    @property
    def bootstrap(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def properties(self) -> dict[str, str]:
        listeners = f"PLAINTEXT://{self.bootstrap}"
        return {
            **DEFAULTS,
            "listeners": f"{listeners},CONTROLLER://{LOOPBACK}:{self.controller_port}",
            "advertised.listeners": listeners,
            "controller.quorum.bootstrap.servers": f"{LOOPBACK}:{self.controller_port}",
            "log.dirs": str(self._folder / "data"),
            **self.extra_properties,
        }

    def _launch(self) -> Child:
        text = "".join(f"{key}={value}\n" for key, value in self.properties().items())
        write_atomically(self._properties_file, text)
        write_atomically(self._folder / "log4j2.properties", LOGGING)
        self._make_private()
        self._format()
        return Child(self._java("kafka.Kafka", str(self._properties_file)), self.log, folder=self._folder)

    def _make_private(self) -> None:
        """Kafka makes folders and files as the umask has it: what is in topics is its owner's alone."""
        for folder in (self._folder, self._folder / "data"):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o700)

    def _format(self) -> None:
        marker = self._folder / "formatted"
        if marker.exists():
            return
        remove_contents(self._folder / "data")  # of a formatting that was broken off
        command = self._java(*SHORT_LIVED, "kafka.tools.StorageTool", "format", "--standalone", "-t", new_cluster_id())
        command += ["-c", str(self._properties_file)]
        if not self.share_groups:
            command += ["--feature", "share.version=0"]
        if (code := run_to_end(command, self.log, timeout_s=120, folder=self._folder)) != 0:
            raise ServiceFailed(self.name, f"could not format its data folder (exit code {code})", self.log)
        write_atomically(marker, "")

    def _java(self, *arguments: str) -> list[str]:
        jars = [str(jar) for pattern in LOGGING_JARS for jar in sorted(spark_jars().glob(pattern))]
        jars.append(f"{kafka_jars(self.log, version=self.version)}/*")
        options = [f"-Xmx{self._heap_mb}m", "-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true"]
        options.append(f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}")
        return [java(), *options, "-cp", ":".join(jars), *arguments]

    def _is_ready(self) -> bool:
        if not is_listening(self.port):  # a client that finds nobody there would say so on the terminal
            return False
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        try:
            metadata = client.list_topics(timeout=2)
        except KafkaException:
            return False
        return (
            bool(metadata.brokers) and metadata.cluster_id == self._cluster_id()
        )  # another's broker may have the port

    def _cluster_id(self) -> str:
        lines = (Path(self.properties()["log.dirs"]) / "meta.properties").read_text().splitlines()
        return next((line.removeprefix("cluster.id=") for line in lines if line.startswith("cluster.id=")), "")


def new_cluster_id() -> str:
    """A random id as Kafka writes them: 22 characters, the first not a dash (which would be taken for an option)."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
