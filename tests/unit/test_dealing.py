"""Files are dealt out so that both workers end together, and one alone runs what needs a stack.

A worker more, where there is one, gets what is short, and begins it when the processors have room.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.running import processor
from tests.running.dealing import BROWSER, DURATIONS, Dealer
from tests.running.spare_workers import ROOM, Patience, is_spare

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


def dealt(folder: Path, spare: int = 0) -> list[Worker]:
    """Two workers, and spare ones, after the run, each test as long as half of its file was measured to be."""
    file = folder / DURATIONS
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({name: {"unit": seconds, "deep": 1000.0} for name, seconds in SECONDS.items()}))
    option = SimpleNamespace(loadscopereorder=False, markexpr="not deep and not cluster")
    options = {"numprocesses": 2 + spare, "spare_workers": spare}
    config: Any = SimpleNamespace(
        option=option, rootpath=folder, getvalue=lambda _: ["popen"] * (2 + spare), getoption=options.__getitem__
    )
    workers = [Worker(f"gw{number}") for number in range(2 + spare)]
    dealer, events = Dealer(config, None), list[tuple[float, int, int]]()
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


def test_a_spare_worker_gets_the_shortest_and_nothing_of_the_stack_or_the_browser(tmp_path: Path) -> None:
    *two, spare = dealt(tmp_path, spare=1)
    assert sorted(file for worker in (*two, spare) for file in worker.ran) == sorted(t.split("::")[0] for t in TESTS)
    shortest = list(reversed(OTHERS))
    assert spare.ran == [file for file in shortest[: len(spare.ran) // 2] for _ in range(2)]
    assert spare.ran


def test_a_spare_worker_begins_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    in_use = iter([1.0, ROOM + 0.05, 0.5, 0.1])
    monkeypatch.setattr(processor, "busy", lambda _: next(in_use))
    next(Patience().pytest_runtest_protocol())
    assert list(in_use) == [0.1], "it began at 0.5"


@pytest.mark.parametrize(
    ("workers", "spare", "expected"), [(3, 1, [False, False, True]), (2, 0, [False, False]), (1, 1, [False])]
)
def test_the_last_workers_are_spare_but_never_the_first(workers: int, spare: int, expected: list[bool]) -> None:
    config: Any = SimpleNamespace(getoption={"numprocesses": workers, "spare_workers": spare}.__getitem__)
    assert [is_spare(config, f"gw{number}") for number in range(workers)] == expected
