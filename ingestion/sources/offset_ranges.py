"""Partitions dealt out by number, read from the offsets that are stored: no consumer group takes part."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from confluent_kafka import TopicPartition

from ingestion.sources.base import Batch, SourceProblem, StoredOffsetSource
from ingestion.sources.reader import LostPosition, Reader
from ingestion.sources.stored_offsets import StoredOffsets

CHECK_PARTITIONS_S = 10.0
CHECK_REPLICAS_S = 2.0


class OffsetRangeSource(StoredOffsetSource):
    """See ``StoredOffsetSource``. ``is_mine``: which of the topic's partitions this indexer reads.

    A claim may say where to stop. What was read until there is published, then the partition is claimed again: so a
    bounded read goes from one of its ranges to the next, and an ordinary one passes over what is settled already.
    ``only``: the partitions of a bounded read, which ends when nothing of them is left.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        stored: StoredOffsets,
        is_mine: Callable[[int], bool],
        client_id: str,
        poll_s: float,
        only: frozenset[int] | None = None,
    ) -> None:
        self._stored = stored
        self._is_mine = is_mine
        self._only = only
        self._done: set[int] = set()  # of these, nothing is left
        self._paused: set[int] = set()  # read to where they stop
        self._to_claim: set[int] = set()  # and published until there
        self._reader = Reader(stored.topic, properties, stored.isolation, None, client_id, poll_s)
        self._checked_at = 0.0
        self._stored_positions: dict[int, int] = {}  # what is stored of each partition, as far as known here
        self._replicas_checked_at = 0.0
        self._lost: dict[int, int | None] = {}

    def open(self) -> None:
        """Raises ``OffsetsUnavailable`` and ``SourceProblem``."""
        self._update_partitions(new_process=True)

    def _update_partitions(self, new_process: bool = False) -> None:
        self._checked_at = time.monotonic()
        partitions = self._stored.watch.partitions() if self._only is None else self._only - self._done
        new = {p for p in partitions if self._is_mine(p)} - self._reader.partitions
        self._start_partitions(new, new_process)

    def _while_kafka_answers(self, check: Callable[[], None]) -> None:
        try:
            check()
        except SourceProblem as problem:
            if problem.permanent:
                raise
            self._reader.client_problems.add_text(str(problem))  # what is read already goes on when Kafka does

    def _start_partitions(self, partitions: Iterable[int], new_process: bool = False) -> None:
        numbers = set(partitions)
        starts = self._stored.starts(numbers, new_process)
        if self._only is not None:
            self._done |= numbers - starts.keys()
        self._stored_positions.update({p: s.stored for p, s in starts.items()})
        assigned = self._reader.add(starts)
        if assigned:
            self._reader.consumer.incremental_assign(assigned)

    def poll(self, timeout_s: float) -> Batch | None:
        if time.monotonic() - self._checked_at > CHECK_PARTITIONS_S:
            self._while_kafka_answers(self._update_partitions)
        if time.monotonic() - self._replicas_checked_at > CHECK_REPLICAS_S:
            self.notice_replicas()
        if self._to_claim:
            self._while_kafka_answers(self._claim_next)
        if not self._reader.partitions:
            if not self.exhausted():
                time.sleep(timeout_s)
            return None
        try:
            batch = self._reader.read(timeout_s)
            self._pause_stopped()
            return batch
        except LostPosition as astray:
            self._lost.update(dict.fromkeys(astray.partitions))
            self.rewind(astray.partitions)
            return None

    def _pause_stopped(self) -> None:
        """What lies behind would be fetched in vain."""
        stopped = self._reader.stopped_at.keys() - self._paused
        if stopped:
            self._reader.consumer.pause([TopicPartition(self._stored.topic, p) for p in stopped])
            self._paused |= stopped

    def _claim_next(self) -> None:
        due, self._to_claim = self._to_claim, set()  # what can't be claimed now is at the next look for partitions
        self.rewind(due)

    def exhausted(self) -> bool:
        """All of a bounded read was read; once that is published, a claim may show that something is left."""
        if self._only is None or self._to_claim:
            return False
        return not any(self._is_mine(p) for p in self._only - self._done - self._reader.stopped_at.keys())

    def notice_replicas(self) -> None:
        """What another replica has published is read here in vain: go on behind it."""
        self._replicas_checked_at = time.monotonic()
        self._while_kafka_answers(self._skip_published_by_replicas)

    def _skip_published_by_replicas(self) -> None:
        moved = self._stored.moved(self._stored_positions) if self._stored.replicas > 1 else {}
        if moved:
            self._lost.update(moved)
            self.rewind(moved)  # what can't be taken up again now is at the next look for partitions

    def _restart_at_stored(self, partitions: Iterable[int]) -> None:
        retaken = list(partitions)
        topic_partitions = [TopicPartition(self._stored.topic, p) for p in retaken]
        # One that is assigned again while it is paused stays so.
        self._reader.consumer.resume([p for p in topic_partitions if p.partition in self._paused])
        self._paused.difference_update(retaken)
        self._reader.consumer.incremental_unassign(topic_partitions)
        self._reader.forget(retaken)
        self._start_partitions(retaken)

    def rewind(self, partitions: Iterable[int]) -> None:
        self._restart_at_stored(self._reader.partitions & set(partitions))

    def published(self, ends: Mapping[int, int]) -> None:
        self._stored_positions.update(ends)
        self._to_claim |= {p for p, end in ends.items() if self._reader.stopped_at.get(p) == end}
        self._reader.published(ends)

    def lost(self) -> dict[int, int | None]:
        lost, self._lost = self._lost, {}
        return lost

    def close(self) -> None:
        self._reader.close()

    @property
    def waiting(self) -> int | None:
        return self._reader.waiting

    @property
    def problem(self) -> str:
        return self._reader.client_problems.text

    @property
    def refused(self) -> bool:
        return bool(self._reader.client_problems.refused)
