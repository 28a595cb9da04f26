"""What Spark tasks of a batch task do: read a split, write what came of it. What they need travels in their closures.

A failure that may pass is raised, and Spark does the task again, each time a little later; one that never passes is
returned, and ends the job.
"""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
from pyspark import TaskContext

from ingestion.batch.inputs import Inputs
from ingestion.batch.reading import Chunk, IntervalMs, Reader, SplitReport
from ingestion.batch.shuffle_partitions import ShufflePartitions
from ingestion.batch.split_quarantine import QuarantineLimits, SplitQuarantine
from ingestion.batch.splits import Split
from ingestion.batch.writing import BinOutput, write_bin
from ingestion.client.batch import BatchControlPlane
from ingestion.client.errors import Invalid
from ingestion.client.retry import until_answered
from ingestion.errors import IngestionError
from ingestion.failpoints import Failpoints
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.specs.messages.batch_protocol import BatchAssignment
from ingestion.task.log import configure
from ingestion.task.scratch import scratch_folder

_LONGEST_PAUSE_S = 30.0
_LONGEST_WAIT_S = 600.0  # for the ids of columns


@dataclass(frozen=True)
class WriteOrder:
    """All that a Spark task needs to write; it travels in the task's closure."""

    assignment: str  # JSON of BatchAssignment
    url: str
    token: str


@dataclass(frozen=True)
class TaskFailure:
    """Why a Spark task would come to the same end each time."""

    error: str
    report: SplitReport | None = None  # what it had read


@dataclass(frozen=True)
class SplitSummary:
    """What a split holds: all that the driver hears of it."""

    report: SplitReport
    rows: Counter[IntervalMs]
    held: tuple[pa.Schema, ...]  # dimensions that chunks have, in the order in which they came


LaneItem = tuple[int, tuple[int, Chunk] | SplitSummary | TaskFailure]  # by lane; a chunk with its split's number


def read_splits(
    assignment: str, room: QuarantineLimits, lanes: ShufflePartitions
) -> Callable[[Iterable[Split]], Iterator[LaneItem]]:
    """For ``mapPartitions``: chunks by lane, and after those of a split what it holds.

    ``assignment``: JSON of ``BatchAssignment``; ``room``: for what of a split goes into quarantine.
    """

    def read_them(splits: Iterable[Split]) -> Iterator[LaneItem]:
        configure(host=socket.gethostname())
        batch_assignment = BatchAssignment.model_validate_json(assignment)
        context = TaskContext.get()
        is_retry = context is not None and context.attemptNumber() > 0
        storage = open_deep_storage(batch_assignment.deep_storage)
        reader = Reader(batch_assignment.spec, Inputs(batch_assignment.reachable), storage, room, careful=is_retry)
        try:
            for split in splits:
                yield from _read_split(reader, split, lanes, Failpoints(batch_assignment.failpoints))
        finally:
            reader.close()

    return read_them


def _read_split(reader: Reader, split: Split, lanes: ShufflePartitions, failpoints: Failpoints) -> Iterator[LaneItem]:
    report = SplitReport(split.number)
    rows: Counter[IntervalMs] = Counter()
    schemas: dict[pa.Schema, None] = {}
    try:
        for chunk in reader.chunks(split, report):
            rows[chunk.place] += chunk.rows
            schemas[chunk.held] = None
            yield lanes.lane_of(chunk.place, split.number, chunk.number), (split.number, chunk)
        failpoints.reach("read")
    except IngestionError as error:
        if not error.permanent:
            _back_off()
            raise
        yield lanes.report_partition, TaskFailure(str(error), replace(report, quarantine=SplitQuarantine()))
        return
    yield lanes.report_partition, SplitSummary(report, rows, tuple(schemas))


def write_bins(order: WriteOrder) -> Callable[[Iterable[tuple[int, Chunk]]], Iterator[BinOutput | TaskFailure]]:
    """For ``mapPartitions``: what the chunks have become that one Spark task writes."""

    def write_chunks(chunks: Iterable[tuple[int, Chunk]]) -> Iterator[BinOutput | TaskFailure]:
        configure(host=socket.gethostname())
        assignment = BatchAssignment.model_validate_json(order.assignment)
        storage, ids = (
            open_deep_storage(assignment.deep_storage),
            _column_ids(assignment.task_id, order.url, order.token),
        )
        try:
            with scratch_folder() as scratch:
                done = write_bin(
                    (chunk for _, chunk in chunks), assignment.spec, assignment.version, storage, scratch, ids
                )
        except Invalid as refused:  # the same would be answered the same way
            yield TaskFailure(f"The control plane refuses its columns: {refused}")
            return
        except IngestionError as error:
            if not error.permanent:
                _back_off()
                raise
            yield TaskFailure(str(error))
            return
        Failpoints(assignment.failpoints).reach("bin_written")
        yield done

    return write_chunks


@lru_cache(maxsize=1)  # a Python process of Spark's writes many bins of a task
def _column_ids(task_id: str, url: str, token: str) -> ColumnIds:
    client = BatchControlPlane(url, task_id, token)
    return ColumnIds(lambda request: until_answered(lambda: client.columns(request), _LONGEST_WAIT_S))


def _back_off() -> None:
    """1, 2, 4, … seconds, by how often Spark has tried."""
    context = TaskContext.get()
    tried = context.attemptNumber() if context is not None else 0
    time.sleep(min(_LONGEST_PAUSE_S, 2.0**tried))
