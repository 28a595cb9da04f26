"""A Kafka whose JVM maps its classes from a file, as they are once they are loaded (Java's AppCDS).

To load them is half of what it does until it answers. The first one that is stopped in order makes the file, for each
Java and version of Kafka.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from controlplane.embedded import kafka
from controlplane.embedded.home import default_cache
from controlplane.embedded.jvm import java
from controlplane.embedded.kafka_jars import kafka_jars


class Kafka(kafka.Kafka):
    """Otherwise that of the stack."""

    def _java(self, *arguments: str) -> list[str]:
        program, *command = super()._java(*arguments)
        if self._classes.exists():
            return [program, f"-XX:SharedArchiveFile={self._classes}", *command]
        is_server = "kafka.Kafka" in arguments
        return [program, *([f"-XX:ArchiveClassesAtExit={self._unfinished}"] if is_server else []), *command]

    def stop(self) -> None:
        super().stop()
        if self.exit_code is not None and self.exit_code < 0:  # a signal ended it, perhaps as it wrote
            self._unfinished.unlink(missing_ok=True)
        elif self._unfinished.exists():
            self._unfinished.replace(self._classes)

    def kill(self) -> None:
        super().kill()
        self._unfinished.unlink(missing_ok=True)

    @property
    def _classes(self) -> Path:
        """Another Java, or jars that were downloaded anew, have another: the JVM would not take this one."""
        jars = kafka_jars(self.log, version=self.version)
        name = f"{Path(java()).resolve()}\n{jars}\n{jars.stat().st_mtime_ns}"
        return default_cache() / f"kafka-classes-{hashlib.sha256(name.encode()).hexdigest()[:16]}.jsa"

    @property
    def _unfinished(self) -> Path:
        return self._classes.with_suffix(f".{os.getpid()}-{self.port}")
