"""Who runs which file: the longest first, by measured time, and the browser's last.

A file's tests stay together. Files of one folder of ``TOGETHER`` stay on one worker while the other has something else
to do. Of these, the browser's begin as soon as they last as long as all that is left for the other worker. A spare
worker gets the shortest of the others: nobody waits for it long at the end.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest
from _pytest.mark.expression import Expression
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.running.lanes import LANE, LANES
from tests.running.spare_workers import is_spare

DURATIONS = "tests/durations.json"  # file → lane → seconds; `make test-durations` writes it
TOGETHER = ("smoke", "cluster")  # folders whose files one worker runs: each worker would start a stack, or a cluster
BROWSER = "tests/browser/"
UNMEASURED = 0.2  # seconds of a test in a file that nobody has measured


def measured(config: pytest.Config) -> dict[str, dict[str, float]]:
    file = config.rootpath / DURATIONS
    found: dict[str, dict[str, float]] = json.loads(file.read_text()) if file.exists() else {}
    return found


def file_of(item: pytest.Item) -> str:
    return str(item.path.relative_to(item.config.rootpath))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Last come the browser's: Playwright leaves an event loop running, beside which Django's own can't be started."""
    known = measured(config)
    browser = {file_of(item) for item in items if "playwright" in getattr(item, "fixturenames", ())}
    seconds: dict[str, float] = defaultdict(float)
    for (file, lane), count in Counter((file_of(item), item.stash[LANE]) for item in items).items():
        seconds[file] += known.get(file, {}).get(lane, UNMEASURED * count)

    def turn(item: pytest.Item) -> tuple[bool, float, str]:
        file = file_of(item)
        return file in browser, -seconds[file], file

    items.sort(key=turn)


class Dealer(LoadScopeScheduling):
    """Deals files out in the order of the collection, to a worker that has begun the last test of what it has."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._keepers: dict[str, WorkerController] = {}
        self._browsing: set[WorkerController] = set()  # they run no other file any more
        self._measured = _measured_by_file(config)

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.split("::")[0]

    def _reschedule(self, node: WorkerController) -> None:
        """What a worker has ahead of it, the other can't run: one test is enough, and it waits for that one."""
        if self._pending_of(self.assigned_work[node]) > 1:
            return
        if self.workqueue and not node.shutting_down and self._choice(node) is None:
            node.shutdown()
        super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        chosen = self._choice(node) or next(iter(self.workqueue))
        if kind := _kept_together(chosen):
            self._keepers.setdefault(kind, node)
        if chosen.startswith(BROWSER):
            self._browsing.add(node)
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)

    def _choice(self, node: WorkerController) -> str | None:
        """The file for a worker; None where another one has to run all that is left."""
        suitable = [scope for scope in self.workqueue if self._suits(scope, node)]
        if is_spare(self.config, node.gateway.id):
            short = [scope for scope in suitable if not (_kept_together(scope) or scope.startswith(BROWSER))]
            return short[-1] if short else None
        kept = [scope for scope in suitable if _kept_together(scope)]
        if kept and self._seconds(kept) >= self._seconds(scope for scope in self.workqueue if scope not in kept):
            return kept[0]
        if node in self._browsing:
            suitable = [scope for scope in suitable if scope.startswith(BROWSER)]
            if not suitable and any(not other.shutting_down for other in set(self.nodes) - self._browsing):
                return None
        return next(iter(suitable), next(reversed(self.workqueue)))  # the shortest of another's

    def _suits(self, scope: str, node: WorkerController) -> bool:
        kind = _kept_together(scope)
        return kind is None or self._keepers.get(kind, node) is node

    def _seconds(self, scopes: Iterable[str]) -> float:
        return sum(self._measured.get(scope, UNMEASURED * len(self.workqueue[scope])) for scope in scopes)

    def remove_node(self, node: WorkerController) -> str | None:
        """Of a worker that died nothing runs any more."""
        self._keepers = {kind: keeper for kind, keeper in self._keepers.items() if keeper is not node}
        self._browsing.discard(node)
        return super().remove_node(node)


def _measured_by_file(config: pytest.Config) -> dict[str, float]:
    """Seconds in the lanes that this run has chosen with ``-m``."""
    chosen = Expression.compile(config.option.markexpr or " or ".join(LANES))
    lanes = {lane for lane in LANES if chosen.evaluate(partial(_is_named, lane))}
    took = {file: [took[lane] for lane in lanes & set(took)] for file, took in measured(config).items()}
    return {file: sum(seconds) for file, seconds in took.items() if seconds}


def _is_named(lane: str, name: str, /, **_: Any) -> bool:
    return lane == name


def _kept_together(scope: str) -> str | None:
    return next((folder for folder in TOGETHER if folder in scope.split("/")), None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Dealer:
    config.option.loadscopereorder = False  # the collection's order is the one that counts
    return Dealer(config, log)
