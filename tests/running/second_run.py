"""A test of *deep* or *cluster* that fails runs once more, alone, when the others are done.

The closing lines name each with both outcomes and why it failed at first. Failing twice fails the run. Tests of the
other lanes never run again. Nor does any when more than ``MAX_FAILED`` have failed: that is no race.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.running.lanes import AGAIN

MAX_FAILED = 5
OUTCOMES = "HEADGATE_SECOND_RUN"  # the file for the outcomes; set for a second run alone


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        outcomes = os.environ.get(OUTCOMES)
        config.pluginmanager.register(Outcomes(Path(outcomes)) if outcomes else SecondRun())


class Outcomes:
    """In the second run: says which tests failed in it."""

    def __init__(self, file: Path) -> None:
        self._file, self._failed, self._passed = file, set[str](), set[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self._passed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._file.write_text(json.dumps(sorted(self._passed - self._failed)))


class SecondRun:
    """Starts it, and judges the whole run by it."""

    def __init__(self) -> None:
        self._failed: dict[str, pytest.TestReport] = {}
        self._for_good = False  # something failed that does not run again
        self._passed: set[str] = set()
        self._output = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.failed:
            return
        if dict(report.user_properties).get("lane") in AGAIN:
            self._failed.setdefault(report.nodeid, report)
        else:
            self._for_good = True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._for_good |= report.failed

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """The workers have ended. An interrupted run stays so."""
        if not 0 < len(self._failed) <= MAX_FAILED or exitstatus != pytest.ExitCode.TESTS_FAILED:
            return
        self._passed = self._run(session.config)
        if not self._for_good and self._passed == set(self._failed):
            session.exitstatus = pytest.ExitCode.OK

    def _run(self, config: pytest.Config) -> set[str]:
        """Those that pass now."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "outcomes.json"
            command = [sys.executable, "-m", "pytest", "-q", *self._failed]
            environment = {**os.environ, OUTCOMES: str(file)}
            done = subprocess.run(command, cwd=config.rootpath, env=environment, capture_output=True, text=True)
            self._output = done.stdout + done.stderr
            return set(json.loads(file.read_text())) if file.exists() else set()

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not 0 < len(self._failed) <= MAX_FAILED:
            return
        terminalreporter.section("failed, then run once more, alone")
        terminalreporter.write_line(self._output)
        for nodeid, report in self._failed.items():
            outcome = "passed" if nodeid in self._passed else "failed again"
            terminalreporter.write_line(f"failed, then {outcome}: {nodeid}")
            terminalreporter.write_line(f"    at first: {_reason(report)}")


def _reason(report: pytest.TestReport) -> str:
    """The line that pytest shows of a failure in its summary."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr).strip().replace("\n", "\n    ")
