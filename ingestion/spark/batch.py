"""The batch application that spark-submit starts; as ``ingestion.spark.index``, for files.

In an application that waited, Spark runs already: for streaming tasks, which Spark does not try again. The batch task
begins there. If one of its Spark tasks fails, Spark starts again as the spec has it, and so does the batch task.
"""

from __future__ import annotations

import os
import sys

from pyspark import SparkConf, SparkContext

from ingestion.client.batch import BatchControlPlane
from ingestion.client.errors import ClientError
from ingestion.spark.batcher import Batcher
from ingestion.spark.index import spark_conf
from ingestion.spark.on_cluster import live_on_cluster
from ingestion.spark.signals import hand_on_sigterm
from ingestion.specs.messages.batch_protocol import BatchAssignment
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
    waited = SparkContext._active_spark_context
    spark = waited or _start(spark_conf())
    batcher = Batcher(spark, client, assignment, url, token, ending, _start_again if waited else None)
    try:
        batcher.run()
    finally:
        batcher.spark.stop()
    return 0


def _start(conf: SparkConf) -> SparkContext:
    spark = SparkContext(conf=conf)
    spark.setLogLevel("WARN")
    return spark


def _start_again(before: SparkContext, assignment: BatchAssignment) -> SparkContext:
    """On local Spark, with what the launcher gives to a batch task that starts without a spare."""
    failures = 1 + assignment.spec.tuningConfig.maxRetry
    conf = spark_conf().setMaster(f"local[{assignment.slots},{failures}]")
    conf.set("spark.task.maxFailures", str(failures)).set("spark.python.worker.reuse", "true")
    before.stop()
    return _start(conf)


if __name__ == "__main__":
    sys.exit(main())
