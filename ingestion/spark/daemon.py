"""PySpark's worker daemon with the indexer's libraries loaded once: workers forked from it start at once."""

import ingestion.spark.worker  # noqa: F401  (loaded before the fork, shared by all workers)
from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
