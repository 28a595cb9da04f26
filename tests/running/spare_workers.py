"""The last ``--spare-workers N`` workers run tests only while the processors have room for them.

Tests of the deep lanes wait a good part of their time, for a lease to end or a broker to come back. One more worker
uses that. On a machine that is slow, or busy with other work, it waits, so that the others' processes get their turn.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from tests.running import processor

ROOM = 0.9  # of the processors may be in use when a test begins
LOOK_S = 4.0  # seconds: what takes a moment says nothing


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--spare-workers", type=int, default=0, help="how many workers wait until there is room for them")


def is_spare(config: pytest.Config, worker: str) -> bool:
    """Whether the worker, such as ``gw2``, is one of the last ones. The first one never is."""
    workers = config.getoption("numprocesses") or int(getattr(config, "workerinput", {}).get("workercount", 1))
    return int(worker.removeprefix("gw")) >= max(1, workers - config.getoption("spare_workers"))


def pytest_configure(config: pytest.Config) -> None:
    worker = getattr(config, "workerinput", {}).get("workerid")
    if worker and is_spare(config, worker):
        config.pluginmanager.register(Patience())


class Patience:
    """Waits before each test."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, Any]:
        while processor.busy(LOOK_S) > ROOM:
            pass
        return (yield)
