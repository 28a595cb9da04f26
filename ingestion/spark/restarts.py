"""Indexers that do not get going, or fail: what they wait for, when they are started again, and when that is in vain.

One that fails is started again later and later, and when one reason stays, not for ever.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pyspark import SparkContext

from ingestion.task.log import logger_for

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
MAX_SILENT_STARTS = 5  # starts of one indexer in a row
_NUMBERS = re.compile(r"\d+")  # of processes, ports, attempts: they make no other reason of it


@dataclass
class Restarts:
    """One indexer's failures."""

    max_in_a_row: int  # in a row for one reason, and nothing published in between; then it is over
    waits: int = 0  # failures in a row, for whatever reason
    in_a_row: int = 0  # for this reason
    _reason: str = field(default="", repr=False)

    def failed(self, reason: str, published: bool, ran_long: bool) -> None:
        """It failed. ``published``: something since its start. ``ran_long``: whatever it was, it was no bad start."""
        generic_reason = _NUMBERS.sub("#", reason)
        self.waits = 1 if published or ran_long else self.waits + 1
        self.in_a_row = 1 if published or generic_reason != self._reason else self.in_a_row + 1
        self._reason = generic_reason

    @property
    def are_over(self) -> bool:
        return self.in_a_row >= self.max_in_a_row

    @property
    def wait_s(self) -> float:
        """How long to wait before it is started again."""
        return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(self.waits - 1, 20))


def job_group(number: int) -> str:
    """The name of an indexer's Spark jobs."""
    return f"indexer-{number}"


def has_slot(spark: SparkContext, number: int) -> bool:
    """Whether Spark has found room for the indexer's job. True when it can't be told."""
    try:
        tracker = spark.statusTracker()
        job = tracker.getJobInfo(max(tracker.getJobIdsForGroup(job_group(number)), default=-1))
        stages = [tracker.getStageInfo(stage) for stage in (job.stageIds if job else ())]
    except Exception as error:  # py4j wraps what the JVM threw: the context may be ending
        logger_for(indexer=number).debug("Spark does not say whether it has room", reason=str(error))
        return True
    return any(s.numActiveTasks or s.numCompletedTasks or s.numFailedTasks for s in stages if s) or not stages


_PYTHON_ERROR = re.compile(r"Error from python worker:\n(.*?)\nPYTHONPATH was:", re.DOTALL)


def python_error(error: str) -> str:
    """The last line that a Python process which did not come up has written, by Spark's error; else nothing."""
    match = _PYTHON_ERROR.search(error)
    lines = [line.strip() for line in match[1].splitlines() if line.strip()] if match else []
    return lines[-1] if lines else ""


class SilentStarts:
    """Counts an indexer's starts of which nothing was heard: no Python, no code, or no way back to the driver."""

    def __init__(self) -> None:
        self._count = 0

    def count(self, spoke: bool) -> bool:
        """Whether it has been in vain for too often."""
        self._count = 0 if spoke else self._count + 1
        return self._count >= MAX_SILENT_STARTS

    def failure(self, reason: str) -> str:
        """What the task ends with."""
        return f"No indexer could be started in {self._count} attempts. The last one: {reason or 'no heartbeat came'}"
