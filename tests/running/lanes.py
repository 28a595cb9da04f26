"""Each test has one lane, by its folder and fixtures. ``pytest -m LANE`` runs one lane."""

from __future__ import annotations

import pytest

LANES = {
    "lint": "style, types, layers, and rules over source files and documentation",
    "unit": "no process, no server",
    "golden": "cases recorded from a real Druid",
    "db": "PostgreSQL and Valkey alone, and small servers of the test's own",
    "broker": "a Kafka broker and PostgreSQL; no web, worker or beat",
    "smoke": "one way through each part on Spark and in the browser",
    "deep": "kills, storms, every page, the whole stack",
    "cluster": "a Spark cluster",
}
AGAIN = ("deep", "cluster")  # a test that failed there runs once more

_BY_FOLDER = {
    "lint": "lint",
    "golden": "golden",
    "smoke": "smoke",
    "deep": "deep",
    "cluster": "cluster",
    "acceptance": "deep",
    "browser": "deep",
}
_BY_FIXTURES = ("unit", "contracts", "integration")
_STACK = {"house", "stack", "playwright"}
_BROKER = {"broker", "secured", "guarded"}
_DATABASE = {"db", "transactional_db", "live_server"}
LANE = pytest.StashKey[str]()


def lane_of(item: pytest.Item) -> str:
    """The innermost folder that names a lane decides, else the fixtures. Raises UsageError where neither does."""
    folders = item.path.relative_to(item.config.rootpath / "tests").parts[:-1]
    for folder in reversed(folders):
        if folder in _BY_FOLDER:
            return _BY_FOLDER[folder]
    if folders[:1] not in [(name,) for name in _BY_FIXTURES]:
        raise pytest.UsageError(f"{item.nodeid} has no lane: tests/running/lanes.py does not know its folder.")
    fixtures = set(getattr(item, "fixturenames", ()))
    if fixtures & _STACK:
        return "deep"
    if fixtures & _BROKER:
        return "broker"
    if folders[0] == "integration" or fixtures & _DATABASE or item.get_closest_marker("django_db"):
        return "db"
    return "unit"


def pytest_configure(config: pytest.Config) -> None:
    for name, holds in LANES.items():
        config.addinivalue_line("markers", f"{name}: {holds}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before ``-m`` chooses among the items."""
    for item in items:
        item.stash[LANE] = lane = lane_of(item)
        item.add_marker(lane)
        item.user_properties.append(("lane", lane))
