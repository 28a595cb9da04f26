"""Spark Structured Streaming and Flink SQL, each in a process of its own, for the same outcome as Headgate's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.jars import cache, jars
from controlplane.embedded.home import PROJECT
from controlplane.embedded.jvm import java
from controlplane.embedded.kafka_jars import spark_jars

PASS_TIMEOUT_S = 1800.0
FLINK = "apache-flink==2.3.0"
FLINK_JARS = [
    ("org.apache.flink", "flink-sql-connector-kafka", "5.0.0-2.2"),
    ("org.apache.flink", "flink-sql-parquet", "2.3.0"),
    ("org.apache.hadoop", "hadoop-client-api", "3.4.1"),
    ("org.apache.hadoop", "hadoop-client-runtime", "3.4.1"),
    ("commons-logging", "commons-logging", "1.2"),
]


@dataclass(frozen=True)
class Topics:
    """``tiny`` has a record for each partition: what a pass over it takes is what a pass takes before and after."""

    bootstrap: str
    full: str
    tiny: str
    count: int


@dataclass(frozen=True)
class Rates:
    """Rows a second: of the pass from its start, and without what the pass over the tiny topic took."""

    from_start: float
    from_first_record: float


def spark_rates(topics: Topics, cores: int) -> Rates:
    """Raises ``RuntimeError`` when the process failed or its files don't hold all rows."""
    command = [sys.executable, "-m", "benchmarks.spark_peer", topics.bootstrap, str(cores)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return _rates(topics, command, [], environment)


def spark_rate_from_start(bootstrap: str, topic: str, count: int, cores: int) -> float:
    """Rows a second of one pass, counted from the start of its process. Raises ``RuntimeError`` as ``spark_rates``."""
    command = [sys.executable, "-m", "benchmarks.spark_peer", bootstrap, str(cores)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with tempfile.TemporaryDirectory(prefix="headgate-peer-") as folder:
        output = _run_peer([*command, folder, topic], environment)
        _check(Path(folder) / "0", count)
    return count / float(output["from_start_s"])


def flink_rates(topics: Topics, parallelism: int, mode: str) -> Rates:
    """``mode``: batch or streaming. Raises ``RuntimeError`` as ``spark_rates`` does."""
    paths = [*jars("flink-2.3.0", FLINK_JARS), *spark_jars().glob("zstd-jni-*.jar")]
    script = str(PROJECT / "benchmarks" / "flink_peer.py")
    command = [str(_flink_python()), script, topics.bootstrap, str(parallelism), mode]
    # Its JVM is looked for there.
    environment = {**os.environ, "JAVA_HOME": str(Path(java()).resolve().parents[1])}
    return _rates(topics, command, [",".join(map(str, paths))], environment)


def _rates(topics: Topics, command: list[str], jars_option: list[str], environment: dict[str, str]) -> Rates:
    """The first pass warms the JVM up and is not counted."""
    with tempfile.TemporaryDirectory(prefix="headgate-peer-") as folder:
        passes = [topics.full, topics.tiny, topics.full]
        _, tiny_s, full_s = _run_peer([*command, folder, *jars_option, *passes], environment)["passes_s"]
        _check(Path(folder) / "2", topics.count)
    return Rates(topics.count / full_s, topics.count / (full_s - tiny_s))


def _run_peer(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """The last line that a peer prints: ``passes_s``, seconds of each pass; of Spark ``from_start_s``, too."""
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=PASS_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[1:3]} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    output: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return output


def _check(folder: Path, count: int) -> None:
    rows = sum(pq.read_metadata(path).num_rows for path in folder.rglob("part-*"))
    if rows != count:
        raise RuntimeError(f"the peer's files hold {rows:,} rows of {count:,}")


def _flink_python() -> Path:
    """The interpreter of PyFlink's own virtual environment, made the first time (0.9 GB)."""
    folder = cache() / "flink-2.3.0-python"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        venv.create(folder, clear=True, with_pip=True)
        _run([str(python), "-m", "pip", "install", "--quiet", FLINK])
        (folder / "complete").touch()
    return python


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
