"""Who runs which file: the longest first, by measured time, and the browser's last.

A file's tests stay together. Files of one folder of ``TOGETHER`` stay on one worker while the other has something else
to do.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.running.lanes import LANE

DURATIONS = "tests/durations.json"  # file → lane → seconds; `make test-durations` writes it
TOGETHER = ("smoke", "cluster")  # folders whose files one worker runs: each worker would start a stack, or a cluster
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
    """Deals files out in the order of the collection."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._keepers: dict[str, WorkerController] = {}

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.split("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        chosen = next(filter(lambda scope: self._suits(scope, node), self.workqueue), next(iter(self.workqueue)))
        if kind := _kept_together(chosen):
            self._keepers.setdefault(kind, node)
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)

    def _suits(self, scope: str, node: WorkerController) -> bool:
        kind = _kept_together(scope)
        return kind is None or self._keepers.get(kind, node) is node

    def remove_node(self, node: WorkerController) -> str | None:
        """Of a worker that died nothing runs any more."""
        self._keepers = {kind: keeper for kind, keeper in self._keepers.items() if keeper is not node}
        return super().remove_node(node)


def _kept_together(scope: str) -> str | None:
    return next((folder for folder in TOGETHER if folder in scope.split("/")), None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Dealer:
    config.option.loadscopereorder = False  # the collection's order is the one that counts
    return Dealer(config, log)
