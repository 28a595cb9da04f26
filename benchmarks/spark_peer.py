"""Spark Structured Streaming from Kafka to Parquet, in a process of its own: prints its times as JSON.

``passes_s``: the seconds of each pass; ``from_start_s``: those from the process's start to the end of the last.

``python -m benchmarks.spark_peer BOOTSTRAP CORES FOLDER TOPIC…``: one pass for each topic in turn, in one session.
"""

from __future__ import annotations

import json
import sys
import time

import psutil
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from benchmarks.jars import jars

JARS = [
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.0"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
]
SCHEMA = "time string, n long, kind string, value long, pad string"


def main(bootstrap: str, cores: str, folder: str, *topics: str) -> None:
    spark = session(cores, folder)
    seconds = []
    for number, topic in enumerate(topics):
        began = time.monotonic()
        one_pass(spark, bootstrap, topic, f"{folder}/{number}")
        seconds.append(time.monotonic() - began)
    from_start_s = time.time() - psutil.Process().create_time()
    spark.stop()
    print(json.dumps({"passes_s": seconds, "from_start_s": from_start_s}))


def session(cores: str, folder: str) -> SparkSession:
    """The quickest that Spark can be: it opens files when rows come, and need not sort them by day first."""
    settings: dict[str, bool | float | int | str | None] = {
        "spark.jars": ",".join(map(str, jars("spark-4.2.0", JARS))),
        "spark.driver.memory": "3g",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": folder,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.maxConcurrentOutputFileWriters": "8",
    }
    return SparkSession.builder.master(f"local[{cores}]").config(map=settings).getOrCreate()


def one_pass(spark: SparkSession, bootstrap: str, topic: str, folder: str) -> None:
    """All that the topic holds, in one micro-batch."""
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    bytes_in = source.option("startingOffsets", "earliest").option("kafka.max.poll.records", "20000").load()
    record = bytes_in.select(f.from_json(f.col("value").cast("string"), SCHEMA).alias("r")).select("r.*")
    rows = record.withColumn("__time", f.to_timestamp("time")).drop("time").withColumn("day", f.to_date("__time"))
    files = rows.writeStream.format("parquet").partitionBy("day").option("path", f"{folder}/rows")
    files.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
