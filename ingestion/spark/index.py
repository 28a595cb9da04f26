"""The application that spark-submit starts. Task, token and address come from the environment, never from argv.

Spark starts in its JVM, which takes as long as all the rest: the data plane is imported and the assignment fetched
meanwhile. A spare does all that can be done without a task, and waits for the launcher to name one.
"""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

from pyspark import SparkConf, SparkContext

from ingestion.spark.on_cluster import all_masters, executors_files, live_on_cluster
from ingestion.spark.signals import hand_on_sigterm
from ingestion.task.shutdown import Ending

_END_S = 15.0
# What a spare may serve beside streaming tasks.
_OTHERS = ("ingestion.spark.batch", "ingestion.task.repair", "ingestion.task.replay", "ingestion.batch.replay")


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
            if place := os.environ.pop("HEADGATE_SPARE", ""):
                return _run_spare(Path(place), starting, ending)
            task_id, token = (os.environ[name] for name in ("HEADGATE_TASK_ID", "HEADGATE_TASK_TOKEN"))
            return _run_driver(starting, ending, task_id, token)
        finally:
            starting.result().stop()


def _start_spark() -> SparkContext:
    spark = SparkContext.getOrCreate(spark_conf())
    spark.setLogLevel("WARN")
    return spark


def _run_spare(place: Path, starting: Future[SparkContext], ending: Ending) -> int:
    import ingestion.spark.application  # not at the top: it is loaded beside Spark's start # noqa: F401
    from ingestion.spark.spare import wait_for_order  # not at the top: likewise
    from ingestion.task.log import configure, logger_for  # not at the top: likewise

    configure()
    for module in _OTHERS:
        import_module(module)
    starting.result().parallelize([1], 1).mapPartitions(list).collect()  # Python's daemon has loaded the data plane
    order = wait_for_order(place, ending)
    if order is None:
        end = threading.Timer(_END_S, os._exit, [0])  # nobody would look after one that can't stop Spark
        end.daemon = True
        end.start()
        return 0
    logger_for(task=order.task_id).info("an application that waited serves the task")
    if order.module:
        # From here on it is as if the launcher had started that program.
        os.environ.update(HEADGATE_TASK_ID=order.task_id, HEADGATE_TASK_TOKEN=order.token)
        return int(import_module(order.module).main())
    return _run_driver(starting, ending, order.task_id, order.token)


def _run_driver(starting: Future[SparkContext], ending: Ending, task_id: str, token: str) -> int:
    from ingestion.client.errors import ClientError  # not at the top: it is loaded beside Spark's start
    from ingestion.client.http import HttpControlPlane  # not at the top: it is loaded beside Spark's start
    from ingestion.spark.application import Application  # not at the top: likewise
    from ingestion.task.log import configure, logger_for  # not at the top: likewise

    configure()
    url = os.environ["HEADGATE_URL"]
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
