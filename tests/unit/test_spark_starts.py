"""When starting an indexer again is in vain."""

from __future__ import annotations

from ingestion.spark.restarts import MAX_SILENT_STARTS, SilentStarts, python_error

NO_CODE = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted: Task 0 in stage 0.0 failed 1 times (10.0.0.7 executor 0):
org.apache.spark.SparkException:
Error from python worker:
  /usr/bin/python3: Error while finding module specification for 'a.daemon' (ModuleNotFoundError: No module named 'a')
PYTHONPATH was:
  /opt/spark/python/lib/pyspark.zip
org.apache.spark.SparkException: EOFException occurred while reading the port number from a.daemon's stdout.
\tat org.apache.spark.api.python.PythonWorkerFactory.startDaemon(PythonWorkerFactory.scala:300)
"""


def test_starts_of_which_nothing_was_heard_end_the_task() -> None:
    starts = SilentStarts()
    assert [starts.count(spoke=False) for _ in range(MAX_SILENT_STARTS)] == [False] * (MAX_SILENT_STARTS - 1) + [True]
    assert (
        starts.failure("no Python")
        == f"No indexer could be started in {MAX_SILENT_STARTS} attempts. The last one: no Python"
    )


def test_what_python_said_is_told_rather_than_what_spark_made_of_it() -> None:
    assert python_error(NO_CODE).endswith("(ModuleNotFoundError: No module named 'a')")
    assert python_error("java.io.IOException: Cannot run program") == ""


def test_one_word_begins_the_count_anew() -> None:
    starts = SilentStarts()
    heard = [False] * (MAX_SILENT_STARTS - 1) + [True] + [False] * (MAX_SILENT_STARTS - 1)
    assert not any(starts.count(spoke) for spoke in heard)
