"""The cast, committed once, in a database of its own beside the empty one.

A test that asks for ``cast`` runs in that database and is rolled back like every other. Tests that commit run in the
empty database, where the cast is made for each of them.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest
from django.db import connection

from tests.support.django_cast import Cast, make_cast

# Each table's ids begin elsewhere: none is taken for that of another, or for a small number.
_NUMBER_APART = """
    SELECT setval(oid, 1000 * row_number() OVER (ORDER BY relname)) FROM pg_class
    WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace
"""
_COMMITTING = {"transactional_db", "live_server", "django_db_reset_sequences", "django_db_serialized_rollback"}


@dataclass
class Databases:
    """Which of the two is in use. Both are there from ``make`` on."""

    wanted_cast: bool = False
    _empty: str = ""
    _with_cast: str = ""
    _cast: bytes = b""  # pickled: faster to read than a deep copy is to make

    def make(self) -> None:
        """Copy the empty database, and commit the cast to the copy."""
        self._empty = str(connection.settings_dict["NAME"])
        _leave()
        connection.creation.clone_test_db("cast", verbosity=0)
        self._with_cast = str(connection.creation.get_test_db_clone_settings("cast")["NAME"])
        _enter(self._with_cast)
        with connection.cursor() as cursor:
            cursor.execute(_NUMBER_APART)
        self._cast = pickle.dumps(make_cast())
        self._apply()

    def use(self, with_cast: bool) -> None:
        self.wanted_cast = with_cast
        if self._empty:
            self._apply()

    def cast(self) -> Cast:
        """Objects of the test's own: what it changes in them is gone after it, as in the database."""
        if not self.wanted_cast:
            return make_cast()
        made: Cast = pickle.loads(self._cast)
        return made

    def _apply(self) -> None:
        name = self._with_cast if self.wanted_cast else self._empty
        if connection.settings_dict["NAME"] != name:
            _leave()
            _enter(name)


def _leave() -> None:
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's, which the stubs lack


def _enter(name: str) -> None:
    connection.settings_dict["NAME"] = name


def runs_with_cast(item: pytest.Item) -> bool:
    """Whether it asks for the cast and commits nothing."""
    fixtures = set(getattr(item, "fixturenames", ()))
    commits = any(mark.kwargs.get("transaction") for mark in item.iter_markers("django_db"))
    return "cast" in fixtures and not fixtures & _COMMITTING and not commits
