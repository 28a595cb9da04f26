"""Tasks' applications by the files of their folders: who is found, told to end, noted, and killed."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controlplane.common import applications
from controlplane.embedded.processes import Child
from controlplane.embedded.waiting import poll_until

LONG_S = 30.0
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
Start = Callable[..., Child]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the process of a task; with ``code`` another than one that sleeps."""
    started: list[Child] = []

    def begin(task: str, code: str = "import time; time.sleep(600)") -> Child:
        child = Child([sys.executable, "-c", code], tmp_path / f"{task}.log")
        started.append(child)
        (tmp_path / task).mkdir()
        applications.record_process(tmp_path / task, child.pid)
        return child

    yield begin
    for child in started:
        child.kill()


def test_they_are_told_to_end_and_it_is_noted(tmp_path: Path, start: Start) -> None:
    one, other = start("one"), start("other")
    assert not applications.was_stopped(tmp_path / "one")
    assert applications.stop_applications(tmp_path, LONG_S) == ["one", "other"]
    assert [one.exit_code, other.exit_code] == [-signal.SIGTERM] * 2
    assert applications.was_stopped(tmp_path / "one")
    assert applications.stop_applications(tmp_path, LONG_S) == []


def test_who_takes_longer_is_killed_and_was_stopped_all_the_same(tmp_path: Path, start: Start) -> None:
    child = start("deaf", DEAF)
    poll_until(lambda: "deaf" in child.output(), timeout_s=LONG_S)
    assert applications.stop_applications(tmp_path, 0.1) == ["deaf"]
    assert child.exit_code == -signal.SIGKILL
    assert applications.was_stopped(tmp_path / "deaf")


def test_a_note_is_of_one_process_alone(tmp_path: Path, start: Start) -> None:
    start("task")
    applications.stop_applications(tmp_path, LONG_S)
    known = json.loads((tmp_path / "task" / "pid").read_text())
    (tmp_path / "task" / "pid").write_text(json.dumps({**known, "create_time": known["create_time"] + 60}))
    assert not applications.was_stopped(tmp_path / "task")
    applications.forget_process(tmp_path / "task")
    assert not list((tmp_path / "task").iterdir())


def test_a_process_of_another_machine_is_left_alone(tmp_path: Path, start: Start) -> None:
    child = start("elsewhere")
    known = json.loads((tmp_path / "elsewhere" / "pid").read_text())
    (tmp_path / "elsewhere" / "pid").write_text(json.dumps({**known, "host": "another"}))
    assert applications.process_in(tmp_path / "elsewhere") is None
    assert applications.stop_applications(tmp_path, LONG_S) == []
    assert child.running


def test_the_time_for_their_end_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_STOP_TIMEOUT", raising=False)
    assert applications.stop_timeout_s() == 25
    monkeypatch.setenv("HEADGATE_STOP_TIMEOUT", "60")
    assert applications.stop_timeout_s() == 60
