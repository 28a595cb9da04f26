"""What runs in a worker's process without Spark: the very function that Spark would call."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection

import pyarrow as pa

from ingestion.spark.worker import Orders, work


def main(orders: Orders, said: Connection, scratch: str) -> None:
    """Send how the indexer ended and why; an error that Spark would see ends the process."""
    os.environ["HEADGATE_SCRATCH"] = scratch
    one_row = pa.RecordBatch.from_pydict({"id": [0]})
    for batch in work(orders)(iter([one_row])):
        row = batch.to_pylist()[0]
        said.send((row["how"], row["reason"]))
