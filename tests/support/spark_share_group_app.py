"""A Spark application that streams from ``kafka-sharegroup`` into Parquet until it is killed: ``… job.json``."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import headgate

STARTS_S = 10.0  # that a query has before the next one begins; one that a test holds at its start needs longer


def main(job_file: str) -> None:
    job = json.loads(Path(job_file).read_text())
    spark = _session(job)
    queries = {name: _begun(spark, options, f"{job['folder']}/{name}") for name, options in job["queries"].items()}
    while True:
        time.sleep(0.2)
        for name, query in queries.items():
            if not query.isActive:
                if not _started_late(query):
                    raise SystemExit(str(query.exception()))
                queries[name] = _begun(spark, job["queries"][name], f"{job['folder']}/{name}")


def _session(job: dict[str, Any]) -> SparkSession:
    builder = SparkSession.builder.master(job["master"]).config("spark.ui.enabled", "false")
    builder = builder.config("spark.log.level", "ERROR")
    builder = builder.config("spark.executor.memory", "512m").config("spark.driver.host", "127.0.0.1")
    for name, value in job["conf"].items():
        builder = builder.config(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        builder = builder.config(f"spark.executorEnv.{name}", os.environ[name])
    spark = builder.getOrCreate()
    spark.sparkContext.addPyFile(job["code"])
    headgate.register(spark)
    return spark


def _begun(spark: SparkSession, options: dict[str, str], folder: str) -> StreamingQuery:
    """One whose source is started, where that does not take too long."""
    rows = spark.readStream.format("kafka-sharegroup").options(**options).load()
    writer = rows.writeStream.format("parquet").option("path", f"{folder}/rows")
    query = writer.option("checkpointLocation", f"{folder}/checkpoint").start()
    end = time.monotonic() + STARTS_S
    while query.isActive and "Initializing" in query.status["message"] and time.monotonic() < end:
        time.sleep(0.1)
    return query


def _started_late(query: StreamingQuery) -> bool:
    """Spark gives its source ten seconds to start, which are not enough on a busy machine."""
    return "Python worker failed to connect back" in str(query.exception())


if __name__ == "__main__":
    main(sys.argv[1])
