"""The batch application that spark-submit starts; as ``ingestion.spark.index``, for files."""

from __future__ import annotations

import os
import sys

from pyspark import SparkContext

from ingestion.client.batch import BatchControlPlane
from ingestion.client.errors import ClientError
from ingestion.spark.batcher import Batcher
from ingestion.spark.index import spark_conf
from ingestion.spark.on_cluster import live_on_cluster
from ingestion.spark.signals import hand_on_sigterm
from ingestion.task.log import configure, logger_for
from ingestion.task.shutdown import Ending


def main() -> int:
    """Exit code 0 when the task has told its end."""
    live_on_cluster()
    ending = Ending.from_environment().install()
    hand_on_sigterm()
    configure()
    task_id, token, url = (os.environ[n] for n in ("HEADGATE_TASK_ID", "HEADGATE_TASK_TOKEN", "HEADGATE_URL"))
    client = BatchControlPlane(url, task_id, token)
    try:
        assignment = client.start_batch()
    except ClientError as error:
        logger_for(task=task_id).error("no assignment", reason=str(error))
        return 1
    spark = SparkContext.getOrCreate(spark_conf())
    spark.setLogLevel("WARN")
    try:
        Batcher(spark, client, assignment, url, token, ending).run()
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
