"""Records with known sums, and what became of them."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.parquet as pq

from tests.support.house import House, wait_for

START = datetime(2025, 6, 1, tzinfo=UTC)


def numbered(first: int, last: int, days: int = 3) -> Iterator[bytes]:
    """Records ``first`` … ``last - 1``: their number is ``n``, and ``value`` is three times it."""
    for n in range(first, last):
        time = START + timedelta(seconds=n % (days * 86400))
        record = {"time": time.isoformat(), "n": n, "value": 3 * n, "category": f"c{n % 7}"}
        yield json.dumps(record).encode()


def published(house: House, datasource: str, at_least: int, seconds: float = 120) -> int:
    """Wait until this many rows are published."""

    def enough() -> int:
        count = int(house.totals(datasource)["published"])
        return count if count >= at_least else 0

    return wait_for(
        f"{at_least} rows of {datasource}", enough, seconds, lambda: (house.totals(datasource), house.logs(datasource))
    )


class Stream:
    """Produces numbered records in the background, so that a fault meets records under way."""

    def __init__(self, house: House, topic: str, records: int, per_second: int = 10_000) -> None:
        self._house, self._topic, self._records, self._rate = house, topic, records, per_second
        self._pace = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        step = self._rate // 10
        for first in range(0, self._records, step):
            self._house.produce(self._topic, numbered(first, min(self._records, first + step)))
            self._pace.wait(0.1)

    def finish(self) -> None:
        """Wait until all are produced."""
        self._thread.join(120)
        assert not self._thread.is_alive()


def stored_numbers(house: House, datasource: str) -> tuple[Counter[int], int]:
    """Every ``n`` in the datasource's used segments with how often it is there, and the sum of ``value``."""
    rows = house.sql(
        "SELECT s.path, s.rows, s.size_bytes FROM segments_segment s"
        " JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s AND s.used",
        datasource,
    )
    numbers: Counter[int] = Counter()
    total = 0
    for path, count, size in rows:
        file = house.home.segments / path
        assert file.stat().st_size == size, f"{path} has another size than registered"
        table = pq.read_table(file, columns=["n", "value"])
        assert table.num_rows == count, f"{path} has another number of rows than registered"
        numbers.update(table["n"].to_pylist())
        total += sum(table["value"].to_pylist())
    return numbers, total


def check_exactly_once(house: House, datasource: str, expected: range | set[int]) -> dict[str, Any]:
    """I1, I2, I8 and the report: each record stored once, sum right, counters adding up. Returns the totals."""
    wanted = set(expected)
    numbers, total = stored_numbers(house, datasource)
    twice = {n: times for n, times in numbers.items() if times > 1}
    assert not twice, f"stored more than once: {len(twice)}, for example {sorted(twice)[:10]}"
    lost = wanted - set(numbers)
    assert not lost, f"lost: {len(lost)}, for example {sorted(lost)[:10]}. {house.logs(datasource)}"
    assert set(numbers) == wanted
    assert total == 3 * sum(wanted)
    totals = house.totals(datasource)
    assert totals["published"] == len(wanted)
    check_adds_up(totals)
    _check_settled(house, datasource)
    return totals


def check_adds_up(totals: dict[str, Any]) -> None:
    """Every polled record ended in exactly one way."""
    ended = ("published", "rolled_up", "thrown_away", "unparseable", "duplicates", "released")
    assert totals["polled"] == sum(totals[name] for name in ended), totals
    assert totals["adds_up"] is True


def _check_settled(house: House, datasource: str) -> None:
    """I4: what is stored is settled, offset by offset, and no offset twice (the receipts say which)."""
    rows = house.sql(
        "SELECT count(*), count(DISTINCT (r.key_id, o)) FROM segments_receipt r"
        " JOIN segments_progresskey k ON k.id = r.key_id JOIN segments_source s ON s.id = k.source_id"
        " JOIN datasources_datasource d ON d.id = s.datasource_id,"
        " jsonb_array_elements(r.outcomes->'stored') range,"
        " generate_series((range->>0)::bigint, (range->>1)::bigint - 1) o WHERE d.name = %s",
        datasource,
    )
    receipts, distinct = rows[0]
    assert receipts == distinct, "an offset is in two segments"
    assert receipts == house.totals(datasource)["published"]
