"""From POST to the end of what is short: a batch task of one small file, a replay of its quarantine, and a repair.

The repair is of a share group's one hole, the mark of a transaction. Nobody posts it: its time begins when it is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Producer

from benchmarks.measure import await_rows, record
from tests.support.house import House
from tests.support.waiting import wait_for

BAD_EVERY = 20  # of so many records one has a time that the batch task's spec can't read
LOCK_MS = 15_000  # the shortest that a broker takes by default: of a shorter one, no reader begins
MARGIN = {"HEADGATE_REPAIR_MARGIN": "1"}  # else a hole is old enough for a repair only after some more seconds
_ENDED = """
    SELECT t.ended_at, t.status, t.error, t.created_at, t.launched_at, t.started_at, f.started_at, f.last_publish_at
    FROM tasks_task t LEFT JOIN publishing_indexerfence f ON f.task_id = t.id
    WHERE t.id = %s AND t.ended_at IS NOT NULL
"""
_STEPS = ("created", "launched", "heartbeat", "reads", "published")
_REPAIR = """
    SELECT t.id, t.created_at FROM tasks_task t JOIN datasources_datasource d ON d.id = t.datasource_id
    WHERE d.name = %s AND t.kind = 'repair' ORDER BY t.created_at
"""


@dataclass(frozen=True)
class ShortTasks:
    """Seconds, and the datasources that hold ``count`` records each afterwards."""

    batch_s: float
    replay_s: float
    repair_s: float
    datasources: tuple[str, str]


def short_tasks(house: House, name: str, count: int, await_spare: Callable[[House], object]) -> ShortTasks:
    """One of each. ``await_spare`` is called before each; the repair's supervisor has one, too."""
    await_spare(house)
    _write_file(house, name, count)
    batch_s = _timed(house, lambda: house.submit(_batch_spec(house, name, "iso")))
    await_spare(house)
    replay_s = _timed(house, lambda: _replay(house, name))
    topic = house.topic(f"{name}-repair")
    await_spare(house)
    return ShortTasks(batch_s, replay_s, _repair(house, topic, count, await_spare), (name, topic))


def _timed(house: House, post: Callable[[], str]) -> float:
    posted = datetime.now(UTC)
    return _seconds(house, post(), posted)


def _seconds(house: House, task: str, since: datetime) -> float:
    """Until it ended, by the store."""
    ended_at, status, error, *times = wait_for(f"{task} has ended", lambda: house.sql(_ENDED, task), 180)[0]
    if status != "SUCCESS":
        raise RuntimeError(f"{task}: {error}")
    steps = {name: at for name, at in zip((*_STEPS, "ended"), (*times, ended_at), strict=True) if at is not None}
    print(task, {name: round((at - since).total_seconds(), 2) for name, at in steps.items()}, flush=True)
    return float((ended_at - since).total_seconds())


def _write_file(house: House, name: str, count: int) -> None:
    folder = house.input / name
    folder.mkdir()
    lines = [_with_other_time(record(n)) if n % BAD_EVERY == 0 else record(n) for n in range(count)]
    (folder / "rows.json").write_bytes(b"\n".join(lines))


def _with_other_time(line: bytes) -> bytes:
    """Its time as people write it, which is not ISO."""
    text = line.decode()
    at = datetime.fromisoformat(text[9:33])
    return f'{{"time":"{at:%Y/%m/%d %H:%M:%S}{text[33:]}'.encode()


def _batch_spec(house: House, name: str, time_format: str) -> dict[str, Any]:
    return {
        "type": "index_parallel",
        "spec": {
            "dataSchema": {
                "dataSource": name,
                "timestampSpec": {"column": "time", "format": time_format},
                "dimensionsSpec": {"useSchemaDiscovery": True},
                "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "NONE", "rollup": False},
            },
            "ioConfig": {
                "type": "index_parallel",
                "inputSource": {"type": "local", "baseDir": str(house.input / name), "filter": "*.json"},
                "inputFormat": {"type": "json"},
            },
        },
    }


def _replay(house: House, name: str) -> str:
    body = {"mode": "ingest", "filter": {"state": "kept"}, "spec": _batch_spec(house, name, "yyyy/MM/dd HH:mm:ss")}
    [task] = house.api("POST", f"/api/v1/datasources/{name}/quarantine/replay/", body)["tasks"]
    return str(task)


def _repair(house: House, topic: str, count: int, await_spare: Callable[[House], object]) -> float:
    """The mark of a transaction is above all that is stored: a hole, once the reader has been idle for long enough."""
    producer = Producer({"bootstrap.servers": house.bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    house.supervise(house.spec(topic, lock_ms=LOCK_MS, delivery_limit=2, useEarliestOffset=True))
    house.running_task(topic)  # which may have taken a spare
    await_spare(house)
    producer.begin_transaction()
    for n in range(count):
        producer.produce(topic, record(n), partition=0)
    producer.commit_transaction(60)
    await_rows(house, topic, count)
    task, created_at = wait_for("a repair", lambda: house.sql(_REPAIR, topic), 120)[0]
    seconds = _seconds(house, task, created_at)
    house.rest()
    return seconds
