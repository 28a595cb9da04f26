"""The application that spark-submit starts. Task, token and address come from the environment, never from argv."""

from __future__ import annotations

import os
import sys

from pyspark import SparkConf, SparkContext

from ingestion.client import ClientError, HttpControlPlane
from ingestion.spark.application import Application
from ingestion.spark.signals import hand_on_sigterm
from ingestion.task.ending import Ending
from ingestion.task.log import configure, logger_for


def _conf() -> SparkConf:
    """A cluster's secret comes through the environment: everybody on the machine can read a command line."""
    conf, secret = SparkConf(), os.environ.pop("HEADGATE_SPARK_SECRET", "")
    return conf.set("spark.authenticate.secret", secret) if secret else conf


def main() -> int:
    """Exit code 0 when the task did what it was told."""
    configure()
    ending = Ending.from_environment().install()
    hand_on_sigterm()
    task_id, token, url = (os.environ[n] for n in ("HEADGATE_TASK_ID", "HEADGATE_TASK_TOKEN", "HEADGATE_URL"))
    log = logger_for(task=task_id)
    client = HttpControlPlane(url, task_id, token)
    try:
        assignment = client.assignment()
    except ClientError as error:
        log.error("no assignment", reason=str(error))
        return 1
    spark = SparkContext.getOrCreate(_conf())
    spark.setLogLevel("WARN")
    try:
        Application(spark, client, assignment, url, token, ending).run()
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
