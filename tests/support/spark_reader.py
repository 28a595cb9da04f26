"""Spark 4.1 with Iceberg's runtime, in an environment of its own: there is no runtime for Headgate's Spark yet."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from benchmarks.jars import jars
from controlplane.feed.manifest import SPARK_RUNTIME
from tests.support.own_environment import spark_reader

_SHA256 = "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82"  # of the runtime's jar
# Prints the rows of each line of its input, which is SQL, as JSON. The line before it has opened the catalog.
_QUERIES = """
import json, sys

for query in sys.stdin:
    print(json.dumps([list(row) for row in spark.sql(query).collect()], default=str), flush=True)
spark.stop()
"""
_SUBMIT = "--master local[2] --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2 pyspark-shell"


def iceberg_runtime() -> Path:
    """The jar, downloaded the first time (48 MB)."""
    organisation, name, version = SPARK_RUNTIME.split(":")
    [jar] = jars(f"iceberg-spark-{version}", [(organisation, name, version)])
    digest = hashlib.sha256(jar.read_bytes()).hexdigest()
    if digest != _SHA256:
        raise RuntimeError(f"{jar} is not the jar that is known. Delete its folder and try again.")
    return jar


def environment(secret: str) -> dict[str, str]:
    """What the program needs besides its arguments. ``secret``: an API token."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
    usual = {"NO_PROXY": "*", "PYSPARK_SUBMIT_ARGS": _SUBMIT, "SPARK_LOCAL_IP": "127.0.0.1", "TZ": "UTC"}
    return {**kept, **usual, "HEADGATE_TOKEN": secret}


def query_program(line: str) -> list[str]:
    """The command that runs the queries of its input. ``line``: the one of the datasource's page."""
    asked = f'.config("spark.jars.packages", "{SPARK_RUNTIME}")'
    if asked not in line:
        raise ValueError(f"the line does not ask for {SPARK_RUNTIME}")
    program = line.replace(asked, f'.config("spark.jars", "{iceberg_runtime()}")') + _QUERIES
    return [str(spark_reader()), "-c", program]
