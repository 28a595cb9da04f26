"""``kafka-sharegroup`` whose driver dies between any two steps of its source and readers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ingestion.failpoints import VARIABLE
from tests.support.house import House
from tests.support.records import numbered
from tests.support.spark_driver import application, kill, numbers
from tests.support.spark_session import committed
from tests.support.waiting import wait_for

PLACES = ("claimed", "polled", "proposed", "written", "settled", "planned", "committing", "kept")
SOME = 20


@pytest.mark.timeout(600)
def test_the_driver_is_killed_between_any_two_steps(house: House, tmp_path: Path) -> None:
    """A source process or reader stands at each place when its driver dies, and goes on for a moment after that.

    Each stands in the way of one query at most, so there are as many queries, each with a topic of its own: one is
    left that reaches the last place. The driver is Spark's.
    """
    topics = [house.topic(partitions=2) for _ in PLACES]
    for topic in topics:
        house.configure_group(f"group-{topic}", share_record_lock_duration_ms=2000)  # else a death costs 30 s
    queries = {topic: _options(house, topic, tmp_path) for topic in topics}
    paused = {place: tmp_path / f"{place}.paused" for place in PLACES}
    failpoints, many = tmp_path / "failpoints.json", 0
    places = {place: f"once:{tmp_path / place}:pause:{file}" for place, file in paused.items()}
    failpoints.write_text(json.dumps(places))

    def more() -> None:
        nonlocal many
        for topic in topics:
            house.produce(topic, numbered(many, many + SOME))
        many += SOME

    def all_stand() -> bool:
        """What comes before a commit, and then what the next micro-batch brings."""
        more()
        return all(file.exists() for file in paused.values())

    def all_are_there() -> bool:
        return all(committed(tmp_path / topic / "rows") >= many for topic in topics)

    with application(tmp_path, "local[2]", queries, **{VARIABLE: str(failpoints)}) as driver:
        _await("a process stands at each place", driver, tmp_path, all_stand)
        kill(driver, paused.values())
    more()
    with application(tmp_path, "local[2]", queries) as driver:
        _await("all rows", driver, tmp_path, all_are_there)
    for topic in topics:
        assert numbers(tmp_path / topic) == list(range(many))


def _options(house: House, topic: str, folder: Path) -> dict[str, str]:
    """A reader in a process of its own, and one that goes on when it is stopped."""
    return {
        "kafka.bootstrap.servers": house.bootstrap,
        "subscribe": topic,
        "shareGroupId": f"group-{topic}",
        "groupAutoOffsetReset": "earliest",
        "bufferLocation": str(folder / topic / "buffer"),
        "numReaders": "2",
        "readerProcesses": "1",
    }


def _await(what: str, driver: subprocess.Popen[bytes], folder: Path, seen: Callable[[], bool]) -> None:
    """Fails at once when the driver ends by itself."""

    def told() -> str:
        reached = [place for place in PLACES if (folder / place).exists()]
        return f"reached: {reached}\n" + (folder / "driver.log").read_text(errors="replace")[-3_000:]

    wait_for(what, lambda: seen() or driver.poll() is not None, 120, told)
    assert driver.poll() is None, told()
