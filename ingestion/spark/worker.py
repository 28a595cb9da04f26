"""What runs inside a Spark task: one indexer, for as long as it is told to."""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ingestion.client.http import HttpControlPlane
from ingestion.errors import IngestionError
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.sources.topic import PinnedTopic, ReadableTopic, TopicWatch
from ingestion.spark.board import Poster
from ingestion.spark.sources import source_factory
from ingestion.specs.counters import Counters
from ingestion.specs.messages.protocol import Assignment, Directive, UnreadRecord
from ingestion.task.control import Control
from ingestion.task.errors import TooManyParseExceptions
from ingestion.task.indexer import Indexer, IndexerDependencies
from ingestion.task.log import configure, logger_for
from ingestion.task.scratch import scratch_folder


@dataclass(frozen=True)
class WorkerConfig:
    """All that a worker needs; it travels in the task's closure, never in Spark's configuration."""

    number: int
    assignment: str  # JSON of Assignment
    url: str
    token: str
    board: tuple[str, int]
    authkey: bytes
    is_remote: bool  # where what it writes to standard error is not in the driver's log
    niceness: int = 0  # the driver's, which its indexers on other hosts do not inherit


@dataclass(frozen=True)
class IndexerEnd:
    """How an indexer came to its end: by itself, as it was told, or of an error, whose data these are."""

    kind: str = "ended"
    reason: str = ""
    permanent: bool = False
    is_failure: bool = False
    directive_for_others: Directive = "finish"
    given_up: Counters = field(default_factory=Counters)
    unread: tuple[UnreadRecord, ...] = ()

    @classmethod
    def of(cls, error: IngestionError) -> IndexerEnd:
        ended = cls(type(error).__name__, str(error), error.permanent, error.is_failure, error.directive_for_others)
        if isinstance(error, TooManyParseExceptions):
            return replace(ended, given_up=error.given_up, unread=error.unread)
        return ended

    @classmethod
    def of_crash(cls, reason: str) -> IndexerEnd:
        """Its process died, or threw what nobody foresaw."""
        return cls("failed", reason, is_failure=True)

    @property
    def may_pass(self) -> bool:
        """Whether it failed, and may not if it is started again."""
        return self.is_failure and not self.permanent


def indexer_runner(orders: WorkerConfig) -> Callable[[Iterable[int]], Iterable[IndexerEnd]]:
    """The function for ``mapPartitions``: yields how the indexer ended, when it ends.

    A failure that may pass is raised instead, so that Spark's log has its traceback.
    """

    def run(_: Iterable[int]) -> Iterator[IndexerEnd]:
        yield run_indexer(orders)

    return run


# A poll makes thousands of objects that die together: looking for cycles among them every 700 is in vain.
_GC_THRESHOLD = 50_000
_SWITCH_INTERVAL_S = 0.001  # a consumer whose commit is answered waits no longer than this for the interpreter


def run_indexer(orders: WorkerConfig) -> IndexerEnd:
    """Run one indexer to its end. Raises what may pass, so that who logs it has its traceback."""
    configure(host=socket.gethostname())
    gc.set_threshold(_GC_THRESHOLD)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    assignment = Assignment.model_validate_json(orders.assignment)
    os.setpriority(os.PRIO_PROCESS, 0, max(orders.niceness, os.getpriority(os.PRIO_PROCESS, 0)))
    control = Control(orders.number, os.getpid())
    poster = Poster(control, orders.board, orders.authkey, with_lines=orders.is_remote)
    poster.start()
    client = HttpControlPlane(orders.url, assignment.task_id, orders.token)
    log = logger_for(task=assignment.task_id, indexer=orders.number)
    try:
        with scratch_folder() as scratch:
            Indexer(assignment, control, _dependencies(assignment, client, control, scratch)).run()
        return IndexerEnd()
    except IngestionError as error:
        ended = IndexerEnd.of(error)
        if ended.may_pass:
            raise
        log.info("ended", reason=ended.reason)
        return ended
    finally:
        poster.finish()
        client.close()


def _dependencies(
    assignment: Assignment, client: HttpControlPlane, control: Control, scratch: Path
) -> IndexerDependencies:
    io_config = assignment.spec.ioConfig
    watch = TopicWatch(assignment.consumer_properties, io_config.topic, assignment.address_policy)
    group = None if io_config.group is None or assignment.bounded else io_config.group or assignment.group
    readable = ReadableTopic(watch, group)
    topic_id = assignment.ranges[0].topic_id if assignment.bounded and assignment.ranges else ""
    return IndexerDependencies(
        client=client,
        topic=PinnedTopic(readable, io_config.topic, topic_id) if topic_id else readable,
        make_source=source_factory(assignment, control.status.number, watch),
        storage=open_deep_storage(assignment.deep_storage),
        scratch=scratch,
        host=socket.gethostname(),
    )
