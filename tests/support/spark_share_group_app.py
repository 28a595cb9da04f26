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
    queries = []
    for name, options in job["queries"].items():
        queries.append(_begun(spark, options, f"{job['folder']}/{name}"))
    while all(query.isActive for query in queries):
        time.sleep(0.2)
    raise SystemExit(str([query.exception() for query in queries]))


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
    """One whose source is started. Spark gives it ten seconds, which are not enough on a busy machine: then again."""
    rows = spark.readStream.format("kafka-sharegroup").options(**options).load()
    writer = rows.writeStream.format("parquet").option("path", f"{folder}/rows")
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    while True:
        query = writer.start()
        end = time.monotonic() + STARTS_S
        while query.isActive and "Initializing" in query.status["message"] and time.monotonic() < end:
            time.sleep(0.1)
        if "Python worker failed to connect back" not in str(query.exception()):
            return query


if __name__ == "__main__":
    main(sys.argv[1])
