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
from ingestion.batch.kept import Kept, Room
from ingestion.batch.reading import Chunk, Place, Reader, Told
from ingestion.batch.shuffle_partitions import ShufflePartitions
from ingestion.batch.splits import Split
from ingestion.batch.writing import Written, write
from ingestion.client.batch import BatchControlPlane
from ingestion.client.errors import Invalid
from ingestion.client.patience import until_answered
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
class Order:
    """All that a Spark task needs to write; it travels in the task's closure."""

    assignment: str  # JSON of BatchAssignment
    url: str
    token: str


@dataclass(frozen=True)
class Failed:
    """Why a Spark task would come to the same end each time."""

    error: str
    told: Told | None = None  # what it had read


@dataclass(frozen=True)
class Read:
    """What a split holds: all that the driver hears of it."""

    told: Told
    rows: Counter[Place]
    held: tuple[pa.Schema, ...]  # dimensions that chunks have, in the order in which they came


Numbered = tuple[int, tuple[int, Chunk] | Read | Failed]  # by lane; a chunk with its split's number


def read(assignment: str, room: Room, lanes: ShufflePartitions) -> Callable[[Iterable[Split]], Iterator[Numbered]]:
    """For ``mapPartitions``: chunks by lane, and after those of a split what it holds.

    ``assignment``: JSON of ``BatchAssignment``; ``room``: for what of a split goes into quarantine.
    """

    def of_splits(splits: Iterable[Split]) -> Iterator[Numbered]:
        configure(host=socket.gethostname())
        told = BatchAssignment.model_validate_json(assignment)
        context = TaskContext.get()
        again = context is not None and context.attemptNumber() > 0
        storage = open_deep_storage(told.deep_storage)
        reader = Reader(told.spec, Inputs(told.reachable), storage, room, careful=again)
        try:
            for split in splits:
                yield from _read(reader, split, lanes, Failpoints(told.failpoints))
        finally:
            reader.close()

    return of_splits


def _read(reader: Reader, split: Split, lanes: ShufflePartitions, failpoints: Failpoints) -> Iterator[Numbered]:
    told = Told(split.number)
    rows: Counter[Place] = Counter()
    held: dict[pa.Schema, None] = {}
    try:
        for chunk in reader.chunks(split, told):
            rows[chunk.place] += chunk.rows
            held[chunk.held] = None
            yield lanes.lane_of(chunk.place, split.number, chunk.number), (split.number, chunk)
        failpoints.reach("read")
    except IngestionError as error:
        if not error.permanent:
            _pause()
            raise
        yield lanes.told, Failed(str(error), replace(told, kept=Kept()))
        return
    yield lanes.told, Read(told, rows, tuple(held))


def written(order: Order) -> Callable[[Iterable[tuple[int, Chunk]]], Iterator[Written | Failed]]:
    """For ``mapPartitions``: what the chunks have become that one Spark task writes."""

    def of_bin(chunks: Iterable[tuple[int, Chunk]]) -> Iterator[Written | Failed]:
        configure(host=socket.gethostname())
        told = BatchAssignment.model_validate_json(order.assignment)
        storage, ids = open_deep_storage(told.deep_storage), _ids_of(told.task_id, order.url, order.token)
        try:
            with scratch_folder() as scratch:
                done = write((chunk for _, chunk in chunks), told.spec, told.version, storage, scratch, ids)
        except Invalid as refused:  # the same would be answered the same way
            yield Failed(f"The control plane does not take its columns: {refused}")
            return
        except IngestionError as error:
            if not error.permanent:
                _pause()
                raise
            yield Failed(str(error))
            return
        Failpoints(told.failpoints).reach("bin_written")
        yield done

    return of_bin


@lru_cache(maxsize=1)  # a Python process of Spark's writes many bins of a task
def _ids_of(task_id: str, url: str, token: str) -> ColumnIds:
    client = BatchControlPlane(url, task_id, token)
    return ColumnIds(lambda request: until_answered(lambda: client.columns(request), _LONGEST_WAIT_S))


def _pause() -> None:
    """1, 2, 4, … seconds, by how often Spark has tried."""
    context = TaskContext.get()
    tried = context.attemptNumber() if context is not None else 0
    time.sleep(min(_LONGEST_PAUSE_S, 2.0**tried))
