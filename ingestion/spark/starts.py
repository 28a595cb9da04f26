"""Whether indexers get as far as speaking: what they wait for until then, and when trying again is in vain."""

from __future__ import annotations

import re

from pyspark import SparkContext

from ingestion.task.log import logger_for

MOST_SILENT = 5  # starts of one indexer in a row


def group_of(number: int) -> str:
    """The name of an indexer's Spark jobs."""
    return f"indexer-{number}"


def has_slot(spark: SparkContext, number: int) -> bool:
    """Whether Spark has found room for the indexer's job. True when it can't be told."""
    try:
        tracker = spark.statusTracker()
        job = tracker.getJobInfo(max(tracker.getJobIdsForGroup(group_of(number)), default=-1))
        stages = [tracker.getStageInfo(stage) for stage in (job.stageIds if job else ())]
    except Exception as error:  # py4j wraps what the JVM threw: the context may be ending
        logger_for(indexer=number).debug("Spark does not say whether it has room", reason=str(error))
        return True
    return any(s.numActiveTasks or s.numCompletedTasks or s.numFailedTasks for s in stages if s) or not stages


_PYTHON_SAID = re.compile(r"Error from python worker:\n(.*?)\nPYTHONPATH was:", re.DOTALL)


def python_said(error: str) -> str:
    """The last line that a Python process which did not come up has written, by Spark's error; else nothing."""
    found = _PYTHON_SAID.search(error)
    lines = [line.strip() for line in found[1].splitlines() if line.strip()] if found else []
    return lines[-1] if lines else ""


class SilentStarts:
    """Counts an indexer's starts of which nothing was heard: no Python, no code, or no way back to the driver."""

    def __init__(self) -> None:
        self._count = 0

    def note(self, spoke: bool) -> bool:
        """Whether it has been in vain for too often."""
        self._count = 0 if spoke else self._count + 1
        return self._count >= MOST_SILENT

    def failure(self, reason: str) -> str:
        """What the task ends with."""
        return (
            f"No indexer could be started in {self._count} attempts. The last one: {reason or 'it was never heard of'}"
        )
