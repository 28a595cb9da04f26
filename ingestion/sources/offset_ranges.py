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
    """See ``StoredOffsetSource``. ``is_mine``: which of the topic's partitions this indexer reads."""

    def __init__(
        self,
        properties: Mapping[str, str],
        stored: StoredOffsets,
        is_mine: Callable[[int], bool],
        client_id: str,
        poll_s: float,
    ) -> None:
        self._stored = stored
        self._is_mine = is_mine
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
        new = {p for p in self._stored.watch.partitions() if self._is_mine(p)} - self._reader.partitions
        self._start_partitions(new, new_process)

    def _while_kafka_answers(self, check: Callable[[], None]) -> None:
        try:
            check()
        except SourceProblem as problem:
            if problem.permanent:
                raise
            self._reader.client_problems.add_text(str(problem))  # what is read already goes on when Kafka does

    def _start_partitions(self, partitions: Iterable[int], new_process: bool = False) -> None:
        starts = self._stored.starts(partitions, new_process)
        self._stored_positions.update({p: s.stored for p, s in starts.items()})
        assigned = self._reader.add(starts)
        if assigned:
            self._reader.consumer.incremental_assign(assigned)

    def poll(self, timeout_s: float) -> Batch | None:
        if time.monotonic() - self._checked_at > CHECK_PARTITIONS_S:
            self._while_kafka_answers(self._update_partitions)
        if time.monotonic() - self._replicas_checked_at > CHECK_REPLICAS_S:
            self.notice_replicas()
        if not self._reader.partitions:
            time.sleep(timeout_s)
            return None
        try:
            return self._reader.read(timeout_s)
        except LostPosition as astray:
            self._lost.update(dict.fromkeys(astray.partitions))
            self.rewind(astray.partitions)
            return None

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
        self._reader.consumer.incremental_unassign([TopicPartition(self._stored.topic, p) for p in retaken])
        self._reader.forget(retaken)
        self._start_partitions(retaken)

    def rewind(self, partitions: Iterable[int]) -> None:
        self._restart_at_stored(self._reader.partitions & set(partitions))

    def published(self, ends: Mapping[int, int]) -> None:
        self._stored_positions.update(ends)
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
