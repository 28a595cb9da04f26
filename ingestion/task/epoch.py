"""One epoch of an indexer on one topic id: decode, publish, and look whether the topic is still the same.

``Settler`` and ``Gatherer`` are the two ways of it: the one registers every batch at once, the other many together.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from structlog.typing import FilteringBoundLogger

from ingestion.client import ControlPlane, Invalid, PublishRefused, Unacceptable, Unreachable
from ingestion.decode import Envelope, IsolatedDecoder, JsonDecoder, MessageWindow, joined_rows, row_indexes
from ingestion.decode.formats import Access
from ingestion.segments import DeepStorage
from ingestion.sources import Source, SourceProblem, TopicChanged
from ingestion.sources.base import Ints
from ingestion.sources.topic import Topic
from ingestion.specs import KafkaIOConfig
from ingestion.specs.protocol import AbandonRequest, Assignment, PublishRequest
from ingestion.specs.publish_limits import MOST_SEGMENTS, excess
from ingestion.task.batches import FILTERED, OUTSIDE, PENDING, STORED, TOMBSTONE, Ledger
from ingestion.task.breaker import Breaker
from ingestion.task.control import Control
from ingestion.task.errors import Fenced, Lapsed, Refused
from ingestion.task.failpoints import Failpoints
from ingestion.task.parse_exceptions import ParseExceptions
from ingestion.task.parts import Refusals
from ingestion.task.registry import ConfluentRegistry

LATE_DELIVERY = 3  # from this delivery on a record is decoded in a child process
CHILD = "ingestion.task.decoder_child"
HANG_S = 60.0  # a decoder that can't be stopped: the process ends, and late deliveries are decoded in a child
LONGEST_S = 6 * 3600.0  # older files that nobody has registered may be cleaned up as orphans


class Decoders:
    """One in this process; one in a child for records that may be what made an earlier process die."""

    def __init__(self, assignment: Assignment) -> None:
        spec = assignment.spec
        memory = spec.tuningConfig.maxBytesInMemory * 4
        marker = Failpoints(assignment.failpoints).crash_marker
        written = spec.ioConfig.inputFormat
        access = Access(ConfluentRegistry, assignment.schema_folder, assignment.address_policy)
        self.wants_envelope = written.type == "kafka"
        self.here = JsonDecoder(spec.dataSchema, memory, marker, written, access, hang_s=HANG_S)
        self.isolated = IsolatedDecoder(
            spec.dataSchema, memory, marker, input_format=written, child_module=CHILD, access=access
        )

    def close(self) -> None:
        self.here.close()
        self.isolated.close()


def window_of(assignment: Assignment, now: datetime) -> MessageWindow:
    """Which record times are taken: by the task's creation and taskDuration, of a share group by ``now``."""
    io_config = assignment.spec.ioConfig
    if isinstance(io_config, KafkaIOConfig):
        return MessageWindow.of(io_config, assignment.created_at, assignment.reads_until or now)
    return MessageWindow.of(io_config, now, now)


def check_segments(intervals: int) -> None:
    """Raise ``Unacceptable`` before files are written that no one publish may name."""
    if intervals > MOST_SEGMENTS:
        raise Unacceptable(f"It has rows of {intervals:,} segments, and one publish may have {MOST_SEGMENTS:,}.")


@dataclass(frozen=True)
class Epoch:
    """What both ways work with."""

    assignment: Assignment
    number: int
    source: Source
    epoch: int
    topic_id: str
    client: ControlPlane
    topic: Topic
    decoders: Decoders
    storage: DeepStorage
    scratch: Path
    breaker: Breaker
    control: Control
    failpoints: Failpoints
    background: ThreadPoolExecutor
    parse_exceptions: ParseExceptions
    refusals: Refusals
    log: FilteringBoundLogger

    def look_aside(self) -> Future[None]:
        """``check_topic`` beside what is done meanwhile."""
        return self.background.submit(self.check_topic)

    def check_topic(self) -> None:
        """Raises ``TopicChanged`` when the topic is another one, or Kafka does not say which."""
        try:
            now = self.topic.topic_id()
        except SourceProblem as problem:
            raise TopicChanged(str(problem)) from None
        if now != self.topic_id:
            raise TopicChanged(f"the topic's id was {self.topic_id} and is {now}")

    def decode(self, ledger: Ledger, give_up: float) -> pa.Table | None:
        """Rows of all records without an outcome; the others' outcomes are in the ledger."""
        window = window_of(self.assignment, datetime.now(UTC))
        pending = ledger.indexes(PENDING)
        late = ledger.batch.delivery_counts[pending] >= LATE_DELIVERY
        late |= ledger.batch.suspect
        tables = [
            self._decode_with(decoder, ledger, chosen, window, give_up)
            for decoder, chosen in ((self.decoders.here, pending[~late]), (self.decoders.isolated, pending[late]))
            if len(chosen)
        ]
        return joined_rows(tables) if tables else None

    def _decode_with(
        self,
        decoder: JsonDecoder | IsolatedDecoder,
        ledger: Ledger,
        chosen: Ints,
        window: MessageWindow,
        give_up: float,
    ) -> pa.Table:
        payloads, envelope = ledger.batch.payloads, self._envelope(ledger)
        whole = len(chosen) == len(payloads)
        if not whole:
            payloads = [payloads[i] for i in chosen.tolist()]
            envelope = None if envelope is None else envelope.taken(chosen.tolist())
        # Insisted on, since a format may have to ask a schema registry.
        found = self.breaker.insist(lambda: decoder.decode(payloads, window, envelope), give_up)
        decoded = found.with_tombstones(self.assignment.spec.ioConfig.tombstones)
        ledger.mark(chosen, STORED)
        ledger.mark(chosen[np.array(decoded.filtered, dtype=np.int64)], FILTERED)
        ledger.mark(chosen[np.array(decoded.outside_window, dtype=np.int64)], OUTSIDE)
        ledger.mark(chosen[np.array(decoded.tombstones, dtype=np.int64)], TOMBSTONE)
        ledger.mark_unparseable({int(chosen[i]): e for i, e in decoded.unparseable.items()}, "unparseable")
        ledger.mark_unparseable({int(chosen[i]): e for i, e in decoded.crashed.items()}, "decoder_crash")
        ledger.faults.update({int(chosen[i]): e for i, e in decoded.processed_with_error.items()})
        if whole:
            return decoded.rows
        return decoded.rows.set_column(0, "__row", pa.array(chosen[row_indexes(decoded.rows)], pa.int32()))

    def _envelope(self, ledger: Ledger) -> Envelope | None:
        """Keys, times and headers, for the one format that looks at them."""
        if not self.decoders.wants_envelope:
            return None
        batch = ledger.batch
        headers = batch.headers or [()] * len(batch)
        return Envelope(self.assignment.spec.ioConfig.topic, batch.keys, batch.timestamps_ms, headers)

    def publish(self, request: PublishRequest, give_up: float) -> None:
        """Register it. Raises ``PublishRefused``, ``Unacceptable``, ``Refused``, and ``Lapsed`` when it has not
        committed and never will."""
        beyond = excess(request)
        if beyond:
            raise Unacceptable(beyond)
        try:
            answer = self.breaker.insist(lambda: self.client.publish(self.number, request), give_up)
            self.parse_exceptions.know(answer.parse_exceptions)
        except Unacceptable:
            raise
        except Invalid as error:
            raise Refused(f"A publish was refused: {error}") from error
        except Lapsed:
            if not self._committed_after_all(request):
                raise
            self.breaker.mend()
        self.control.count_publish()

    def _committed_after_all(self, request: PublishRequest) -> bool:
        """Learn whether a publish without an answer has committed, and make sure that it never will if not."""
        question = AbandonRequest(epoch=self.epoch, publish_id=request.publish_id)
        while self.control.directive != "stop":
            try:
                return self.client.abandon(self.number, question).committed
            except Unreachable:
                self.control.wait_for_store(time.monotonic(), 1.0)
            except PublishRefused as refused:
                raise Fenced(str(refused)) from None
        return False
