"""Spark's classes as the JVM has them once they are loaded, in a file that applications' JVMs map (Java's AppCDS).

Half of what an application's JVM does until Spark is up is to load classes. Made once for each Java and PySpark.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from pathlib import Path

from controlplane.embedded.home import PROJECT, default_cache
from controlplane.embedded.jvm import java
from controlplane.embedded.kafka_jars import spark_jars
from controlplane.embedded.ports import LOOPBACK
from controlplane.embedded.processes import run_to_end
from controlplane.embedded.waiting import file_lock

TIMEOUT_S = 300.0
WARM_UP = Path("ingestion") / "spark" / "warm_up.py"


def prepare_classes(log: Path, cancel: threading.Event | None = None) -> None:
    """Make the file the first time, half a minute or so; without it an application starts later, and that is all.

    Several processes may ask at once: one makes it, the others wait. Raises Cancelled.
    """
    file = _archive_path()
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(file.with_suffix(".lock"), TIMEOUT_S, cancel):
        if not file.exists():
            _create_archive(file, log, cancel)


def submit_options() -> dict[str, str]:
    """What the environment of spark-submit says of the file, once there is one."""
    file = _archive_path()
    if not file.exists():
        return {}
    options = os.environ.get("SPARK_SUBMIT_OPTS", "")
    return {"SPARK_SUBMIT_OPTS": f"{options} -XX:SharedArchiveFile={file}".strip()}


def _archive_path() -> Path:
    """Another Java, another PySpark, or one that was installed anew has another: the JVM would not take this one."""
    jars, runtime = spark_jars(), Path(java()).resolve()
    release = runtime.parents[1] / "release"
    java_release = release.read_text() if release.exists() else str(runtime)
    name = f"{java_release}\n{jars}\n{jars.stat().st_mtime_ns}"
    return default_cache() / f"spark-classes-{hashlib.sha256(name.encode()).hexdigest()[:16]}.jsa"


def _create_archive(file: Path, log: Path, cancel: threading.Event | None) -> None:
    unfinished = file.with_suffix(f".{os.getpid()}")
    submit = str(Path(sys.executable).parent / "spark-submit")
    options = ["--master", "local[1]", "--driver-java-options", f"-XX:ArchiveClassesAtExit={unfinished}"]
    environment = {
        **os.environ,
        "JDK_JAVA_OPTIONS": "-XX:+UseSerialGC",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": LOOPBACK,
    }
    command = [submit, *options, "--conf", "spark.ui.enabled=false", str(PROJECT / WARM_UP)]
    try:
        run_to_end(command, log, timeout_s=TIMEOUT_S, cancel=cancel, environment=environment, folder=PROJECT)
        if unfinished.exists():
            unfinished.replace(file)
    except TimeoutError:
        pass
    finally:
        unfinished.unlink(missing_ok=True)
