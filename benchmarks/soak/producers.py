"""Records for the whole time, and what the producers know of each: sent, or in a transaction that was aborted.

Half of the records are sent plainly, half in transactions, some of which are aborted. What could not be decided (a
transaction that the broker left in the dark) is decided by the log itself: see ``verdict``.
"""

from __future__ import annotations

import itertools
import json
import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

STEP_S = 0.1
PATIENCE_S = 60.0  # with a broker that runs; one that is killed or paused is back long before
COLUMNS = 40  # that a spec may ask for in time
POISON = 0.004
LATE = 0.05
TOO_LATE = 0.01
ABORTED = 0.25
# What is wrong comes as an error of a call; of a broker that is away, and of fencing, nothing is printed.
QUIET = {"log_level": 0, "logger": logging.getLogger("soak.quiet")}
logging.getLogger("soak.quiet").setLevel(logging.CRITICAL + 1)
_GIVEN_UP = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)  # by ``_give_up``
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)


@dataclass
class Ledger:
    """Ids by what they are and what became of them. The key of each record is its id. Thread-safe."""

    valid: set[int] = field(default_factory=set)
    poison: set[int] = field(default_factory=set)
    too_late: set[int] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    _ids: itertools.count[int] = field(default_factory=itertools.count)

    def make(self, chance: random.Random) -> tuple[int, bytes | None]:
        """A new record's id and payload."""
        number, draw = next(self._ids), chance.random()
        if draw < POISON:
            self.poison.add(number)
            return number, chance.choice([b"{broken", None, b'{"n": 1, "value": 3}', b'{"time": "never"}', b"[1]"])
        now = datetime.now(UTC)
        if draw < POISON + TOO_LATE:
            self.too_late.add(number)
            return number, payload(number, LONG_AGO)
        self.valid.add(number)
        late = draw < POISON + TOO_LATE + LATE
        return number, payload(number, now - timedelta(minutes=chance.randrange(60, 600)) if late else now)


def payload(number: int, at: datetime) -> bytes:
    """A record with every column that a spec may ask for."""
    extra = {f"column_{c}": f"{c}-{number % 5}" for c in range(COLUMNS)}
    record = {"time": at.isoformat(), "n": number, "value": 3 * number, "category": f"c{number % 7}", **extra}
    return json.dumps(record).encode()


class Producing:
    """Two threads for one topic, from now on until ``finish``."""

    def __init__(self, bootstrap: str, topic: str, per_second: int, seed: str) -> None:
        self.topic, self.ledger = topic, Ledger()
        self._bootstrap, self._rate = bootstrap, per_second / 2
        self._stopped = threading.Event()
        self._stuck: list[str] = []
        self._confirmed_at = time.monotonic()  # a plain record, by the broker
        self._threads = [
            threading.Thread(target=run, args=(random.Random(f"{seed} {topic[:5]} {run.__name__}"),), daemon=True)
            for run in (self._produce_idempotently, self._in_transactions)
        ]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """No more records; waits until all that was sent is in the log. The broker must run."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(120)
            if thread.is_alive():
                raise RuntimeError(f"a producer of {self.topic} does not come to an end")
        if self._stuck:
            raise RuntimeError(f"a producer of {self.topic} died: {self._stuck[0]}")

    def send(self, count: int, seed: str) -> None:
        """So many more plain records, and wait until the broker has them."""
        producer, chance = self._plain_producer(), random.Random(seed)
        for _ in range(count):
            self._send(producer, chance, self._on_delivery)
        _flush(producer)

    def _plain_producer(self) -> Producer:
        # Idempotent and without an end to its patience: what it has taken stands in the log once.
        config = {"enable.idempotence": True, "message.timeout.ms": 0, "linger.ms": 5}
        return Producer({"bootstrap.servers": self._bootstrap, **QUIET, **config})

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._confirmed_at = time.monotonic()
            self.ledger.acknowledged.add(int(message.key()))
        elif error.code() not in _GIVEN_UP:
            self._stuck.append(str(error))

    def _send(self, producer: Producer, chance: random.Random, note: Callable[..., None] | None) -> int:
        number, value = self.ledger.make(chance)
        while True:
            try:
                producer.produce(self.topic, value=value, key=str(number), on_delivery=note)
                return number
            except BufferError:
                producer.poll(0.5)

    def _produce_idempotently(self, chance: random.Random) -> None:
        try:
            producer = self._plain_producer()
            while not self._stopped.wait(STEP_S):
                for _ in range(int(self._rate * STEP_S)):
                    self._send(producer, chance, self._on_delivery)
                producer.poll(0)
                if len(producer) and time.monotonic() > self._confirmed_at + PATIENCE_S:
                    _give_up(producer)
                    producer, self._confirmed_at = self._plain_producer(), time.monotonic()
            _flush(producer)
        except Exception as problem:  # told by ``finish``, in the main thread
            self._stuck.append(repr(problem))

    def _in_transactions(self, chance: random.Random) -> None:
        try:
            producer = self._transactional()
            while not self._stopped.wait(10 * STEP_S):
                if not self._transaction(producer, chance):
                    producer = self._transactional()
        except Exception as problem:  # told by ``finish``, in the main thread
            self._stuck.append(repr(problem))

    def _transactional(self) -> Producer:
        """A new one under the same id: whatever its predecessor left open is aborted first."""
        config = {"transactional.id": f"soak-{self.topic}", "transaction.timeout.ms": 20_000, "linger.ms": 5}
        producer = Producer({"bootstrap.servers": self._bootstrap, **QUIET, **config})
        _patiently(lambda: producer.init_transactions(10))
        return producer

    def _transaction(self, producer: Producer, chance: random.Random) -> bool:
        """False when the producer is of no more use."""
        try:
            producer.begin_transaction()
            numbers = {self._send(producer, chance, None) for _ in range(int(10 * self._rate * STEP_S))}
            if chance.random() < ABORTED:
                producer.flush(10)  # so that what is aborted stands in the log
                _patiently(lambda: producer.abort_transaction(10))
                self.ledger.aborted |= numbers
            else:
                _patiently(lambda: producer.commit_transaction(10))
                self.ledger.acknowledged |= numbers
            return True
        except KafkaException as problem:
            return self._given_up(producer, problem)

    def _given_up(self, producer: Producer, problem: KafkaException) -> bool:
        if not problem.args[0].txn_requires_abort():
            return False
        try:
            _patiently(lambda: producer.abort_transaction(10))
            return True
        except KafkaException:
            return False


def _patiently(call: Callable[[], Any]) -> None:
    """Again and again while Kafka says that it may be tried again. Raises ``KafkaException``."""
    while True:
        try:
            call()
            return
        except KafkaException as problem:
            if not problem.args[0].retriable():
                raise


def _flush(producer: Producer) -> None:
    """Wait until the broker has all; a client that gets no answer is given up."""
    end = time.monotonic() + PATIENCE_S
    while producer.flush(5):
        if time.monotonic() > end:
            _give_up(producer)
            return


def _give_up(producer: Producer) -> None:
    """The log says which of its last records there are.

    librdkafka's idempotent producer was twice still waiting long after a killed broker had come back.
    """
    print(f"a producer gives up {len(producer)} records, which the broker has not confirmed", flush=True)
    producer.purge()
    producer.flush(5)
