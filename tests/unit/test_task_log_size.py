"""A task's log is bounded although whoever writes it holds it open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from controlplane.tasks.launcher import limit_log, log_of


def test_the_end_of_a_large_log_is_kept_and_what_comes_then(settings: Any, tmp_path: Path) -> None:
    settings.TASK_DIR, settings.TASK_LOG_BYTES = tmp_path, 1000
    (tmp_path / "task").mkdir()
    lines = [f"line {number:03}\n".encode() for number in range(200)]
    with log_of("task").open("ab", buffering=0) as log:
        log.write(b"".join(lines[:100]))
        limit_log("task")
        assert log_of("task").read_bytes() == b"".join(lines[:100])  # 900 bytes
        log.write(b"".join(lines[100:]))
        limit_log("task")
        log.write(b"the next\n")
    said = log_of("task").read_text().splitlines()
    assert said[0].endswith("bytes before this were dropped: HEADGATE_TASK_LOG_MEBIBYTES)")
    assert said[-2:] == ["line 199", "the next"]
    assert said[1:-1] == [line.decode().strip() for line in lines[-len(said[1:-1]) :]]
    assert len(b"".join(lines)) // 2 > log_of("task").stat().st_size > 500


def test_a_task_without_a_log_has_nothing_to_bound(settings: Any, tmp_path: Path) -> None:
    settings.TASK_DIR = tmp_path
    limit_log("none")
    assert not list(tmp_path.iterdir())
