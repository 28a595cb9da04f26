"""Downloads and builds what the deep lanes need besides, unless it is there: a test waits for what it needs of it.

First the jars of older versions of Kafka and of a YARN cluster. Then what takes minutes of processor time: programs of
Go, and environments of other programs. Those get the processors while the tests leave them idle.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from controlplane.embedded.kafka_jars import OLDER, kafka_jars
from tests.support import yarn_cluster
from tests.support.druid_clients import druid_clients
from tests.support.duckdb_reader import duckdb_reader
from tests.support.go_programs import helm_program, prometheus_programs
from tests.support.kubernetes_schemas import kubernetes_schemas
from tests.support.own_environment import spark_reader


def main() -> None:
    with tempfile.TemporaryDirectory() as logs:
        for version in OLDER:
            kafka_jars(Path(logs) / "ivy.log", version=version)
        yarn_cluster.fetch(Path(logs) / "ivy.log")
    for prepare in (kubernetes_schemas, druid_clients, duckdb_reader, spark_reader):
        prepare()
    if shutil.which("go"):
        helm_program()
        prometheus_programs()


if __name__ == "__main__":
    main()
