"""The one loop: poll → decode → index → upload → publish → acknowledge. Never in another order.

Sources with stored offsets let many batches gather until they are handed off; a share group's are handed off at once.

What is held is acknowledged only after the control plane has registered it; a crash at any place costs a delivery,
nothing else. While the control plane or the deep storage refuses, nothing is polled (the circuit breaker).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ingestion.client.base import ControlPlane
from ingestion.client.errors import PublishRefused, Unreachable
from ingestion.failpoints import Failpoints
from ingestion.segments.deep_storage import DeepStorage
from ingestion.sources.base import LeasedSource, ReadRefused, Source, SourceProblem, StoredOffsetSource, TopicChanged
from ingestion.sources.stored_offsets import Claim
from ingestion.sources.topic import Topic, TopicIdentity
from ingestion.specs.counters import UNPUBLISHED
from ingestion.specs.messages.protocol import Assignment, StartRequest
from ingestion.task.batch_splitting import Refusals
from ingestion.task.breaker import Breaker
from ingestion.task.buffering_publisher import BufferingPublisher
from ingestion.task.claims import Claims
from ingestion.task.control import Control
from ingestion.task.decoding import Decoders, Decoding
from ingestion.task.epoch import Epoch, TopicGuard
from ingestion.task.errors import PermanentRefusal, Refused, StoreWentBack
from ingestion.task.immediate_publisher import ImmediatePublisher
from ingestion.task.indexer_context import IndexerContext
from ingestion.task.log import OngoingProblem, logger_for
from ingestion.task.parse_exceptions import ParseExceptions
from ingestion.task.publishing import Publisher, column_ids

TAKE_S = 0.5
PREDECESSOR_WAIT_S = 0.5
TOPIC_WAIT_S = 2.0


@dataclass(frozen=True)
class IndexerDependencies:
    """What an indexer works with."""

    client: ControlPlane
    topic: Topic
    make_source: Callable[[Claim], LeasedSource | StoredOffsetSource]
    storage: DeepStorage
    scratch: Path
    host: str


class Indexer:
    """One indexer's life under one assignment. ``run`` returns when it was told to end or its source is exhausted."""

    def __init__(self, assignment: Assignment, control: Control, surroundings: IndexerDependencies) -> None:
        self._assignment = assignment
        self._control = control
        self._with = surroundings
        self._number = control.status.number
        self._failpoints = Failpoints(assignment.failpoints)
        self._log = logger_for(
            datasource=assignment.spec.dataSchema.dataSource, task=assignment.task_id, indexer=self._number
        )
        self._parse_exceptions = ParseExceptions(assignment.spec.tuningConfig, self._log)
        self._kafka_problem = OngoingProblem(self._log, "Kafka does not answer")
        self._control_plane_problem = OngoingProblem(self._log, "the control plane does not answer")
        self._client_problems = OngoingProblem(self._log, "Kafka complains")
        self._refusals = Refusals(assignment.spec.dataSchema, self._log)
        self._ids = column_ids(surroundings.client)
        self._stuck = ""  # why the last source did not close

    def run(self) -> None:
        """Index until told to end.

        Raises ``Fenced``, ``TaskOver``, ``SourceProblem``; for good ``UnusableSchema``, ``TooSlow``,
        ``TooManyParseExceptions``, ``Refused`` and ``PermanentRefusal``.
        """
        decoders = Decoders(self._assignment)
        try:
            with ThreadPoolExecutor(1, "topic-watch") as background:
                while self._control.directive == "continue":
                    try:
                        self._run_on_topic(decoders, background)
                        return
                    except (TopicChanged, StoreWentBack) as changed:
                        self._log.warning("starting again", reason=str(changed))
                        if self._stuck:  # it may still be dealt partitions: it goes with this process alone
                            raise SourceProblem(self._stuck) from None
        finally:
            decoders.close()
            self._control.show(state="stopped", in_flight=0)

    def _run_on_topic(self, decoders: Decoders, background: ThreadPoolExecutor) -> None:
        """One epoch on one topic id."""
        identity = self._await_topic()
        epoch = None if identity is None else self._start(identity)
        if epoch is None:
            return
        source = self._with.make_source(Claims(self._with.client, self._control, epoch))
        guard = TopicGuard(self._with.topic, epoch, background)
        work = _publisher_for(source, self._bench(source, epoch, guard, decoders))
        try:
            source.open()
            self._loop(source, work, guard)
            self._control.show(state="finishing")
            work.end()
        finally:
            self._leave(source)
            work.close()
            self._control.show(in_flight=0)

    def _bench(self, source: Source, epoch: Epoch, guard: TopicGuard, decoders: Decoders) -> IndexerContext:
        breaker = Breaker(self._control, source, self._log)
        return IndexerContext(
            assignment=self._assignment,
            decoding=Decoding(self._assignment, decoders, breaker),
            publisher=Publisher(self._with.client, epoch, breaker, self._control, self._parse_exceptions),
            topic=guard,
            breaker=breaker,
            storage=self._with.storage,
            ids=self._ids,
            scratch=self._with.scratch,
            control=self._control,
            failpoints=self._failpoints,
            parse_exceptions=self._parse_exceptions,
            refusals=self._refusals,
            log=self._log,
        )

    def _leave(self, source: Source) -> None:
        """One that does not close keeps nobody from ending: what it held is published, or read by another."""
        try:
            source.close()
        except SourceProblem as problem:
            self._stuck = str(problem)
            self._log.warning("the source was left as it is", reason=self._stuck)

    def _await_topic(self) -> TopicIdentity | None:
        """The topic, once it is there and may be read; None when told to end meanwhile."""
        while self._control.directive == "continue":
            state: Literal["paused", "refused"] = "paused"
            try:
                identity = self._with.topic.identity()
                self._kafka_problem.report_recovery()
                if identity is not None:
                    return identity
                message = f"Topic {self._assignment.spec.ioConfig.topic!r} does not exist (yet)."
            except ReadRefused as refused:
                state, message = "refused", str(refused)
                self._client_problems.report_failure(message)
            except SourceProblem as problem:
                if problem.permanent:
                    raise
                message = str(problem)
                self._kafka_problem.report_failure(message)
            self._control.show(state=state, message=message)
            self._control.pause(TOPIC_WAIT_S)
        return None

    def _start(self, identity: TopicIdentity) -> Epoch | None:
        """Take a new epoch; waits for the control plane. None when told to end meanwhile."""
        before = self._control.status
        request = StartRequest(
            cluster_id=identity.cluster_id,
            topic_id=identity.topic_id,
            host=self._with.host,
            pid=before.pid,
            previous_epoch=before.epoch,
            counts_publishes=True,
            **{name: getattr(before.unpublished, name) for name in UNPUBLISHED},
        )
        while self._control.directive == "continue":
            try:
                started = self._with.client.start(self._number, request)
            except Unreachable as error:
                self._control_plane_problem.report_failure(str(error))
                self._control.show(state="paused", message=f"The control plane does not answer: {error}")
                self._control.pause(1.0)
            except PublishRefused as refused:
                self._control.show(state="waiting", message=str(refused))
                self._control.pause(PREDECESSOR_WAIT_S)
            else:
                self._control_plane_problem.report_recovery()
                self._control.new_epoch(started.epoch, started.publishes)
                self._parse_exceptions.set_totals(started.parse_exceptions)
                self._log.info("started", epoch=started.epoch, topic_id=identity.topic_id)
                return Epoch(self._number, started.epoch, identity.topic_id)
        return None

    def _loop(self, source: Source, work: ImmediatePublisher | BufferingPublisher, guard: TopicGuard) -> None:
        try:
            self._read(source, work, guard)
        except (PermanentRefusal, Refused, StoreWentBack):
            work.give_up()
            raise

    def _read(self, source: Source, work: ImmediatePublisher | BufferingPublisher, guard: TopicGuard) -> None:
        while self._control.directive == "continue":
            if self._control.has_lost_publishes:
                raise StoreWentBack("the metadata store has lost publishes that it had answered")
            batch = source.poll(TAKE_S)
            self._report_problem(source.problem, has_records=batch is not None)
            self._control.show_reading(source.problem, source.refused)
            work.catch_up()
            if batch is not None:
                work.process(batch)
            elif source.exhausted():
                work.hand_off()
                if source.exhausted():  # and still is, once that is published
                    return
            else:
                self._notice_another_topic(guard)
            if work.due:
                work.hand_off()

    def _report_problem(self, problem: str, has_records: bool) -> None:
        """Only records show that it is over: a client may be silent for long while it tries again."""
        if problem:
            self._client_problems.report_failure(problem)
        elif has_records:
            self._client_problems.report_recovery()

    def _notice_another_topic(self, guard: TopicGuard) -> None:
        """Notice between batches that the topic was made again; while Kafka is away there is nothing to notice."""
        try:
            guard.check_now()
        except SourceProblem as problem:
            self._kafka_problem.report_failure(str(problem))
            self._control.show(message=str(problem))
        else:
            self._kafka_problem.report_recovery()


def _publisher_for(
    source: LeasedSource | StoredOffsetSource, bench: IndexerContext
) -> ImmediatePublisher | BufferingPublisher:
    return (
        BufferingPublisher(bench, source)
        if isinstance(source, StoredOffsetSource)
        else ImmediatePublisher(bench, source)
    )
