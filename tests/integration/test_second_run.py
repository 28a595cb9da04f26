"""What failed in *deep* runs once more, alone; what failed elsewhere does not. A small project shows it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running.second_run import MAX_FAILED

PROJECT = Path(__file__).resolve().parents[2]
PLUGINS = ("lanes", "spare_workers", "dealing", "costs", "second_run", "frames", "alarms")
FLAKY = """
from pathlib import Path

def test_flaky():
    mark = Path(__file__).with_suffix(".ran")
    ran = mark.exists()
    mark.write_text("")
    assert ran, "the first time"
"""
LATE = """
import time
import pytest

@pytest.mark.timeout(1)
def test_late():
    time.sleep(0.5)
    assert False, "the reason"

def test_good():
    pass
"""
SLOW_REPORTS = """
import time
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call):
    if call.excinfo:
        time.sleep(1)
    return (yield)
"""
BROKEN = """
def test_broken():
    assert False, "each time"

def test_good():
    pass
"""


class Project:
    """Its tests by their files in ``tests``."""

    def __init__(self, folder: Path, **files: str) -> None:
        self.folder = folder
        for name, text in {"pytest.ini": "[pytest]\n", **files}.items():
            file = folder / name.replace("__", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def run(self, *arguments: str) -> tuple[int, str]:
        """Exit code and output."""
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        options = " ".join(["-p xdist", *(f"-p tests.running.{name}" for name in PLUGINS)])
        # Without the plugins that are installed besides: to load them is most of what such a run takes.
        ours = {"PYTHONPATH": str(PROJECT), "PYTEST_ADDOPTS": options, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        environment = {**os.environ, **ours}
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["here", "workers"])
def test_failed_then_passed(tmp_path: Path, workers: tuple[str, ...]) -> None:
    code, said = Project(tmp_path, **{"tests__acceptance__test_it.py": FLAKY}).run(*workers)
    assert code == 0, said
    assert "failed, then passed: tests/acceptance/test_it.py::test_flaky" in said
    assert "at first: AssertionError: the first time" in said


def test_failed_twice(tmp_path: Path) -> None:
    code, said = Project(tmp_path, **{"tests__cluster__test_it.py": BROKEN}).run()
    assert code == 1, said
    assert "failed, then failed again: tests/cluster/test_it.py::test_broken" in said
    assert "test_good" not in said


def test_elsewhere_flaky_is_broken(tmp_path: Path) -> None:
    files = {"tests__unit__test_it.py": FLAKY, "tests__acceptance__test_that.py": FLAKY}
    code, said = Project(tmp_path, **files).run()
    assert code == 1, said
    assert "failed, then passed: tests/acceptance/test_that.py::test_flaky" in said
    assert "then passed: tests/unit" not in said


def test_many_failures_are_no_race(tmp_path: Path) -> None:
    many = "".join(f"def test_{n}():\n    assert False\n\n" for n in range(MAX_FAILED + 1))
    code, said = Project(tmp_path, **{"tests__acceptance__test_it.py": many}).run()
    assert code == 1, said
    assert f"{MAX_FAILED + 1} failed" in said and "once more" not in said


def test_a_failure_just_before_the_deadline_ends_nothing_but_its_test(tmp_path: Path) -> None:
    files = {"tests__unit__test_it.py": LATE, "conftest.py": SLOW_REPORTS}
    code, said = Project(tmp_path, **files).run("-p", "pytest_timeout")
    assert code == 1, said
    assert "1 failed, 1 passed" in said


def test_without_a_lane_nothing_is_collected(tmp_path: Path) -> None:
    code, said = Project(tmp_path, **{"tests__other__test_it.py": BROKEN}).run()
    assert code == pytest.ExitCode.USAGE_ERROR, said
    assert "tests/other/test_it.py::test_broken has no lane" in said


def test_the_longest_file_comes_first_and_each_lane_says_what_it_cost(tmp_path: Path) -> None:
    files = {f"tests__unit__test_{name}.py": "def test_it():\n    pass\n" for name in ("a", "b", "c")}
    files["tests__durations.json"] = '{"tests/unit/test_b.py": {"unit": 9.0}, "tests/unit/test_gone.py": {"unit": 1.0}}'
    project = Project(tmp_path, **files)
    code, said = project.run("-v", "--record-durations")
    assert code == 0, said
    order = [line.split("::")[0][-1] for line in said.replace(".py::", "::").splitlines() if "PASSED" in line]
    assert order == ["b", "a", "c"]
    (unit,) = [line.split() for line in said.splitlines() if line.startswith("unit ")]
    assert unit[1] == "3"
    kept = (tmp_path / "tests" / "durations.json").read_text()
    assert "test_gone" not in kept and "test_a.py" in kept
