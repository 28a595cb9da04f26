"""Does once what every application does at its start, so that the JVM has loaded the classes for it."""

from __future__ import annotations

from pyspark import SparkContext


def main() -> None:
    """A context, and a job in a Python worker."""
    with SparkContext.getOrCreate() as spark:
        spark.parallelize([1], 1).mapPartitions(list).collect()


if __name__ == "__main__":
    main()
