"""Records with known sums, and what became of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from confluent_kafka import Producer

from tests.support.broker import Broker
from tests.support.house import House
from tests.support.waiting import PATIENCE, wait_for

START = datetime(2025, 6, 1, tzinfo=UTC)


def numbered(first: int, last: int, days: int = 3) -> Iterator[bytes]:
    """Records ``first`` … ``last - 1``: their number is ``n``, and ``value`` is three times it."""
    for n in range(first, last):
        time = START + timedelta(seconds=n % (days * 86400))
        record = {"time": time.isoformat(), "n": n, "value": 3 * n, "category": f"c{n % 7}"}
        yield json.dumps(record).encode()


def published_rows(house: House, datasource: str) -> int:
    """Rows so far, by the metadata store."""
    rows = house.sql(
        "SELECT coalesce(sum(f.published), 0) FROM publishing_indexerfence f"
        " JOIN datasources_datasource d ON d.id = f.datasource_id WHERE d.name = %s",
        datasource,
    )
    return int(rows[0][0])


def published(house: House, datasource: str, at_least: int, seconds: float = 120) -> int:
    """Wait until this many rows are published."""

    def enough() -> int:
        count = published_rows(house, datasource)
        return count if count >= at_least else 0

    return wait_for(
        f"{at_least} rows of {datasource}", enough, seconds, lambda: (house.totals(datasource), house.logs(datasource))
    )


class Stream:
    """Produces numbered records in the background, so that a fault meets records under way."""

    def __init__(self, broker: Broker, topic: str, records: int, per_second: int = 4_000) -> None:
        self._broker, self._topic, self._records, self._rate = broker, topic, records, per_second
        self._pace = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        step = self._rate // 10
        for first in range(0, self._records, step):
            self._broker.produce(self._topic, numbered(first, min(self._records, first + step)))
            self._pace.wait(0.1)

    def finish(self) -> None:
        """Wait until all are produced."""
        self._thread.join(120 * PATIENCE)
        assert not self._thread.is_alive()


class Endless:
    """Records that come until it is told to finish. ``first``: the first one's number.

    Each once, also while the broker is killed: a producer that is not idempotent sends again what had no answer.
    """

    def __init__(self, broker: Broker, topic: str, first: int = 0) -> None:
        self._broker, self._topic = broker, topic
        config = {"bootstrap.servers": broker.bootstrap, "log_level": 0, "linger.ms": 5, "enable.idempotence": True}
        self._producer = Producer(config)
        self._records = first
        self._enough = threading.Event()
        self._whole = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._enough.wait(0.2):
            self._broker.produce(self._topic, numbered(self._records, self._records + 100), by=self._producer)
            self._records += 100
        self._whole = True

    def finish(self) -> int:
        """The number behind the last one's."""
        self._enough.set()
        self._thread.join(60 * PATIENCE)
        assert not self._thread.is_alive()
        assert self._whole, "some could not be produced"
        return self._records
