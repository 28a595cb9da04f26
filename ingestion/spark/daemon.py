"""PySpark's worker daemon with the indexer's libraries loaded once: workers forked from it start at once."""

import gc
import os
from importlib import import_module

from pyspark.daemon import manager

import ingestion.spark.worker  # noqa: F401  (loaded before the fork, shared by all workers)
from ingestion.without_pandas import keep_pandas_out

if os.environ.get("HEADGATE_SPARE"):
    import_module("ingestion.spark.batch_work")  # it may serve a batch task

if __name__ == "__main__":
    gc.freeze()  # what is loaded stays: the collector need not go through it for every few hundred records
    keep_pandas_out()
    manager()
