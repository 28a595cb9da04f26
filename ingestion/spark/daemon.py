"""PySpark's worker daemon with the indexer's libraries loaded once: workers forked from it start at once."""

import gc

from pyspark.daemon import manager

import ingestion.spark.worker  # noqa: F401  (loaded before the fork, shared by all workers)

if __name__ == "__main__":
    gc.freeze()  # what is loaded stays: the collector need not go through it for every few hundred records
    manager()
