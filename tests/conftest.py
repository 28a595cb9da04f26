"""Fixtures for every test. Servers start only when a test asks for the database (see ``support.environment``)."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from typing import Any

import django
import hypothesis
import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import Client
from whitenoise.middleware import WhiteNoiseMiddleware

from tests.support import environment

django.setup()
hypothesis.settings.register_profile("house", deadline=None)  # no test asserts how long it takes
hypothesis.settings.load_profile("house")

from tests.support.django_cast import ROLES, Cast, make_cast, speaking_as  # noqa: E402 - models need Django set up

LONG = ("test_first_walk.py", "test_every_page.py", "test_ways.py")  # few tests, which take as long as many


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First what needs no Kafka, whose jars may be on their way; then what takes longest; short tests fill up the rest.

    A file's tests stay together on one worker, so that the longest files must not come last: from Spark's on those
    with the most tests, or with a long one, come first. Last come the browser's: Playwright leaves an event loop
    running, beside which Django's own can't be started.
    """
    tests = Counter(item.path for item in items)
    tests.update({path: 100 for path in tests if path.name in LONG})
    items.sort(key=lambda item: (_turn(item), -tests[item.path] if _turn(item) > 1 else 0))


def pytest_collection_finish() -> None:
    """All tests and all that they import stay until the end: the collector need not go through them again and again."""
    gc.collect()
    gc.freeze()


def _turn(item: pytest.Item) -> int:
    if _uses(item, "playwright"):
        return 5
    folder = item.path.parent.name
    if folder in ("lint", "unit", "contracts"):
        return 0 if folder == "lint" else 1
    if _uses(item, "house"):
        return 2 if folder == "acceptance" else 3
    return 4


def _uses(item: pytest.Item, fixture: str) -> bool:
    return fixture in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> Iterator[None]:
    """pytest-django asks for this before it makes the test database, and ends it after that is gone."""
    # Hashing as slow as a real site's would be most of the run time.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    with environment.servers(), pytest.MonkeyPatch.context() as patch:
        # A browser test before this one may have left Playwright's event loop running in this thread.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", _add_static_files)
        yield


_find_static_files = WhiteNoiseMiddleware.add_files_from_finders
_static_files: dict[str, Any] = {}


def _add_static_files(site: WhiteNoiseMiddleware) -> None:
    """Each test client makes the site anew; its files, which are most of that, are found once."""
    if not _static_files:
        _find_static_files(site)
        _static_files.update(site.files)
    site.files.update(_static_files)


@pytest.fixture
def cast(db: None) -> Cast:
    """Two teams, everybody's roles, and one of each thing that team alpha owns."""
    return make_cast()


@pytest.fixture
def clients(cast: Cast) -> dict[str, Client]:
    """A client for each of ``ROLES``, with a token where there is somebody."""
    return {role: speaking_as(cast, role) for role in ROLES}


@pytest.fixture
def empty_cache(db: None) -> Iterator[None]:
    """Nothing remembered of earlier tests: throttles begin anew."""
    cache.clear()
    yield
    cache.clear()
