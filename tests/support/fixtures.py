"""Session fixtures of the whole product on real services."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.embedded.home import temporary_home
from controlplane.embedded.spark_classes import prepare_classes
from tests.support import undertaker
from tests.support.broker import BROKER, Broker
from tests.support.house import House
from tests.support.quick_kafka import Kafka
from tests.support.workers import Workers

LOGS = pytest.StashKey[Path]()  # the house's, from its start
HOUSE = pytest.StashKey[House]()  # of the session, from its first test on
SHOWN = 6000  # characters of a log


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The control plane of the house goes on for a test that uses it."""
    if (house := item.config.stash.get(HOUSE, None)) and "house" in getattr(item, "fixturenames", ()):
        house.go_on()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """While no test uses the house, its control plane stands still and leaves the processors to the tests."""
    yield
    if house := item.config.stash.get(HOUSE, None):
        house.stand_still()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test tells how the control plane last failed: its logs are gone when the run is over."""
    report, logs = (yield), item.config.stash.get(LOGS, None)
    if report.failed and logs is not None:
        report.sections += [
            (f"the newest fault in {path.name}", text) for path in _logs(logs) if (text := _fault(path))
        ]
    return report


def _logs(folder: Path) -> list[Path]:
    return [folder / f"{name}.log" for name in ("web", "worker", "beat")]


def _fault(log: Path) -> str:
    """The end of the log from its last traceback on; nothing where there is none."""
    text = log.read_text(errors="replace") if log.exists() else ""
    at = text.rfind("Traceback (most recent call last)")
    return "" if at < 0 else text[max(0, at - 300) : at + SHOWN]


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """Kafka alone, started once per run; every test uses topics and groups of its own."""
    with temporary_home() as home:
        watch = undertaker.watch_over(home.path)
        kafka = Kafka(home, BROKER)
        kafka.start()
        kafka.wait_ready()
        yield Broker(kafka)
        kafka.stop()
        watch.kill()
        watch.wait()


@pytest.fixture(scope="session")
def house(pytestconfig: pytest.Config, broker: Broker) -> Iterator[House]:
    """Started once per run, at the same broker; every test uses topics, groups and datasources of its own."""
    with temporary_home() as home:
        pytestconfig.stash[LOGS] = home.logs
        prepare_classes(home.log("spark-classes"))  # `make test` has begun to
        house = pytestconfig.stash[HOUSE] = House(home, kafka=broker.kafka)
        yield house
        del pytestconfig.stash[HOUSE]
        house.close()


@pytest.fixture(autouse=True)
def _ends_nothing(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test by which a part of the house has ended fails itself, instead of all those after it."""
    house: House | None = request.getfixturevalue("house") if "house" in request.fixturenames else None
    if house:
        house.wake()
    yield
    ended = house.start_again() if house else []
    assert not ended, f"ended by the end of this test: {', '.join(ended)}"


@pytest.fixture
def stack(house: House) -> House:
    """The product as a browser sees it."""
    return house


@pytest.fixture
def make_workers(house: House) -> Iterator[Callable[..., Workers]]:
    """Makes the workers of a task; after the test none runs and nothing fails on purpose."""
    made: list[Workers] = []

    def make(
        spec: dict[str, Any],
        indexers: int = 1,
        owner: str | None = "",
        ranges: list[tuple[int, int, int]] | None = None,
    ) -> Workers:
        made.append(Workers(house, spec, indexers, owner, ranges))
        return made[-1]

    yield make
    house.proxy.set("pass")
    for workers in made:
        workers.close()
        workers.leave_nothing_to_do()


@pytest.fixture
def stem() -> str:
    """What the names of a test's topics begin with."""
    return f"stem{uuid.uuid4().hex[:8]}"
