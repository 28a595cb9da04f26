"""What happens to one batch between poll and acknowledgement: decode, upload, publish. One at a time."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import Future

import numpy as np
import pyarrow as pa

from ingestion.client.errors import PublishRefused
from ingestion.decode.errors import TooSlow, TooWide
from ingestion.rows import row_indexes
from ingestion.segments.batch import count_intervals, write_segments
from ingestion.sources.base import RELEASE, Batch, Ints, LeasedSource, TopicChanged
from ingestion.specs import offsets
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.task.batch_splitting import Part, split_ledger
from ingestion.task.errors import DeadlineExceeded, Fenced, PermanentRefusal, Refused, TooManyParseExceptions
from ingestion.task.indexer_context import IndexerContext
from ingestion.task.ledger import STORED, Ledger
from ingestion.task.publishing import LONGEST_S, check_segments

GIVE_UP_AT = 0.8  # of what is left of the lock
MAX_HULLS = 64  # that a heartbeat takes


class ImmediatePublisher:
    """For sources whose records are held only for so long: each batch is registered and acknowledged at once."""

    due = False

    def __init__(self, bench: IndexerContext, source: LeasedSource) -> None:
        self._bench = bench
        self._source = source

    def process(self, batch: Batch) -> None:
        """Register the batch and acknowledge it, or give it back."""
        holding = batch.offset_spans()
        partitions = [partition for partition, *_ in holding]
        self._bench.control.show(in_flight=len(batch), partitions=partitions, holding=holding[:MAX_HULLS])
        self._bench.control.count_deliveries(Counter(batch.delivery_counts.tolist()))
        try:
            verdicts = self._settle(Ledger(batch))
        except (TopicChanged, PermanentRefusal, Refused, TooManyParseExceptions, TooSlow):
            self._release(batch)
            raise
        except DeadlineExceeded:
            self._bench.log.warning("gave up a batch", records=len(batch))
            if self._bench.control.directive == "stop":  # others need not wait for the lock's end
                self._release(batch)
                return
            self._count_released(batch)
            self._source.lapse(batch)
            self._bench.breaker.wait_until_closed()
            return
        self._bench.failpoints.reach("before_ack")
        self._source.acknowledge(batch, verdicts)
        self._bench.control.show(in_flight=0, holding=[])

    def hand_off(self) -> None:
        """Nothing is left to register."""

    def catch_up(self) -> None:
        """Show what became of what was lent; nothing is in progress between batches."""
        self._bench.control.show(ack_failures=self._source.ack_failures, leases=self._source.leases)

    def end(self) -> None:
        """Finish publishes what is held; stop releases it, all but what would not be delivered again."""
        refused: PermanentRefusal | None = None
        for batch in self._source.drain():
            if refused is None and (self._bench.control.directive == "finish" or batch.last_chance):
                try:
                    self.process(batch)
                except PermanentRefusal as error:
                    refused = error
            else:
                self._release(batch)
        if refused is not None:
            raise refused

    def close(self) -> None:
        """Nothing is kept between batches."""

    def give_up(self) -> None:
        """Release what is held."""
        for batch in self._source.drain():
            self._release(batch)

    def _release(self, batch: Batch) -> None:
        self._count_released(batch)
        self._source.acknowledge(batch, np.full(len(batch), RELEASE, dtype=np.int64))

    def _count_released(self, batch: Batch) -> None:
        self._bench.control.count_released(len(batch), int((batch.delivery_counts > 1).sum()))
        self._bench.control.show(in_flight=0, holding=[])

    def _settle(self, ledger: Ledger) -> Ints:
        """Register the batch; returns its acknowledgements.

        Raises ``DeadlineExceeded``, ``TopicChanged``, ``Fenced``, ``Refused``, ``TooManyParseExceptions``.
        """
        give_up = time.monotonic() + min(ledger.batch.seconds_left * GIVE_UP_AT, LONGEST_S)
        # Asked after the poll, so that what was polled belongs to this topic id; awaited before publishing.
        same_topic = self._bench.topic.check_in_background()
        ledger.first_delivery_duplicates = self._drop_settled(ledger, give_up)
        self._settle_decoded(ledger, give_up, same_topic)
        return ledger.acknowledgements

    def _settle_decoded(self, ledger: Ledger, give_up: float, same_topic: Future[None]) -> None:
        """Decode and register, in halves where the records have too many fields for one table."""
        try:
            rows = self._bench.decoding.decode(ledger, give_up)
        except TooWide:
            for half in split_ledger(ledger):
                self._settle_decoded(half, give_up, same_topic)
            return
        self._bench.parse_exceptions.check(ledger)
        self._bench.failpoints.reach("decoded")
        self._bench.refusals.registered(Part(ledger, rows), lambda part: self._register(part, give_up, same_topic))

    def _register(self, part: Part, give_up: float, same_topic: Future[None]) -> bool:
        ledger = part.ledger
        refused = self._attempt(ledger, part.rows, give_up, same_topic)
        while refused:
            self._bench.topic.check()  # again, before any duplicate is dropped
            first = ledger.mark_duplicates(refused)
            # Past the lock another one had them rightly.
            ledger.first_delivery_duplicates += first if ledger.batch.seconds_left > 0 else 0
            refused = self._attempt(ledger, part.rows, give_up, same_topic)
        return True

    def _attempt(
        self, ledger: Ledger, rows: pa.Table | None, give_up: float, same_topic: Future[None]
    ) -> dict[int, list[offsets.Range]]:
        """Upload and publish; returns the duplicates that it was refused for, empty when it is registered."""
        segments = self._upload(ledger, rows, give_up)
        self._bench.failpoints.reach("uploaded")
        same_topic.result()
        request = ledger.request(self._bench.publisher.epoch, segments, self._bench.parse_exceptions.room_to_save)
        try:
            self._bench.publisher.publish(request, give_up)
        except PublishRefused as refused:
            if refused.refusal.code != "duplicates":
                raise Fenced(str(refused)) from None
            return refused.refusal.duplicates
        self._bench.failpoints.reach("committed")
        return {}

    def _drop_settled(self, ledger: Ledger, give_up: float) -> int:
        """Records that were delivered before may be settled: ask before decoding them."""
        redelivered = np.flatnonzero(ledger.batch.delivery_counts > 1).astype(np.int64)
        if not len(redelivered):
            return 0
        settled = self._bench.publisher.settled(ledger.all_offsets(redelivered), give_up)
        if settled:
            self._bench.topic.check()
        return ledger.mark_duplicates(settled)

    def _upload(self, ledger: Ledger, rows: pa.Table | None, give_up: float) -> list[SegmentFile]:
        if rows is None:
            return []
        stored = ledger.outcome[row_indexes(rows)] == STORED
        if not stored.all():  # some of them turned out to be duplicates
            rows = rows.filter(pa.array(stored))
        if not rows.num_rows:
            return []
        check_segments(count_intervals(rows, self._bench.assignment.spec.dataSchema))
        return self._bench.breaker.retry_until_answered(lambda: self._write(ledger, rows), give_up)

    def _write(self, ledger: Ledger, rows: pa.Table) -> list[SegmentFile]:
        spec = self._bench.assignment.spec
        return write_segments(
            rows,
            ledger.batch.partitions,
            ledger.batch.offsets,
            schema=spec.dataSchema,
            version=self._bench.assignment.version,
            storage=self._bench.storage,
            scratch=self._bench.scratch,
            ids=self._bench.ids,
            max_rows_per_segment=spec.tuningConfig.maxRowsPerSegment,
            index_spec=spec.tuningConfig.indexSpec,
        )
