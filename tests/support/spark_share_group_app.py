"""A Spark application that streams from ``kafka-sharegroup`` into Parquet until it is killed: ``… job.json``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import headgate


def main(job_file: str) -> None:
    job = json.loads(Path(job_file).read_text())
    builder = SparkSession.builder.master(job["master"]).config("spark.ui.enabled", "false")
    builder = builder.config("spark.log.level", "ERROR")
    builder = builder.config("spark.executor.memory", "512m").config("spark.driver.host", "127.0.0.1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        builder = builder.config(f"spark.executorEnv.{name}", os.environ[name])
    spark = builder.getOrCreate()
    spark.sparkContext.addPyFile(job["code"])
    headgate.register(spark)
    rows = spark.readStream.format("kafka-sharegroup").options(**job["options"]).load()
    writer = rows.writeStream.format("parquet").option("path", f"{job['folder']}/rows")
    writer.option("checkpointLocation", f"{job['folder']}/checkpoint").start().awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1])
