"""Partitions dealt out by Kafka among the members of a consumer group, read from the offsets that are stored.

Kafka only says who reads what. Where to go on comes from the metadata store; each assignment takes a new generation of
its partitions there, so that whoever held them before can publish no more, however late it wakes up.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from ingestion.sources.base import Batch, StoredOffsetSource
from ingestion.sources.client_problems import ALL_PARTITIONS
from ingestion.sources.reader import LostPosition, Reader
from ingestion.sources.stored_offsets import StartPosition, StoredOffsets
from ingestion.specs.kafka.group_times import DEFAULTS, SESSION

# By then a member that lost a partition to another has heard so from Kafka; the longer the session is, the later.
RECLAIM_S = 15.0


class ConsumerGroupSource(StoredOffsetSource):
    """See ``StoredOffsetSource``. Rebalances are heard inside ``poll``, on the loop's thread.

    ``times``: see ``group_times``.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        stored: StoredOffsets,
        group: str,
        client_id: str,
        poll_s: float,
        times: Mapping[str, int] = DEFAULTS,
    ) -> None:
        self._stored = stored
        config = {"partition.assignment.strategy": "cooperative-sticky", **times}
        self._reader = Reader(stored.topic, properties, stored.isolation, group, client_id, poll_s, **config)
        self._longer_s = max(0, times[SESSION] - DEFAULTS[SESSION]) / 1000
        self._lost: set[int] = set()
        self._started: set[int] = set()  # by this process, ever
        self._claimed_by_others: dict[int, float] = {}  # assigned here, but claimed by another; when that is to be over
        self._settled_behind: set[int] = set()  # read, and published, up to what somebody else has settled
        self._failure: Exception | None = None

    def open(self) -> None:
        self._reader.consumer.subscribe(
            [self._stored.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def _assigned(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        try:
            starts = self._starts({p.partition for p in partitions})
        except Exception as error:  # raised by the next take: a callback has no caller that could do anything
            self._failure = error
            return
        self._reader.client_problems.clear_partitions([ALL_PARTITIONS])  # it is in the group
        consumer.incremental_assign(self._reader.add(starts))

    def _starts(self, partitions: set[int]) -> dict[int, StartPosition]:
        """Under a new generation; what this process has not held before is counted as begun by it."""
        first, resumed = partitions - self._started, partitions & self._started
        self._started |= first
        return {**self._stored.starts(first, new_process=True), **self._stored.starts(resumed)}

    def _revoked(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        # A partition that is given back while it is paused would be paused when it comes again.
        consumer.resume([p for p in partitions if p.partition in self._claimed_by_others])
        self._release_partitions(p.partition for p in partitions)
        consumer.incremental_unassign(partitions)

    def _release_partitions(self, partitions: Iterable[int]) -> None:
        revoked = set(partitions)
        self._reader.forget(revoked)
        self._lost |= revoked
        for partition in revoked:
            self._claimed_by_others.pop(partition, None)

    def poll(self, timeout_s: float) -> Batch | None:
        self._reclaim()
        if self._settled_behind:  # what is settled already is passed over
            passed, self._settled_behind = self._settled_behind, set()
            self.rewind(passed)
        try:
            batch = self._reader.read(timeout_s)
        except LostPosition as astray:
            self._lost |= astray.partitions
            self.rewind(astray.partitions)
            return None
        finally:
            if self._failure is not None:
                raise self._failure
        return batch

    def rewind(self, partitions: Iterable[int]) -> None:
        """Those that went to another member meanwhile are left alone: Kafka will say so, or they are taken back."""
        assigned = sorted(self._reader.partitions & set(partitions))
        starts = self._stored.starts(assigned, again=True)
        still_ours = {p: s for p, s in starts.items() if s.generation == self._reader.generation(p)}
        elsewhere = set(assigned) - set(still_ours)
        self._reader.forget(assigned)
        self._reader.consumer.pause([TopicPartition(self._stored.topic, p) for p in elsewhere])
        self._claimed_by_others.update(dict.fromkeys(elsewhere, time.monotonic() + RECLAIM_S + self._longer_s))
        self._seek(still_ours)

    def _reclaim(self) -> None:
        """Claim again what Kafka still says is ours: who claimed it has lost it since, or its claim came late."""
        due = {p for p, at in self._claimed_by_others.items() if time.monotonic() > at}
        if due:
            for partition in due:
                del self._claimed_by_others[partition]
            self._seek(self._starts(due))
            self._reader.consumer.resume([TopicPartition(self._stored.topic, p) for p in due])

    def _seek(self, starts: Mapping[int, StartPosition]) -> None:
        for position in self._reader.add(starts):
            self._reader.consumer.seek(position)

    def lost(self) -> dict[int, None]:
        lost, self._lost = self._lost, set()
        return dict.fromkeys(lost)

    def published(self, ends: Mapping[int, int]) -> None:
        """Tell Kafka too, for those who watch the group's lag there. Nothing here reads it."""
        self._settled_behind |= {p for p, end in ends.items() if self._reader.stopped_at.get(p) == end}
        self._reader.published(ends)
        offsets = [
            TopicPartition(self._stored.topic, p, end) for p, end in ends.items() if p in self._reader.partitions
        ]
        try:
            if offsets:
                self._reader.consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException:
            pass  # a rebalance is on its way; the next publish says it

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
