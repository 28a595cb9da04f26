"""The one loop: poll → decode → index → upload → publish → acknowledge. Never in another order.

What is held is acknowledged only after the control plane has registered it; a crash at any place costs a delivery,
nothing else. While the control plane or the deep storage refuses, nothing is polled (the circuit breaker).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ingestion.client import ControlPlane, TaskOver, Unreachable
from ingestion.decode import TooSlow
from ingestion.segments import DeepStorage
from ingestion.sources import Batch, Source, SourceProblem, TopicChanged, TopicIdentity
from ingestion.sources.base import RELEASE
from ingestion.sources.topic import TopicWatch
from ingestion.specs.protocol import Assignment, StartRequest
from ingestion.task.batches import Ledger
from ingestion.task.breaker import Breaker
from ingestion.task.control import Control
from ingestion.task.errors import Lapsed, StorageRefused, TooManyParseExceptions
from ingestion.task.failpoints import Failpoints
from ingestion.task.log import logger_for
from ingestion.task.parse_exceptions import ParseExceptions
from ingestion.task.settling import Decoders, Settler

TAKE_S = 0.5
TOPIC_WAIT_S = 2.0


@dataclass(frozen=True)
class Surroundings:
    """What an indexer works with."""

    client: ControlPlane
    topic: TopicWatch
    make_source: Callable[[], Source]
    storage: DeepStorage
    scratch: Path
    host: str


class Indexer:
    """One indexer's life under one assignment. ``run`` returns when it was told to end or its source is exhausted."""

    def __init__(self, assignment: Assignment, control: Control, surroundings: Surroundings) -> None:
        self._assignment = assignment
        self._control = control
        self._with = surroundings
        self._number = control.status.number
        self._failpoints = Failpoints(assignment.failpoints)
        self._log = logger_for(
            datasource=assignment.spec.dataSchema.dataSource, task=assignment.task_id, indexer=self._number
        )
        self._parse_exceptions = ParseExceptions(assignment.spec.tuningConfig, self._log)

    def run(self) -> None:
        """Index until told to end.

        Raises ``Fenced``, ``TaskOver``, ``SourceProblem``; for good ``UnusableSchema``, ``TooSlow``,
        ``TooManyParseExceptions`` and ``StorageRefused``.
        """
        decoders = Decoders(self._assignment)
        try:
            with ThreadPoolExecutor(1, "topic-watch") as background:
                while self._control.directive == "continue":
                    try:
                        self._run_on_topic(decoders, background)
                        return
                    except TopicChanged as changed:
                        self._log.warning("starting anew", reason=str(changed))
        finally:
            decoders.close()
            self._control.show(state="stopped", in_flight=0)

    def _run_on_topic(self, decoders: Decoders, background: ThreadPoolExecutor) -> None:
        """One epoch on one topic id."""
        identity = self._await_topic()
        if identity is None:
            return
        epoch = self._start(identity)
        source = self._with.make_source()
        settler = Settler(
            assignment=self._assignment,
            number=self._number,
            epoch=epoch,
            topic_id=identity.topic_id,
            client=self._with.client,
            topic=self._with.topic,
            decoders=decoders,
            storage=self._with.storage,
            scratch=self._with.scratch,
            breaker=Breaker(self._control, source, self._log),
            control=self._control,
            failpoints=self._failpoints,
            background=background,
            parse_exceptions=self._parse_exceptions,
        )
        source.open()
        try:
            self._loop(source, settler)
            self._end(source, settler)
        finally:
            source.close()
            self._control.show(in_flight=0)

    def _await_topic(self) -> TopicIdentity | None:
        while self._control.directive == "continue":
            try:
                identity = self._with.topic.identity()
                if identity is not None:
                    return identity
                message = f"Topic {self._assignment.spec.ioConfig.topic!r} does not exist (yet)."
            except SourceProblem as problem:
                message = str(problem)
            self._control.show(state="paused", message=message)
            self._control.pause(TOPIC_WAIT_S)
        return None

    def _start(self, identity: TopicIdentity) -> int:
        """Take a new epoch; waits for the control plane."""
        before = self._control.status
        request = StartRequest(
            cluster_id=identity.cluster_id,
            topic_id=identity.topic_id,
            host=self._with.host,
            pid=before.pid,
            previous_epoch=before.epoch,
            released=before.unpublished.released,
            redelivered=before.unpublished.redelivered,
        )
        while True:
            try:
                started = self._with.client.start(self._number, request)
                break
            except Unreachable as error:
                if self._control.directive != "continue":
                    raise TaskOver("told to end before it began") from error
                self._control.show(state="paused", message=f"The control plane does not answer: {error}")
                self._control.pause(1.0)
        self._control.new_epoch(started.epoch)
        self._parse_exceptions.know(started.parse_exceptions)
        self._log.info("started", epoch=started.epoch, topic_id=identity.topic_id)
        return started.epoch

    def _loop(self, source: Source, settler: Settler) -> None:
        try:
            self._read(source, settler)
        except StorageRefused:
            for batch in source.drain():
                self._release(source, batch)
            raise

    def _read(self, source: Source, settler: Settler) -> None:
        while self._control.directive == "continue":
            batch = source.take(TAKE_S)
            self._control.show(message=source.problem, ack_failures=source.ack_failures)
            if batch is not None:
                self._index(source, settler, batch)
            elif source.exhausted():
                return
            else:
                self._look_at_topic(settler)

    def _look_at_topic(self, settler: Settler) -> None:
        """Notice between batches that the topic was made again; while Kafka is away there is nothing to notice."""
        try:
            now = self._with.topic.topic_id()
        except SourceProblem as problem:
            self._control.show(message=str(problem))
            return
        if now != settler.topic_id:
            raise TopicChanged(f"the topic's id was {settler.topic_id} and is {now}")

    def _end(self, source: Source, settler: Settler) -> None:
        """Finish publishes what is held; stop releases it, all but what would not be delivered again."""
        self._control.show(state="finishing")
        limit = self._assignment.spec.ioConfig.groupConfig.deliveryCountLimit
        refused: StorageRefused | None = None
        for batch in source.drain():
            last_delivery = bool((batch.delivery_counts >= limit).any())
            if refused is None and (self._control.directive == "finish" or last_delivery):
                try:
                    self._index(source, settler, batch)
                except StorageRefused as error:
                    refused = error
            else:
                self._release(source, batch)
        if refused is not None:
            raise refused

    def _index(self, source: Source, settler: Settler, batch: Batch) -> None:
        self._control.show(in_flight=len(batch), partitions=sorted(set(batch.partitions.tolist())))
        self._control.count_deliveries(Counter(batch.delivery_counts.tolist()))
        try:
            verdicts = settler.settle(Ledger(batch))
        except (TopicChanged, StorageRefused, TooManyParseExceptions, TooSlow):
            self._release(source, batch)
            raise
        except Lapsed:
            self._log.warning("gave up a batch", records=len(batch))
            self._count_released(batch)
            source.lapse(batch)
            settler.breaker.wait_until_mended()
            return
        self._failpoints.reach("before_ack")
        source.acknowledge(batch, verdicts)
        self._control.show(in_flight=0)

    def _release(self, source: Source, batch: Batch) -> None:
        self._count_released(batch)
        source.acknowledge(batch, np.full(len(batch), RELEASE, dtype=np.int64))

    def _count_released(self, batch: Batch) -> None:
        self._control.count_released(len(batch), int((batch.delivery_counts > 1).sum()))
        self._control.show(in_flight=0)
