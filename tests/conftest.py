"""Fixtures for every test. Servers start only when a test asks for the database (see ``support.environment``)."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from typing import Any

import django
import hypothesis
import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.test import Client, TransactionTestCase
from django.test import client as django_client
from pytest_django import DjangoDbBlocker
from whitenoise.middleware import WhiteNoiseMiddleware

from controlplane.embedded.postgres import DATABASE
from tests.support import environment
from tests.support.warm_processes import start_cold, start_warm, warm_processes

django.setup()
hypothesis.settings.register_profile("house", deadline=None)  # no test asserts how long it takes
hypothesis.settings.load_profile("house")

from tests.support.asked_here import check_specs_here  # noqa: E402 - models need Django set up
from tests.support.django_cast import ROLES, Cast, speaking_as  # noqa: E402 - so do these
from tests.support.emptying import empty_tables  # noqa: E402 - so do these
from tests.support.shared_cast import Databases, runs_with_cast  # noqa: E402 - so do these

DATABASES = Databases()


def pytest_collection_finish() -> None:
    """All tests and all that they import stay until the end: the collector need not go through them again and again."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """The last collection looks at everything: DuckDB reports what is left, and that hid the result of a run."""
    atexit.unregister(gc.freeze)
    gc.unfreeze()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> Iterator[None]:
    """pytest-django asks for this before it makes the test database, and ends it after that is gone."""
    # Hashing as slow as a real site's would be most of the run time.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    connection.settings_dict["TEST"]["TEMPLATE"] = DATABASE
    with environment.servers(), warm_processes(environment.HOME.path) as python, pytest.MonkeyPatch.context() as patch:
        start_warm(patch, python)
        # A browser test before this one may have left Playwright's event loop running in this thread.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        patch.setattr(TransactionTestCase, "_fixture_teardown", empty_tables)
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", _add_static_files)
        patch.setattr(django_client, "store_rendered_templates", _store_page)
        yield


_find_static_files = WhiteNoiseMiddleware.add_files_from_finders
_static_files: dict[str, Any] = {}


def _add_static_files(site: WhiteNoiseMiddleware) -> None:
    """Each test client makes the site anew; its files, which are most of that, are found once."""
    if not _static_files:
        _find_static_files(site)
        _static_files.update(site.files)
    site.files.update(_static_files)


_store_rendered: Any = vars(django_client)["store_rendered_templates"]  # the stubs lack it


def _store_page(store: dict[str, Any], signal: Any, sender: Any, template: Any, context: Any, **kwargs: Any) -> None:
    """A page's answer keeps the page's context. Django copies that of each part, too: dozens, which no test reads."""
    if "context" not in store:
        _store_rendered(store, signal, sender, template, context, **kwargs)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The empty test database, and one with the cast."""
    with django_db_blocker.unblock():
        DATABASES.make()
    yield
    with django_db_blocker.unblock():
        DATABASES.use(with_cast=False)  # the one that pytest-django removes


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Choose the database before any fixture opens a transaction."""
    DATABASES.use(with_cast=runs_with_cast(item))


@pytest.fixture
def cast(db: None) -> Cast:
    """Two teams, everybody's roles, and one of each thing that team alpha owns. Nothing is cached of them."""
    cache.clear()  # the same ids in each test
    return DATABASES.cast()


@pytest.fixture
def clients(cast: Cast) -> dict[str, Client]:
    """A client for each of ``ROLES``, with a token where there is somebody."""
    return {role: speaking_as(cast, role) for role in ROLES}


@pytest.fixture
def owner(clients: dict[str, Client]) -> Client:
    return clients["owner"]


@pytest.fixture
def viewer(clients: dict[str, Client]) -> Client:
    return clients["viewer"]


@pytest.fixture
def checked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Specs are checked in this process; ``test_check_specs`` shows the process that does it else."""
    check_specs_here(monkeypatch)


@pytest.fixture
def cold_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control plane starts its processes as in production: they load all that they need."""
    start_cold(monkeypatch)


@pytest.fixture
def empty_cache(db: None) -> Iterator[None]:
    """Nothing remembered of earlier tests: throttles begin anew."""
    cache.clear()
    yield
    cache.clear()
