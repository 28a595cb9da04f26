"""What each lane cost: its items, the workers' time and the processor time of all that they started.

``--record-durations`` keeps the workers' time by file, for ``dealing``.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest

from tests.running import processor
from tests.running.dealing import DURATIONS, file_of, measured
from tests.running.lanes import LANE, LANES

COLLECTION = "(collection)"
MAX_FILES = 10
Costs = dict[str, dict[str, list[float]]]  # lane → file → items, seconds, processor seconds


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-durations", action="store_true", help="keep the time of each file in durations.json")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Meter())
    else:
        # Without workers this process is its own.
        meter = None if config.getoption("numprocesses", None) else Meter()
        if meter is not None:
            config.pluginmanager.register(meter)
        config.pluginmanager.register(Ledger(meter))


class Meter:
    """Takes the time of what one worker runs. Processor time is read between files: looking costs some, too."""

    def __init__(self) -> None:
        self.costs: Costs = defaultdict(lambda: defaultdict(lambda: [0, 0.0, 0.0]))
        self._at, self._used = time.monotonic(), processor.used_by(os.getpid())

    def pytest_collection_finish(self) -> None:
        self._charge(COLLECTION, "", 0)
        self._charge_processor(COLLECTION, "")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
        self._at = time.monotonic()  # a worker that waits for work costs nothing
        done = yield
        place = item.stash[LANE], file_of(item)
        self._charge(*place, 1)
        if nextitem is None or place != (nextitem.stash[LANE], file_of(nextitem)):
            self._charge_processor(*place)
        return done

    def _charge(self, lane: str, file: str, items: int) -> None:
        now, cost = time.monotonic(), self.costs[lane][file]
        cost[0] += items
        cost[1] += now - self._at
        self._at = now

    def _charge_processor(self, lane: str, file: str) -> None:
        used = processor.used_by(os.getpid())
        self.costs[lane][file][2] += used - self._used
        self._used = used

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["costs"] = {lane: dict(files) for lane, files in self.costs.items()}


class Ledger:
    """Sums up what the workers measured, and says it at the end."""

    def __init__(self, meter: Meter | None) -> None:
        self._meter = meter
        self._sum: Costs = defaultdict(lambda: defaultdict(lambda: [0, 0.0, 0.0]))
        self._busy = processor.busy()
        self._began, self._ours = time.monotonic(), processor.used_by(os.getpid())
        self._all = processor.used_by_all()

    def pytest_report_header(self) -> str:
        return f"machine: {self._busy:.0%} of {os.cpu_count()} processors busy with other work"

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._add(getattr(node, "workeroutput", {}).get("costs", {}))

    def _add(self, costs: Costs) -> None:
        for lane, files in costs.items():
            for file, cost in files.items():
                self._sum[lane][file] = [sum(pair) for pair in zip(self._sum[lane][file], cost, strict=True)]

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        if self._meter is not None:
            self._add(self._meter.costs)
        terminalreporter.section("lanes")
        terminalreporter.write_line(f"{'lane':14}{'items':>8}{'wall, s':>10}{'processor, s':>14}")
        for lane in [COLLECTION, *LANES]:
            if files := self._sum.get(lane):
                items, wall, used = (sum(cost[n] for cost in files.values()) for n in range(3))
                terminalreporter.write_line(f"{lane:14}{items:8.0f}{wall:10.1f}{used:14.1f}")
        terminalreporter.write_line(self._in_all())
        terminalreporter.write_line("The files with the most processor time:")
        for used, file in self._costliest():
            terminalreporter.write_line(f"{used:10.1f} s  {file}")
        if config.getoption("--record-durations"):
            self._record(config)

    def _costliest(self) -> list[tuple[float, str]]:
        used: dict[str, float] = defaultdict(float)
        for files in self._sum.values():
            for file, cost in files.items():
                used[file] += cost[2] if file else 0.0
        return sorted(((cost, file) for file, cost in used.items()), reverse=True)[:MAX_FILES]

    def _in_all(self) -> str:
        wall, ours = time.monotonic() - self._began, processor.used_by(os.getpid()) - self._ours
        others = max(0.0, processor.used_by_all() - self._all - ours) / wall / (os.cpu_count() or 1)
        return (
            f"In all {wall:.0f} s on the clock, {ours:.0f} s of processor time. A lane's wall time is summed over the "
            f"workers.\nOther work took {others:.0%} of the {os.cpu_count()} processors meanwhile."
        )

    def _record(self, config: pytest.Config) -> None:
        """Files that were not run keep their times; those that are gone lose them."""
        known = {file: lanes for file, lanes in measured(config).items() if (config.rootpath / file).exists()}
        for lane in LANES:
            for file, cost in self._sum.get(lane, {}).items():
                known.setdefault(file, {})[lane] = round(cost[1], 1)
        lines = (f"{json.dumps(file)}: {json.dumps(lanes, sort_keys=True)}" for file, lanes in sorted(known.items()))
        (config.rootpath / DURATIONS).write_text("{\n" + ",\n".join(lines) + "\n}\n")
