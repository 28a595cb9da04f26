"""What runs in a worker's process without Spark: the very function that Spark would call."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection

from ingestion.spark.worker import WorkerConfig, indexer_runner


def main(orders: WorkerConfig, said: Connection, scratch: str) -> None:
    """Send how the indexer ended and why; an error that Spark would see ends the process."""
    os.environ["HEADGATE_SCRATCH"] = scratch
    for ended in indexer_runner(orders)([orders.number]):
        said.send((ended.kind, ended.reason))
