"""The compaction application that spark-submit starts; as ``ingestion.spark.index``, but for all datasources."""

from __future__ import annotations

import os
import sys

from pyspark import SparkContext

from ingestion.client.compaction import CompactionControlPlane
from ingestion.spark.compactor import Compactor
from ingestion.spark.index import spark_conf
from ingestion.spark.on_cluster import live_on_cluster
from ingestion.spark.signals import hand_on_sigterm
from ingestion.task.log import configure
from ingestion.task.shutdown import Ending


def main() -> int:
    """Exit code 0 when it ended because there was nothing more to do, or as it was told."""
    live_on_cluster()
    ending = Ending.from_environment().install()
    hand_on_sigterm()
    configure()
    name, token, url = (os.environ[n] for n in ("HEADGATE_TASK_ID", "HEADGATE_TASK_TOKEN", "HEADGATE_URL"))
    spark = SparkContext.getOrCreate(spark_conf())
    spark.setLogLevel("WARN")
    try:
        Compactor(spark, CompactionControlPlane(url, name, token), url, name, token, ending).run()
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
