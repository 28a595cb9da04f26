"""A share group as a source: several consumers, each on a thread of its own, gathered into one batch.

A consumer acknowledges a whole poll before the next one and is not thread-safe: so a poller owns its consumer, holds
one poll at a time, and waits until the loop has said what became of it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from confluent_kafka import KafkaException

from ingestion.share_consumer import ShareGroupConsumer
from ingestion.sources.base import ACCEPT, RELEASE, Batch, Ints, LazyColumn, LeasedSource, SourceProblem
from ingestion.sources.client_problems import CLIENT_PROBLEM_S, REFUSALS, explain_error
from ingestion.sources.leases import LeaseBook, PendingAcks
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.kafka.client_messages import share_groups_off
from ingestion.specs.kafka.properties import librdkafka_properties, quick_to_reconnect
from ingestion.specs.messages.protocol import Leases

GATHER_S = 0.2  # at most this long after the first poll of a batch
USUAL_S = 0.05  # or until no further poll came for this long while there are fewer than usual
MORE_S = 0.005  # or for this long once there are as many as usual
CLOSE_S = 15.0
COMMIT_S = 20.0
RECREATE_AFTER_S = 5.0  # until a consumer that Kafka refuses is made anew
REFUSAL_EXPIRES_S = 30.0  # what is not refused anew for so long is not refused


@dataclass(frozen=True)
class _PolledBatch:
    """One poll of one poller, taken apart on its thread while the loop still waits for others."""

    poller: _Poller
    messages: list[Any]
    acquired_at: float
    partitions: Ints
    offsets: Ints
    delivery_counts: Ints
    payloads: list[bytes | None]

    @classmethod
    def of(cls, poller: _Poller, messages: list[Any], acquired_at: float) -> _PolledBatch:
        return cls(
            poller,
            messages,
            acquired_at,
            partitions=np.array([m.partition() for m in messages], dtype=np.int64),
            offsets=np.array([m.offset() for m in messages], dtype=np.int64),
            delivery_counts=np.array([m.delivery_count() for m in messages], dtype=np.int64),
            payloads=[m.value() for m in messages],
        )


class _Poller(threading.Thread):
    """Owns one consumer: poll, hand over, wait for the verdicts, acknowledge."""

    def __init__(self, source: ShareGroupSource, config: Mapping[str, Any], number: int) -> None:
        super().__init__(name=f"share-consumer-{number}", daemon=True)
        self._source = source
        self._consumer = ShareGroupConsumer(config, [source.topic], self._on_answer, self.note_problem)
        self._acknowledgements: queue.SimpleQueue[Ints | None] = queue.SimpleQueue()
        # Records that come in end the first, time alone the second.
        self._last_problem = self._last_ack_problem = ("", 0.0)
        self._refusal = ("", 0.0)  # by Kafka: its consumer is made anew until it is not
        self._unanswered = PendingAcks(source.lease_book)
        self.fatal: Exception | None = None
        self.closed = threading.Event()

    @property
    def problem(self) -> str:
        """The last problem, unless it is old."""
        if self.refused:
            return self._refusal[0]
        recent = [
            text
            for text, at in (self._last_problem, self._last_ack_problem)
            if time.monotonic() - at < CLIENT_PROBLEM_S
        ]
        return next(filter(None, recent), "")

    @property
    def refused(self) -> bool:
        """Whether Kafka does not let it read."""
        return bool(self._refusal[0]) and time.monotonic() - self._refusal[1] < REFUSAL_EXPIRES_S

    def note_problem(self, error: Any) -> None:
        """Keep what went wrong for the next heartbeats. ``error``: a ``KafkaError``."""
        problem = (self._source.explained(error), time.monotonic())
        if error.code() in REFUSALS:
            self._refusal = problem
        else:
            self._last_problem = problem

    def acknowledge(self, verdicts: Ints | None) -> None:
        """What became of the held poll; None: leave it to its lock."""
        self._acknowledgements.put(verdicts)

    def run(self) -> None:
        try:
            while not self._source.stopping.is_set():
                self._consumer.join()
                try:
                    self._round()
                except KafkaException as error:
                    reason = error.args[0]
                    self.note_problem(reason)
                    refused = reason.code() in REFUSALS
                    if refused or reason.fatal():  # refused, librdkafka asks on thousands of times a second
                        self._consumer.close()
                        self._unanswered.forget()
                    self._source.stopping.wait(RECREATE_AFTER_S if refused else 1.0)
            self._commit_last()
        except Exception as error:  # the loop raises it as a SourceProblem
            self.fatal = error
        finally:
            self._consumer.close()
            self.closed.set()
            self._source.arrived.put(None)

    def _round(self) -> None:
        if not self._source.polling.is_set():
            self._commit()
            self._source.polling.wait(0.1)
            return
        messages = self._consumer.poll(self._source.poll_timeout_s)
        if not messages:
            return
        acquired_at = self._consumer.polled_at
        self._last_problem = self._refusal = ("", 0.0)
        batch = _PolledBatch.of(self, messages, acquired_at)
        self._source.arrived.put(batch)
        verdicts = self._acknowledgements.get()
        held_s = time.monotonic() - acquired_at
        # A broker passes over what comes too late in silence, once another has accepted it and the group has gone on.
        in_time = verdicts if held_s <= self._source.lock_s else None
        self._source.lease_book.count(batch.partitions, in_time, held_s)
        self._unanswered.expect(batch.partitions, batch.offsets, in_time)
        self._acknowledge(messages, verdicts)

    def _acknowledge(self, messages: list[Any], verdicts: Ints | None) -> None:
        if verdicts is not None and bool((verdicts == ACCEPT).all()):
            self._consumer.acknowledge(messages)
            return
        # Left to its lock: releasing what is no longer ours is refused by the broker and frees the consumer.
        kinds = [RELEASE] * len(messages) if verdicts is None else verdicts.tolist()
        self._consumer.acknowledge(messages, kinds)
        self._commit()  # others wait for what is released

    def _commit_last(self) -> None:
        try:
            self._commit()
        except KafkaException as error:
            self.note_problem(error.args[0])

    def _commit(self) -> None:
        for partition, error in self._consumer.commit(COMMIT_S):
            self._unanswered.overdue(partition)
            self._note_ack_problem(partition, error)

    def _on_answer(self, partition: int, offsets: set[int], error: KafkaException | None) -> None:
        self._unanswered.answered(partition, offsets, accepted=error is None)
        if error is not None:
            self._note_ack_problem(partition, error)

    def _note_ack_problem(self, partition: int, error: KafkaException) -> None:
        self._source.count_ack_failure()
        self._last_ack_problem = (f"acknowledging partition {partition}: {error}", time.monotonic())


class ShareGroupSource(LeasedSource):
    """See ``LeasedSource``. ``batch.held`` is a list of (poll, slice of the batch)."""

    def __init__(self, properties: Mapping[str, str], io_config: ShareGroupIOConfig, client_id: str) -> None:
        self.topic = io_config.topic
        self._group = io_config.groupId
        self.poll_timeout_s = min(io_config.pollTimeout / 1000, 1.0)
        self._delivery_limit = io_config.groupConfig.deliveryCountLimit
        self.lock_s = io_config.groupConfig.recordLockDurationMs / 1000
        self._gather_s = min(GATHER_S, self.lock_s / 4)
        config = {
            **quick_to_reconnect(properties),
            **librdkafka_properties(properties),
            "group.id": io_config.groupId,
            "client.id": client_id,
        }
        self.stopping = threading.Event()
        self.polling = threading.Event()
        self.arrived: queue.SimpleQueue[_PolledBatch | None] = queue.SimpleQueue()
        self.lease_book = LeaseBook()
        self._usual_polls = 1  # polls in a batch
        self._failures = 0
        self._counting = threading.Lock()
        self._pollers = [_Poller(self, config, n) for n in range(io_config.consumersPerIndexer)]

    def open(self) -> None:
        self.polling.set()
        for poller in self._pollers:
            poller.start()

    def poll(self, timeout_s: float) -> Batch | None:
        try:
            first = self.arrived.get(timeout=timeout_s)
        except queue.Empty:
            self._raise_fatal()
            return None
        if first is None:
            self._raise_fatal()
            return None
        return self._as_batch(self._gather(first))

    def _gather(self, first: _PolledBatch) -> list[_PolledBatch]:
        """The polls of one batch. Large batches are cheap, but a consumer that gets nothing must not be waited for."""
        polls = [first]
        end = first.acquired_at + self._gather_s
        while len(polls) < len(self._pollers):
            quiet = USUAL_S if len(polls) < self._usual_polls else MORE_S
            more = self._arrived(min(quiet, end - time.monotonic()))
            if more is None:
                break
            polls.append(more)
        self._usual_polls = max(len(polls), self._usual_polls - 1)
        return polls

    def _arrived(self, timeout_s: float) -> _PolledBatch | None:
        try:
            return self.arrived.get(timeout=timeout_s) if timeout_s > 0 else self.arrived.get_nowait()
        except queue.Empty:
            return None

    def _as_batch(self, polls: list[_PolledBatch]) -> Batch:
        delivery_counts = np.concatenate([h.delivery_counts for h in polls])
        messages = [m for h in polls for m in h.messages]
        bounds = np.cumsum([0, *(len(h.messages) for h in polls)]).tolist()
        return Batch(
            partitions=np.concatenate([h.partitions for h in polls]),
            offsets=np.concatenate([h.offsets for h in polls]),
            delivery_counts=delivery_counts,
            payloads=[p for h in polls for p in h.payloads],
            keys=LazyColumn(messages, lambda m: m.key()),
            timestamps_ms=LazyColumn(messages, lambda m: m.timestamp()[1] if m.timestamp()[0] else None),
            headers=LazyColumn(messages, lambda m: m.headers() or ()),
            deadline=min(h.acquired_at for h in polls) + self.lock_s,
            held=[(h, slice(a, b)) for h, a, b in zip(polls, bounds, bounds[1:], strict=False)],
            last_chance=bool((delivery_counts >= self._delivery_limit).any()),
        )

    def acknowledge(self, batch: Batch, verdicts: Ints) -> None:
        for polled, part in batch.held:
            polled.poller.acknowledge(verdicts[part])

    def lapse(self, batch: Batch) -> None:
        """Give the batch up: wait until its lock has run out, then poll on."""
        time.sleep(max(0.0, batch.seconds_left) + 0.5)
        for polled, _ in batch.held:
            polled.poller.acknowledge(None)

    def pause(self) -> None:
        self.polling.clear()

    def resume(self) -> None:
        if not self.stopping.is_set():
            self.polling.set()

    def drain(self) -> list[Batch]:
        self.stopping.set()
        self.polling.clear()
        polls: list[_PolledBatch] = []
        end = time.monotonic() + self.poll_timeout_s + COMMIT_S
        # A poller that holds nothing closes within one poll; what one still hands over is taken.
        while not all(p.closed.is_set() or p in [h.poller for h in polls] for p in self._alive()):
            try:
                more = self.arrived.get(timeout=0.1)
            except queue.Empty:
                more = None
            if more is not None:
                polls.append(more)
            if time.monotonic() > end:
                break
        return [self._as_batch([h]) for h in polls]

    def close(self) -> None:
        self.stopping.set()
        self.polling.clear()
        end = time.monotonic() + CLOSE_S
        while any(p.is_alive() for p in self._alive()) and time.monotonic() < end:
            try:
                left = self.arrived.get(timeout=0.1)
            except queue.Empty:
                continue
            if left is not None:
                left.poller.acknowledge(None)

    def _alive(self) -> list[_Poller]:
        return [p for p in self._pollers if p.ident is not None]

    def _raise_fatal(self) -> None:
        for poller in self._pollers:
            if poller.fatal is not None:
                raise SourceProblem(f"A share consumer failed: {poller.fatal}") from poller.fatal

    def explained(self, error: Any) -> str:
        """A client's error in words. Called by pollers."""
        return share_groups_off(error) or explain_error(error, self.topic, self._group)

    def count_ack_failure(self) -> None:
        """Called by pollers."""
        with self._counting:
            self._failures += 1

    @property
    def ack_failures(self) -> int:
        return self._failures

    @property
    def leases(self) -> Leases:
        return self.lease_book.totals

    @property
    def problem(self) -> str:
        refused_first = sorted(self._pollers, key=lambda p: not p.refused)
        return next((p.problem for p in refused_first if p.problem), "")

    @property
    def refused(self) -> bool:
        return any(p.refused for p in self._pollers)
