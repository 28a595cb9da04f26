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
from tests.support.waiting import wait_for

PLACES = ("claimed", "polled", "proposed", "written", "settled", "planned", "committing", "kept")
SOME = 200


@pytest.mark.timeout(600)
def test_the_driver_is_killed_between_any_two_steps(house: House, tmp_path: Path) -> None:
    """One source process or reader is held at each place in turn, and goes on for a moment after its driver's death.

    The driver is Spark's.
    """
    topic = house.topic(partitions=2)
    house.configure_group(f"group-{topic}", share_record_lock_duration_ms=2000)  # else each death costs 30 s
    options = {
        "kafka.bootstrap.servers": house.bootstrap,
        "subscribe": topic,
        "shareGroupId": f"group-{topic}",
        "groupAutoOffsetReset": "earliest",
        "numReaders": "4",
        "bufferLocation": str(tmp_path / "buffer"),
    }
    failpoints, many = tmp_path / "failpoints.json", 0
    for place in PLACES:
        mark = tmp_path / place
        failpoints.write_text(json.dumps({place: f"once:{mark}:sleep:3"}))
        with application(tmp_path, "local[2]", options, **{VARIABLE: str(failpoints)}) as driver:
            for _ in range(2):  # what comes before a commit, and the next micro-batch, which brings it
                house.produce(topic, numbered(many, many + SOME))
                many += SOME
                _await(f"{place}, or the rows before it", driver, tmp_path, _either(mark, tmp_path, many))
            _await(place, driver, tmp_path, mark.exists)
            kill(driver)
    with application(tmp_path, "local[2]", options) as driver:
        _await("all rows", driver, tmp_path, lambda: len(numbers(tmp_path)) >= many)
    assert numbers(tmp_path) == list(range(many))


def _either(mark: Path, folder: Path, many: int) -> Callable[[], bool]:
    return lambda: mark.exists() or len(numbers(folder)) >= many


def _await(what: str, driver: subprocess.Popen[bytes], folder: Path, seen: Callable[[], bool]) -> None:
    """Fails at once when the driver ends by itself."""

    def told() -> str:
        return f"{len(numbers(folder))} rows\n" + (folder / "driver.log").read_text(errors="replace")[-3_000:]

    wait_for(what, lambda: seen() or driver.poll() is not None, 120, told)
    assert driver.poll() is None, told()
