"""Files are dealt out so that both workers end together, and one alone runs what needs a stack."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.running.dealing import BROWSER, DURATIONS, Dealer

SMOKE = {"tests/acceptance/smoke/test_s.py": 30.0}
OTHERS = {f"tests/unit/test_{n}.py": n / 4 for n in range(24, 0, -1)}
IN_THE_BROWSER = {f"{BROWSER}smoke/test_wizard.py": 14.0, f"{BROWSER}smoke/test_login.py": 6.0}
SECONDS = {**SMOKE, **OTHERS, **IN_THE_BROWSER}  # in the order of the collection
TESTS = [f"{file}::test_{n}" for file in SECONDS for n in range(2)]


class Worker:
    """Takes orders; like xdist's, it begins a test when it knows the next one, or that there is none."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.ordered: list[int] = []
        self.shutting_down = self.busy = False
        self.ran: list[str] = []
        self.ended = 0.0

    def send_runtest_some(self, tests: list[int]) -> None:
        self.ordered += tests

    def shutdown(self) -> None:
        self.shutting_down = True

    def begun(self) -> Iterator[int]:
        if not self.busy and (len(self.ordered) > 1 or (self.ordered and self.shutting_down)):
            self.busy = True
            yield self.ordered.pop(0)


def dealt(folder: Path) -> list[Worker]:
    """Two workers after the run, each test as long as half of its file was measured to be."""
    file = folder / DURATIONS
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({name: {"unit": seconds, "deep": 1000.0} for name, seconds in SECONDS.items()}))
    option = SimpleNamespace(loadscopereorder=False, markexpr="not deep and not cluster")
    config: Any = SimpleNamespace(option=option, rootpath=folder, getvalue=lambda _: ["popen", "popen"])
    dealer, workers, events = Dealer(config, None), [Worker("one"), Worker("two")], list[tuple[float, int, int]]()
    for worker in workers:
        dealer.add_node(worker)
        dealer.add_node_collection(worker, TESTS)
    dealer.schedule()
    now = 0.0
    while True:
        for number, worker in enumerate(workers):
            for test in worker.begun():
                heapq.heappush(events, (now + SECONDS[TESTS[test].split("::")[0]] / 2, number, test))
        if not events:
            return workers
        now, number, test = heapq.heappop(events)
        workers[number].busy, workers[number].ended = False, now
        workers[number].ran.append(TESTS[test].split("::")[0])
        dealer.mark_test_complete(workers[number], test)


def test_who_has_the_stack_ends_with_the_browser_when_the_other_ends(tmp_path: Path) -> None:
    workers = dealt(tmp_path)
    assert sorted(file for worker in workers for file in worker.ran) == sorted(t.split("::")[0] for t in TESTS)
    [keeper] = [worker for worker in workers if set(SMOKE) & set(worker.ran)]
    assert keeper.ran[-4:] == [file for file in IN_THE_BROWSER for _ in range(2)]
    one, two = (worker.ended for worker in workers)
    assert abs(one - two) < 6, "less than the shortest of the browser's files"
