"""What a storm of rebalances needs: members that are not Headgate's, and a look at what goes on meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from confluent_kafka import Consumer

from tests.support.house import House
from tests.support.records import published_rows


class Stranger:
    """A member of the group that is not Headgate's: it is dealt partitions, and reads and commits for itself.

    ``holds``: set once it was dealt some.
    """

    def __init__(self, house: House, topic: str, group: str) -> None:
        self.holds = Event()
        self._gone = Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": house.bootstrap,
                "group.id": group,
                "partition.assignment.strategy": "cooperative-sticky",
                "enable.auto.commit": True,
                "auto.commit.interval.ms": 200,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        self._consumer.subscribe([topic])
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._gone.is_set():
            self._consumer.consume(100, 0.2)
            if self._consumer.assignment():
                self.holds.set()

    def leave(self) -> None:
        """In an orderly way."""
        self._gone.set()
        self._thread.join(20)
        self._consumer.close()


@contextmanager
def pulse(house: House, datasource: str, window_s: float) -> Iterator[list[int]]:
    """How many rows are published in each window of so long, one after the other, as they end."""
    windows: list[int] = []
    over = Event()

    def look() -> None:
        before = published_rows(house, datasource)
        while not over.wait(window_s):
            now = published_rows(house, datasource)
            windows.append(now - before)
            before = now

    looking = Thread(target=look, daemon=True)
    looking.start()
    try:
        yield windows
    finally:
        over.set()
        looking.join(30)
