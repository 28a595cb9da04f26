"""The application that spark-submit starts. Task, token and address come from the environment, never from argv.

Spark starts in its JVM, which takes as long as all the rest: the data plane is imported and the assignment fetched
meanwhile.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import Future, ThreadPoolExecutor

from pyspark import SparkConf, SparkContext

from ingestion.spark.on_cluster import all_masters, executors_files, live_on_cluster
from ingestion.spark.signals import hand_on_sigterm
from ingestion.task.shutdown import Ending


def spark_conf() -> SparkConf:
    """A cluster's secret comes through the environment: everybody on the machine can read a command line."""
    spark_config, names = all_masters(executors_files(SparkConf())), ("HEADGATE_SPARK_SECRET", "_SPARK_AUTH_SECRET")
    secret = next(filter(None, [os.environ.pop(name, "") for name in names]), "")
    return spark_config.set("spark.authenticate.secret", secret) if secret else spark_config


def main() -> int:
    """Exit code 0 when the task did what it was told."""
    live_on_cluster()
    ending = Ending.from_environment().install()
    hand_on_sigterm()
    with ThreadPoolExecutor(1, "spark") as aside:
        starting = aside.submit(_start_spark)
        try:
            return _run_driver(starting, ending)
        finally:
            starting.result().stop()


def _start_spark() -> SparkContext:
    spark = SparkContext.getOrCreate(spark_conf())
    spark.setLogLevel("WARN")
    return spark


def _run_driver(starting: Future[SparkContext], ending: Ending) -> int:
    from ingestion.client.errors import ClientError  # not at the top: it is loaded beside Spark's start
    from ingestion.client.http import HttpControlPlane  # not at the top: it is loaded beside Spark's start
    from ingestion.spark.application import Application  # not at the top: likewise
    from ingestion.task.log import configure, logger_for  # not at the top: likewise

    configure()
    task_id, token, url = (os.environ[n] for n in ("HEADGATE_TASK_ID", "HEADGATE_TASK_TOKEN", "HEADGATE_URL"))
    client = HttpControlPlane(url, task_id, token)
    try:
        assignment = client.assignment()
    except ClientError as error:
        logger_for(task=task_id).error("no assignment", reason=str(error))
        return 1
    Application(starting, client, assignment, url, token, ending).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
