"""What runs inside a Spark task: one indexer, for as long as it is told to."""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ingestion.client import HttpControlPlane, TaskOver
from ingestion.decode import TooSlow, UnusableSchema
from ingestion.segments import DeepStorage, DeepStorageError, open_deep_storage
from ingestion.sources.base import OffsetsUnavailable
from ingestion.sources.topic import TopicWatch
from ingestion.spark.board import Poster
from ingestion.spark.sources import source_maker
from ingestion.specs.protocol import Assignment
from ingestion.task.control import Control
from ingestion.task.errors import Fenced, Refused, StorageRefused, TooManyParseExceptions
from ingestion.task.indexer import Indexer, Surroundings
from ingestion.task.log import configure, logger_for
from ingestion.task.scratch import scratch_folder

STORAGE_REFUSED = StorageRefused.__name__
_FOR_GOOD = (OffsetsUnavailable, Refused, StorageRefused, TooManyParseExceptions, TooSlow, UnusableSchema)
FOR_GOOD = frozenset(e.__name__ for e in _FOR_GOOD)  # trying again would end the same way


@dataclass(frozen=True)
class Orders:
    """All that a worker needs; it travels in the task's closure, never in Spark's configuration."""

    number: int
    assignment: str  # JSON of Assignment
    url: str
    token: str
    board: tuple[str, int]
    authkey: bytes
    elsewhere: bool  # where what it writes to standard error is not in the driver's log


def work(orders: Orders) -> Callable[[Iterable[int]], Iterable[tuple[str, str]]]:
    """The function for ``mapPartitions``: yields how the indexer ended, and why, when it ends."""

    def run(_: Iterable[int]) -> Iterator[tuple[str, str]]:
        yield _run(orders)

    return run


# A poll makes thousands of objects that die together: looking for cycles among them every 700 is in vain.
_COLLECT_AFTER = 50_000
_SWITCH_S = 0.001  # a consumer whose commit is answered waits no longer than this for the interpreter


def _run(orders: Orders) -> tuple[str, str]:
    configure(host=socket.gethostname())
    gc.set_threshold(_COLLECT_AFTER)
    sys.setswitchinterval(_SWITCH_S)
    assignment = Assignment.model_validate_json(orders.assignment)
    control = Control(orders.number, os.getpid())
    poster = Poster(control, orders.board, orders.authkey, with_lines=orders.elsewhere)
    poster.start()
    client = HttpControlPlane(orders.url, assignment.task_id, orders.token)
    log = logger_for(task=assignment.task_id, indexer=orders.number)
    try:
        with scratch_folder() as scratch:
            Indexer(assignment, control, _surroundings(assignment, client, control, scratch)).run()
        return "ended", ""
    except (Fenced, TaskOver, *_FOR_GOOD) as over:
        log.info("ended", reason=str(over))
        return type(over).__name__, str(over)
    finally:
        poster.finish()
        client.close()


def _surroundings(assignment: Assignment, client: HttpControlPlane, control: Control, scratch: Path) -> Surroundings:
    watch = TopicWatch(assignment.consumer_properties, assignment.spec.ioConfig.topic, assignment.address_policy)
    return Surroundings(
        client=client,
        topic=watch,
        make_source=source_maker(assignment, control.status.number, watch),
        storage=_storage(assignment.deep_storage),
        scratch=scratch,
        host=socket.gethostname(),
    )


def _storage(location: str) -> DeepStorage:
    try:
        return open_deep_storage(location)
    except DeepStorageError as error:
        if error.permanent:
            raise StorageRefused(str(error)) from None
        raise
