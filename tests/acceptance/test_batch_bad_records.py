"""Records of files that can't be read come into quarantine once, whatever is killed. On real services."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.house import House
from tests.support.waiting import wait_for

START_MS = 1_735_689_600_000  # 2025-01-01
FILES, LINES, EACH = 3, 9_000, 600  # every so many lines one is bad
BAD = FILES * LINES // EACH
_KEPT = """
    SELECT q.place, q."offset", q.reason, convert_from(q.payload, 'UTF8') FROM segments_quarantinedrecord q
    JOIN datasources_datasource d ON d.id = q.datasource_id WHERE d.name = %s
"""
_ROWS = """
    SELECT sum(s.rows) FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id
    WHERE d.name = %s AND s.used
"""


def lines_of(number: int) -> list[bytes]:
    good = [{"t": START_MS + n, "n": number * LINES + n} for n in range(LINES)]
    return [
        f'{{"file": {number}, "line": {n}, '.encode() if n % EACH == EACH - 1 else json.dumps(record).encode()
        for n, record in enumerate(good)
    ]


def write(folder: Path) -> list[tuple[str, int, str]]:
    """Several files; of each of their bad lines the file, the byte where it begins, and itself."""
    folder.mkdir()
    bad = []
    for number in range(FILES):
        name, at = f"{number}.json", 0
        lines = lines_of(number)
        (folder / name).write_bytes(b"\n".join(lines) + b"\n")
        for n, line in enumerate(lines):
            if n % EACH == EACH - 1:
                bad.append((name, at, line.decode()))
            at += len(line) + 1
    return bad


def spec(house: House, datasource: str) -> dict[str, Any]:
    return {
        "type": "index_parallel",
        "spec": {
            "dataSchema": {
                "dataSource": datasource,
                "timestampSpec": {"column": "t", "format": "millis"},
                "dimensionsSpec": {"dimensions": [{"name": "n", "type": "long"}]},
                "granularitySpec": {"segmentGranularity": "DAY", "rollup": False},
            },
            "ioConfig": {
                "type": "index_parallel",
                "inputSource": {"type": "local", "baseDir": str(house.input / datasource), "filter": "*.json"},
                "inputFormat": {"type": "json"},
            },
            "tuningConfig": {
                "type": "index_parallel",
                "maxNumConcurrentSubTasks": 2,
                "maxRowsPerSegment": 10_000,
                "splitHintSpec": {"type": "maxSize", "maxSplitSize": 100_000},
            },
        },
    }


@pytest.mark.timeout(900)
def test_bad_records_of_files_are_kept_once_whatever_is_killed(house: House, tmp_path: Path) -> None:
    """Row 34 of the failure matrix: a process is killed that has read its split and holds its bad records; then one
    that has written its part; the publish's answer is lost. Under Spark, which runs a killed process's part anew.
    """
    name = house.make_topic(f"bad-records-{os.getpid()}")
    bad = write(house.input / name)
    held = {place: tmp_path / place for place in ("read", "bin_written")}
    house.fail_at(f"{name}/batch", **{place: f"hold_once:{file}" for place, file in held.items()})
    house.proxy.set("lose_answer")
    task = house.submit(spec(house, name))
    for place in held:
        wait_for(place, held[place].exists, 120, lambda: house.logs(name))
        assert not house.sql(_KEPT, name)
        os.kill(int(held[place].read_text()), signal.SIGKILL)
    wait_for("the publish has been sent", lambda: house.proxy.hits, 90, lambda: house.logs(name))
    house.ended(task)

    kept = house.sql(_KEPT, name)
    found = sorted((Path(place.partition(", ")[0]).name, at, payload) for place, at, _, payload in kept)
    assert found == bad and all(f"byte {at}" in place for place, at, *_ in kept), kept
    assert {reason for _, _, reason, _ in kept} == {"unparseable"}
    assert house.sql(_ROWS, name) == [(FILES * LINES - BAD,)]
    report = house.api("GET", f"/druid/indexer/v1/task/{task}/reports")["ingestionStatsAndErrors"]["payload"]
    stats = report["rowStats"]["totals"]["buildSegments"]
    assert (stats["processed"], stats["unparseable"], stats["thrownAway"]) == (FILES * LINES - BAD, BAD, 0)
    ours = house.api("GET", f"/druid/indexer/v1/task/{task}/reports")["headgate"]["payload"]
    assert (ours["polled"], ours["unparseable"], ours["quarantined"]) == (FILES * LINES, BAD, BAD) and ours["adds_up"]
