"""A plain Spark job from files of JSON to sorted Parquet by day, in a process of its own: prints what it took as JSON.

``python -m benchmarks.batch_peer SOURCE TARGET CORES DAYS``. ``from_start_s``: from the process's start to the end;
``cpu_s``: processor time of it and its JVM.
"""

from __future__ import annotations

import json
import sys
import time

import psutil
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

SCHEMA = """
    time string, n long, event string, session string, user struct<id: string, country: string, tier: string>,
    geo struct<city: string, lat: double, lon: double>, price double, quantity long, url string, agent string
"""


def main(source: str, target: str, cores: str, days: str) -> None:
    spark = session(cores, target)
    write(spark, source, target, int(days))
    mine = psutil.Process()
    from_start_s = time.time() - mine.create_time()
    cpu_s = sum(sum(process.cpu_times()[:4]) for process in [mine, *mine.children(recursive=True)])
    spark.stop()
    print(json.dumps({"from_start_s": from_start_s, "cpu_s": cpu_s}))


def session(cores: str, folder: str) -> SparkSession:
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.memory": "3g",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": f"{folder}-scratch",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.compression.codec": "zstd",
    }
    return SparkSession.builder.master(f"local[{cores}]").config(map=settings).getOrCreate()


def write(spark: SparkSession, source: str, target: str, days: int) -> None:
    """A file for each day, in the order of time and dimensions."""
    read = spark.read.schema(SCHEMA).json(f"file://{source}")
    rows = read.select(
        f.to_timestamp("time").alias("__time"),
        "event",
        "session",
        f.col("user.id").alias("user"),
        f.col("user.country").alias("country"),
        f.col("geo.city").alias("city"),
        "url",
        "agent",
        "n",
        "quantity",
        f.col("geo.lat").alias("lat"),
        "price",
        (f.col("price") * f.col("quantity")).alias("total"),
    )
    by_day = rows.withColumn("day", f.to_date("__time")).repartition(days, "day")
    ordered = by_day.sortWithinPartitions("day", *rows.columns)
    ordered.write.partitionBy("day").parquet(f"file://{target}")


if __name__ == "__main__":
    main(*sys.argv[1:])
