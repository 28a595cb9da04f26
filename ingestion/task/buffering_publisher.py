"""Batches of a source with stored offsets gather until handoff: then their rows become segments in one publish.

Replicas gather the same records each by itself. Who publishes first has published for all: the others drop what they
hold of it and go on from the stored offsets, ready to publish the next part if nobody else does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from ingestion.client.errors import PublishRefused, Unacceptable
from ingestion.decode.errors import TooSlow, TooWide
from ingestion.segments.index import RowIndex
from ingestion.sources.base import Batch, StoredOffsetSource, TopicChanged
from ingestion.task.batch_splitting import Part, split_ledger
from ingestion.task.errors import DeadlineExceeded, Fenced, PermanentRefusal, Refused, TooManyParseExceptions
from ingestion.task.gathered_records import Gathered
from ingestion.task.handoff_pace import Backlog, Pace
from ingestion.task.indexer_context import IndexerContext
from ingestion.task.indexes import Indexes
from ingestion.task.ledger import Ledger
from ingestion.task.publishing import LONGEST_S, check_segments

KEPT_BYTES = 8 * 1024 * 1024  # of poison and faulty records that one publish carries, about
HEAD_START_S = 5.0  # that the replica which published last has over the others, so that they upload nothing in vain
TURN_CHECK_S = 0.5  # how often those look meanwhile


@dataclass
class Caution:
    """Up to where each partition is to be published batch by batch, since all of them together were refused."""

    until: dict[int, int] = field(default_factory=dict)

    def begin(self, ends: Mapping[int, int]) -> None:
        """These were refused, each up to this offset."""
        self.until.update({p: max(end, self.until.get(p, 0)) for p, end in ends.items()})

    def is_due(self, batch: Batch) -> bool:
        """Whether the batch holds some of it."""
        return any(advance.start < self.until.get(p, 0) for p, advance in batch.progress.items())

    def passed(self, batch: Batch) -> None:
        """All of the batch is published."""
        for partition, advance in batch.progress.items():
            if advance.end >= self.until.get(partition, 0):
                self.until.pop(partition, None)


class BufferingPublisher:
    """Nobody waits for these records: what is given up is read again from the stored offset, by whoever reads then."""

    def __init__(self, bench: IndexerContext, source: StoredOffsetSource) -> None:
        self._bench = bench
        self._source = source
        self._gathered = Gathered()
        by_partition = bench.assignment.spec.ioConfig.traits.in_consumer_group
        self._indexes = Indexes(bench.assignment, bench.scratch, by_partition=by_partition)
        self._is_superseded = False  # another replica has published what this one held, and is expected to do so again
        self._given_up = 0  # how often what had gathered was
        self._pace = Pace()
        self._caution = Caution()

    def process(self, batch: Batch) -> None:
        """Decode and index the batch."""
        ledger = Ledger(batch)
        try:
            rows = self._bench.decoding.decode(ledger, time.monotonic() + LONGEST_S)
            self._bench.parse_exceptions.check(ledger)
        except (TopicChanged, PermanentRefusal, TooManyParseExceptions, TooSlow):
            self.give_up()
            raise
        except DeadlineExceeded:
            self._start_over("gave up a batch", batch.progress)
            return
        except TooWide:
            self._take_in_halves(ledger)
            return
        self._bench.parse_exceptions.add(ledger)
        self._bench.failpoints.reach("decoded")
        if self._caution.is_due(batch):
            self._take_carefully(Part(ledger, rows))
        else:
            self._add(ledger, rows)

    def _take_in_halves(self, ledger: Ledger) -> None:
        """Each by itself: they may be too wide to gather together."""
        first, second = (half.batch for half in split_ledger(ledger))
        before = self._given_up
        self.process(first)
        if self.due:
            self.hand_off()
        if self._given_up == before:
            self.process(second)
        else:  # what comes before it is read again
            self._start_over("part of a batch was given up", second.progress)

    def _add(self, ledger: Ledger, rows: pa.Table | None) -> None:
        batch = ledger.batch
        self._gathered.add(ledger, self._bench.parse_exceptions.room_to_save)
        if rows is not None and rows.num_rows:
            self._gather(rows, batch)
        self._bench.control.show(in_flight=self._gathered.records, partitions=sorted(self._gathered.parts))

    def _gather(self, rows: pa.Table, batch: Batch) -> None:
        """Raises ``StorageRefused`` when there is no room on the local disk and waiting does not help."""
        for index, part in self._indexes.split_by_index(rows, batch.partitions):

            def add(index: RowIndex = index, part: pa.Table = part) -> None:
                index.add(part, batch.partitions, batch.offsets)

            self._bench.breaker.retry_until_answered(add, time.monotonic() + LONGEST_S)
        self._indexes.make_room()

    def _take_carefully(self, part: Part) -> None:
        """Among these records are those that a publish was refused for: publish them alone, cut up if need be."""
        batch = part.ledger.batch
        self.hand_off()
        try:
            is_registered = self._bench.refusals.registered(part, self._register_part)
        except DeadlineExceeded:
            self._start_over("gave up a batch", batch.progress)
            return
        except (TopicChanged, PermanentRefusal, Refused):
            self.give_up()
            raise
        if is_registered:
            self._caution.passed(batch)
        else:
            self._start_over("part of a batch is stored elsewhere", batch.progress)

    def _register_part(self, part: Part) -> bool:
        try:
            self._add(part.ledger, part.rows)
            is_registered = self._registered(time.monotonic() + LONGEST_S)
        except Unacceptable:
            self._clear()
            raise
        if is_registered:
            self._clear()
        return is_registered

    @property
    def due(self) -> bool:
        """Whether it is time for a handoff."""
        if not self._gathered:
            return False
        is_full = self._indexes.full or self._gathered.kept_bytes > KEPT_BYTES
        return is_full or (not self._source.whole and self._time_is_up)

    @property
    def _time_is_up(self) -> bool:
        gathered, period = self._gathered, self._bench.assignment.spec.tuningConfig.intermediateHandoffPeriod
        if period is not None:
            return gathered.age_s >= period.total_seconds()
        return self._pace.due(Backlog(gathered.records, gathered.age_s, gathered.quiet_s, self._source.waiting))

    def hand_off(self) -> None:
        """Register what has gathered. Raises ``TopicChanged``, ``Fenced``, ``StorageRefused``."""
        self._let_another_publish()
        if not self._gathered:
            return
        try:
            while self._gathered and not self._registered(time.monotonic() + LONGEST_S):
                pass
        except Unacceptable as refusal:
            self._caution.begin({p: part.progress.end for p, part in self._gathered.parts.items()})
            self._start_over(f"a publish was refused: {refusal}")
            return
        except DeadlineExceeded:
            self._start_over("gave up a handoff")
            return
        except (TopicChanged, PermanentRefusal, Refused):
            self.give_up()
            raise
        self._clear()

    def _let_another_publish(self) -> None:
        """Look whether another replica has; wait for the one that has the turn."""
        if self._bench.assignment.spec.ioConfig.replicas == 1:
            return
        end = time.monotonic() + (HEAD_START_S if self._is_superseded else 0.0)
        while self._gathered and self._bench.control.directive == "continue":
            self._source.notice_replicas()
            self.catch_up()
            if time.monotonic() >= end:
                return
            self._bench.control.pause(TURN_CHECK_S)

    def _registered(self, give_up: float) -> bool:
        """False: partitions that are stored elsewhere by now were left out, and the rest is still to be registered."""
        try:
            self._register(give_up)
        except PublishRefused as refused:
            stored = refused.refusal.stored
            if not stored:
                raise Fenced(str(refused)) from None
            self._bench.log.warning("left out what is stored elsewhere", reason=str(refused))
            self._void_lost(stored if refused.refusal.code == "offsets" else dict.fromkeys(stored), set())
            return False
        return True

    def _register(self, give_up: float) -> None:
        check_segments(self._indexes.intervals)
        same_topic = self._bench.topic.check_in_background()
        segments = self._bench.breaker.retry_until_answered(
            lambda: self._indexes.write(self._bench.storage, self._bench.ids), give_up
        )
        self._bench.failpoints.reach("uploaded")
        same_topic.result()
        self._bench.publisher.publish(self._gathered.request(self._bench.publisher.epoch, segments), give_up)
        self._bench.failpoints.reach("committed")
        self._is_superseded = False
        self._pace.note_handoff(len(segments))
        self._source.published({p: a.progress.end for p, a in self._gathered.parts.items()})

    def catch_up(self) -> None:
        """What is in progress of lost partitions is void."""
        lost = self._source.lost()
        self._void_lost(lost, set(lost))

    def _void_lost(self, lost: Mapping[int, int | None], rewound: set[int]) -> None:
        """``rewound``: those that the source has gone back on already."""
        gathered = lost.keys() & self._gathered.parts.keys()
        if not gathered:
            return
        self._given_up += 1
        if any(offset is not None for offset in lost.values()):
            self._is_superseded = True
            self._pace.note_handoff()
        if self._indexes.drop(gathered):
            self._forget(gathered, lost)
        else:  # their rows can't be told from the others'
            gathered = set(self._gathered.parts)
            self._forget(gathered, lost)
            self._clear()
        if gathered - rewound and self._bench.control.directive == "continue":
            self._source.rewind(gathered - rewound)

    def _forget(self, partitions: Iterable[int], stored: Mapping[int, int | None]) -> None:
        redundant, released = self._gathered.drop(partitions, stored)
        if redundant:
            self._bench.control.count_redundant(redundant)
        if released:
            self._bench.control.count_released(released, 0)
        self._bench.control.show(in_flight=self._gathered.records)

    def end(self) -> None:
        """Finish publishes what has gathered; stop leaves it to whoever reads next."""
        if self._bench.control.directive == "finish":
            self.hand_off()
        self.give_up()

    def close(self) -> None:
        """Remove what is on the local disk."""
        self._indexes.close()

    def give_up(self) -> None:
        """Nothing of what has gathered is published: it is read again from the stored offsets."""
        self._forget(list(self._gathered.parts), {})
        self._clear()

    def _start_over(self, reason: str, more: Iterable[int] = ()) -> None:
        self._bench.log.warning("starting over from the stored offsets", reason=reason, records=self._gathered.records)
        self._given_up += 1
        partitions = {*self._gathered.parts, *more}
        self.give_up()
        if self._bench.control.directive == "continue":
            self._source.rewind(partitions)

    def _clear(self) -> None:
        self._gathered.parts.clear()
        self._bench.parse_exceptions.reset()
        self._indexes.clear()
        self._bench.control.show(in_flight=0)
