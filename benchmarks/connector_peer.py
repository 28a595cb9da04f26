"""Spark with ``kafka-sharegroup`` and with its own Kafka source, in a process of its own.

It makes a pass for each line that it is given, and answers with a line of JSON. ``ms``: of work for each record.
``python -m benchmarks.connector_peer SLOTS FOLDER``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import headgate
from benchmarks.jars import jars
from benchmarks.spark_peer import JARS


def main(slots: str, folder: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings: dict[str, bool | float | int | str | None] = {
        "spark.jars": ",".join(map(str, jars("spark-4.2.0", JARS))),
        "spark.driver.memory": "3g",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": folder,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": 100_000,
    }
    spark = SparkSession.builder.master(f"local[{slots}]").config(map=settings).getOrCreate()
    headgate.register(spark)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(one_pass(spark, **json.loads(line))), flush=True)
    spark.stop()


def one_pass(
    spark: SparkSession, source: str, topic: str, options: dict[str, str], folder: str, ms: float
) -> dict[str, Any]:
    """All that the topic holds, into Parquet, with a checkpoint on the local disk."""
    read_options = {"checkpointLocation": f"{folder}/checkpoint"} if source == "kafka-sharegroup" else {}
    rows = spark.readStream.format(source).options(**options, **read_options, subscribe=topic).load()
    if ms:
        rows = rows.select("value", "partition", "offset").mapInArrow(
            lambda batches: simulate_work(batches, ms), "value binary, partition int, offset long"
        )
    files = rows.writeStream.format("parquet").option("path", f"{folder}/rows")
    query = files.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [json.loads(p.json) for p in query.recentProgress]
    busy = [p for p in progress if p["numInputRows"]]
    metrics = headgate.metrics(query)
    begins = metrics[0]["firstRecordAt"] / 1000 if metrics else epoch_seconds(busy[0]["timestamp"])
    ends = epoch_seconds(busy[-1]["timestamp"]) + busy[-1]["durationMs"]["triggerExecution"] / 1000
    return {"seconds": ends - begins, "batches": len(busy), "metrics": metrics}


def epoch_seconds(timestamp: str) -> float:
    """Seconds since 1970."""
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()


def simulate_work(batches: Iterable[pa.RecordBatch], ms: float) -> Iterator[pa.RecordBatch]:
    """What takes so long for each record, and no processor: a call to a service, say."""
    for batch in batches:
        time.sleep(batch.num_rows * ms / 1000)
        yield batch


if __name__ == "__main__":
    main(*sys.argv[1:])
