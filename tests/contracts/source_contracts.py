"""What every source of a kind does, whatever is behind it: subclassed where there is something behind it.

``test_memory_sources.py`` here, and ``tests/integration/test_sources.py`` on a real Kafka.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest

from ingestion.client.memory import MemoryControlPlane
from ingestion.sources.base import (
    ACCEPT,
    REJECT,
    RELEASE,
    Batch,
    LeasedSource,
    OffsetsUnavailable,
    Source,
    StoredOffsetSource,
    TopicChanged,
)
from ingestion.specs.messages.protocol import StartRequest
from ingestion.task.claims import Claims
from ingestion.task.control import Control
from ingestion.task.epoch import Epoch

DEADLINE_S = 60.0
TAKE_S = 0.5
RECORDS = [b"%d" % n for n in range(10)]


def until(
    what: str, source: Source, done: Callable[[], bool], heard: Callable[[Batch], object], take_s: float = TAKE_S
) -> None:
    """Take batches, as the loop does, until it is so."""
    give_up = time.monotonic() + DEADLINE_S
    while not done():
        assert time.monotonic() < give_up, f"{what}: {source.problem}"
        batch = source.poll(take_s)
        if batch is not None:
            heard(batch)


def end(source: LeasedSource, batch: Batch, verdict: int = ACCEPT) -> None:
    source.acknowledge(batch, np.full(len(batch), verdict, dtype=np.int64))


class LeasedContract(ABC):
    """Of a source whose records are held for so long only."""

    @abstractmethod
    def source(self, records: Sequence[bytes], lock_s: float) -> LeasedSource:
        """That of one partition with these records. It is not open."""

    @contextmanager
    def opened(self, records: Sequence[bytes] = RECORDS, lock_s: float = 30.0) -> Iterator[LeasedSource]:
        source = self.source(records, lock_s)
        source.open()
        try:
            yield source
        finally:
            source.close()

    def test_every_record_comes_once(self) -> None:
        seen: list[tuple[int, bytes | None, int]] = []

        def take(batch: Batch) -> None:
            assert batch.seconds_left > 0
            assert len(batch) == len(batch.keys) == len(batch.timestamps_ms) == len(batch.delivery_counts)
            assert batch.progress == {}
            seen.extend(zip(batch.offsets.tolist(), batch.payloads, batch.delivery_counts.tolist(), strict=True))
            end(source, batch)

        with self.opened() as source:
            until("all of them", source, lambda: len(seen) >= len(RECORDS), take)
            assert source.poll(TAKE_S) is None
        assert sorted(seen) == [(n, payload, 1) for n, payload in enumerate(RECORDS)]

    def test_what_is_released_comes_again_and_what_is_rejected_does_not(self) -> None:
        seen: list[tuple[int, int]] = []
        fate = {n: (ACCEPT, REJECT, RELEASE)[n % 3] for n in range(len(RECORDS))}

        def take(batch: Batch) -> None:
            places = list(zip(batch.offsets.tolist(), batch.delivery_counts.tolist(), strict=True))
            seen.extend(places)
            source.acknowledge(batch, np.array([fate[o] if count == 1 else ACCEPT for o, count in places]))

        again = [n for n in fate if fate[n] == RELEASE]
        with self.opened() as source:
            until("those that come again", source, lambda: len(seen) >= len(RECORDS) + len(again), take)
            assert source.poll(TAKE_S) is None
            assert sorted(o for o, count in seen if count == 2) == again
            until("the book is kept", source, lambda: source.leases.acquired == len(seen), take)
            leases = source.leases
        assert (leases.released, leases.rejected) == (len(again), sum(v == REJECT for v in fate.values()))
        assert leases.acquired == leases.accepted + leases.rejected + leases.released

    def test_a_batch_that_lapses_comes_again(self) -> None:
        lapsed: set[int] = set()
        again: set[int] = set()

        def take(batch: Batch) -> None:
            if not lapsed:
                lapsed.update(batch.offsets.tolist())
                source.lapse(batch)
            else:
                again.update(batch.offsets[batch.delivery_counts > 1].tolist())
                end(source, batch)

        with self.opened(RECORDS[:3], lock_s=1.0) as source:
            until("they come again", source, lambda: bool(lapsed) and lapsed <= again, take)
            until("the book is kept", source, lambda: source.leases.lock_expired >= len(lapsed), take)

    def test_a_pause_loses_nothing(self) -> None:
        seen: list[bytes | None] = []

        def take(batch: Batch) -> None:
            seen.extend(batch.payloads)
            end(source, batch)

        with self.opened() as source:
            for _ in range(2):
                source.pause()
            while (batch := source.poll(TAKE_S)) is not None:
                take(batch)
            for _ in range(2):
                source.resume()
            until("all of them", source, lambda: len(seen) >= len(RECORDS), take)
        assert sorted(seen, key=str) == RECORDS

    def test_what_is_drained_is_acknowledged_as_any_other(self) -> None:
        held: list[Batch] = []
        with self.opened() as source:
            until("the first", source, lambda: bool(held), held.append)
            end(source, held[0])
            held += (drained := source.drain())
            for batch in drained:
                end(source, batch)
        seen = [payload for batch in held for payload in batch.payloads]
        assert len(seen) == len(set(seen)) and set(seen) <= set(RECORDS)

    def test_it_can_be_closed_whatever_has_become_of_it(self) -> None:
        never_opened = self.source(RECORDS, 30.0)
        with self.opened() as source:
            source.close()
        never_opened.close()


class Log(ABC):
    """Partition 0 of a topic, and the control plane that stores its offset. One process reads it, then another."""

    replicated = True

    def __init__(self, plane: MemoryControlPlane, topic_id: str) -> None:
        self.plane = plane
        self.topic_id = topic_id
        self.sources: list[StoredOffsetSource] = []

    @abstractmethod
    def append(self, records: Sequence[bytes]) -> None:
        """In one transaction: its end takes an offset of its own."""

    @abstractmethod
    def remove_before(self, offset: int) -> None:
        """What retention does."""

    @abstractmethod
    def source(self, claims: Claims, may_reset: bool = False, replicas: int = 1) -> StoredOffsetSource:
        """That of another process. It is not open."""

    def claims(self, topic_id: str = "") -> Claims:
        """Those of another process."""
        asked = StartRequest(cluster_id="cluster", topic_id=topic_id or self.topic_id, host="here", pid=1)
        number = len(self.sources)
        epoch = Epoch(number, self.plane.start(number, asked).epoch, topic_id or self.topic_id)
        return Claims(self.plane, Control(number, 1), epoch)

    def opened(self, topic_id: str = "", may_reset: bool = False, replicas: int = 1) -> StoredOffsetSource:
        source = self.source(self.claims(topic_id), may_reset, replicas)
        self.sources.append(source)
        source.open()
        return source

    def store(self, offset: int, topic_id: str = "") -> None:
        """What a publish does, whosever it is."""
        self.plane.stored[topic_id or self.topic_id, 0] = offset
        self.plane.attempts[topic_id or self.topic_id, 0] = 0


def read(source: StoredOffsetSource, to: int, take_s: float = TAKE_S) -> list[Batch]:
    """All batches up to an offset."""
    batches: list[Batch] = []

    def ended() -> bool:
        return bool(batches) and batches[-1].progress[0].end >= to

    until(f"read up to {to}", source, ended, batches.append, take_s)
    return batches


class StoredOffsetContract:
    """Of a source whose offsets are stored with what is published. ``log``: a fixture of who subclasses it."""

    def test_it_says_of_every_offset_what_is_there(self, log: Log) -> None:
        log.append(RECORDS)
        log.append(RECORDS[:2])
        batches = read(source := log.opened(), 14)
        moves = [b.progress[0] for b in batches]
        assert moves[0].start == 0 and [m.start for m in moves[1:]] == [m.end for m in moves[:-1]]
        assert [o for b in batches for o in b.offsets.tolist()] == [*range(10), 11, 12]
        assert [p for b in batches for p in b.payloads] == [*RECORDS, *RECORDS[:2]]
        assert [e for b in batches for o in b.extra.values() for e in o.empty] == [(10, 11), (13, 14)]
        assert not source.exhausted()
        until("it knows that all is read", source, lambda: source.waiting == 0, lambda batch: None)

    def test_another_process_goes_on_at_the_stored_offset(self, log: Log) -> None:
        log.append(RECORDS)
        read(log.opened(), 11)
        log.sources[0].close()
        log.store(4)
        assert read(log.opened(), 11)[0].offsets[0] == 4

    def test_it_goes_back_to_the_stored_offset(self, log: Log) -> None:
        log.append(RECORDS)
        read(source := log.opened(), 11)
        log.store(7)
        source.rewind([0, 5])  # it does not read partition 5
        assert read(source, 11)[0].progress[0].start == 7
        log.store(11)
        source.published({0: 11})
        source.rewind([0])
        log.append(RECORDS)
        assert read(source, 22)[0].progress[0].start == 11

    def test_what_it_has_published_itself_is_not_lost(self, log: Log) -> None:
        log.append(RECORDS)
        read(source := log.opened(replicas=2 if log.replicated else 1), 11)
        log.store(11)
        source.published({0: 11})
        source.notice_replicas()
        assert source.lost() == {}

    def test_what_another_replica_has_published_is_lost(self, log: Log) -> None:
        """Where Kafka deals partitions out there are no replicas: nobody else publishes what is read here."""
        log.append(RECORDS)
        read(source := log.opened(replicas=2 if log.replicated else 1), 11)
        log.store(6)
        source.notice_replicas()
        assert source.lost() == ({0: 6} if log.replicated else {})
        if not log.replicated:
            return
        assert source.lost() == {}, "each is said once"
        assert read(source, 11)[0].progress[0].start == 6, "it has gone on by itself"

    def test_offsets_that_are_not_in_the_log(self, log: Log) -> None:
        log.append(RECORDS)
        log.store(0)
        log.remove_before(5)
        with pytest.raises(OffsetsUnavailable, match="offsets 0 to 4 were removed by retention"):
            read(log.opened(), 11)
        log.sources[0].close()
        first, *others = read(log.opened(may_reset=True), 11)
        assert (first.progress[0].start, first.progress[0].end, first.extra[0].gap) == (0, 5, [(0, 5)])
        assert [o for b in others for o in b.offsets.tolist()] == [5, 6, 7, 8, 9]

    def test_offsets_of_another_topic_of_the_name(self, log: Log) -> None:
        log.append(RECORDS)
        log.store(1_000, "an-older-id")
        with pytest.raises(TopicChanged, match="the topic's id was an-older-id"):
            read(log.opened("an-older-id"), 11)

    def test_where_processes_died_over_and_over_it_is_suspect_until_something_is_published(self, log: Log) -> None:
        log.append(RECORDS)
        log.store(0)
        log.plane.attempts[log.topic_id, 0] = 2
        source = log.opened()
        assert all(batch.suspect for batch in read(source, 11))
        log.store(11)
        source.published({0: 11})
        log.append(RECORDS)
        assert not any(batch.suspect for batch in read(source, 22))

    def test_it_can_be_closed_whatever_has_become_of_it(self, log: Log) -> None:
        log.append(RECORDS)
        never_opened = log.source(log.claims())
        source = log.opened()
        for _ in range(2):
            source.close()
        never_opened.close()
