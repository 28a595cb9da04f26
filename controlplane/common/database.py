"""Beside the ORM: a quicker way for statements on the path of every batch, and a lock for what runs once at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from django.conf import settings
from django.core.management import CommandError
from django.db import OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.psycopg_any import BaseTzLoader
from psycopg.abc import Buffer

Cursor = psycopg.Cursor[tuple[Any, ...]]

SHARED_SESSIONS = (
    "DATABASE_URL leads to a pooler whose connections share sessions of PostgreSQL: Headgate's locks stay taken."
)
OWN_SESSIONS = "Give each connection a session of its own; with PgBouncer, pool_mode = session for this database."
_TRIES = 5  # a session that another client has at this moment is not seen


class ClocksDiffer(Exception):
    """This machine's clock and the database's, by much."""

    def __init__(self, lead: timedelta) -> None:
        direction = "ahead of" if lead > timedelta(0) else "behind"
        super().__init__(
            f"This machine's clock is {abs(lead.total_seconds()):.0f} s {direction} PostgreSQL's. Let NTP set both: "
            "with such clocks jobs are dropped, and tasks that report are called lost."
        )


class TimeLoader(BaseTzLoader):
    """Python reads the usual texts much faster than Django's loader, which took a tenth of home's time."""

    def load(self, data: Buffer) -> datetime:
        try:
            return datetime.fromisoformat(str(data, "ascii")).astimezone(self.timezone)
        except ValueError:  # an infinity, for one
            return super().load(data)


def load_times_faster(*, connection: BaseDatabaseWrapper, **_: object) -> None:
    """Receives ``connection_created``."""

    class InItsZone(TimeLoader):
        timezone = connection.timezone

    connection.connection.adapters.register_loader("timestamptz", InItsZone)


@contextmanager
def borrowed_connection() -> Iterator[None]:
    """For a thread in which Django gives no connection back: one that was cut is not used, and none is kept."""
    _close_old()
    try:
        yield
    finally:
        _close_old()


def _close_old() -> None:
    """What Django does before and after a request, but leave a connection in a transaction to its owner."""
    for opened in connections.all(initialized_only=True):
        if not opened.in_atomic_block:
            opened.close_if_unusable_or_obsolete()


def release_connections() -> None:
    """Give this thread's connections back to the pool before a long wait, but leave one in a transaction."""
    for opened in connections.all(initialized_only=True):
        if not opened.in_atomic_block:
            opened.close()


def ask_directly(timeout_s: int) -> timedelta:
    """Like ``clock_lead``, beside the pool: that waits longer for a server that is gone. Raises ``psycopg.Error``."""
    target = connection.get_connection_params() | {"connect_timeout": timeout_s}
    with psycopg.connect(**target) as opened:
        return _lead(lambda: _clock(opened.cursor()))


def shares_sessions() -> bool:
    """Whether connections share sessions, as those of PgBouncer in transaction mode: a lock of a session is never free
    again then. Two connections that are open at once see it by their server process. Raises ``psycopg.Error``.
    """
    target = connection.get_connection_params()
    with psycopg.connect(**target, autocommit=True) as idle:
        for _ in range(_TRIES):
            mine = idle.execute("SELECT pg_backend_pid()").fetchone()
            with psycopg.connect(**target) as other:
                if other.execute("SELECT pg_backend_pid()").fetchone() == mine:
                    return True
    return False


def refuse_shared_sessions(**_: object) -> None:
    """Receives ``pre_migrate``. Raises ``CommandError``: nothing is begun through such a pooler."""
    if shares_sessions():
        raise CommandError(f"{SHARED_SESSIONS} {OWN_SESSIONS}")


@contextmanager
def cursor() -> Iterator[Cursor]:
    """A cursor on Django's connection and in its transaction.

    The server binds the parameters and keeps the plan of what it is asked often; errors are Django's. JSON comes back
    as text.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as opened:
        yield opened


@contextmanager
def pipeline() -> Iterator[Callable[[], Cursor]]:
    """Makes cursors like ``cursor``'s whose statements go in one round trip; an error of any is raised at the end."""
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield lambda: psycopg.Cursor(connection.connection)


def clock() -> datetime:
    """The database's time as it is now, also within a transaction: one clock for all machines."""
    with cursor() as c:
        return _clock(c)


def _clock(cursor: Cursor) -> datetime:
    [(now,)] = cursor.execute("SELECT clock_timestamp()").fetchall()
    current: datetime = now
    return current


def clock_lead() -> timedelta:
    """By how much this machine's clock is ahead of the database's for sure; negative when it is behind."""
    return _lead(clock)


def _lead(ask: Callable[[], datetime]) -> timedelta:
    before, theirs, after = _now(), ask(), _now()
    return max(before - theirs, timedelta(0)) + min(after - theirs, timedelta(0))


def _now() -> datetime:
    return datetime.now(UTC)


def refuse_clock(lead: timedelta) -> None:
    """Raises ``ClocksDiffer`` for a ``clock_lead`` with which jobs expire unseen and tasks are called lost."""
    if abs(lead) > settings.TASK_HEARTBEAT_TIMEOUT / 2:
        raise ClocksDiffer(lead)


@contextmanager
def try_advisory_lock(lock: int) -> Iterator[bool]:
    """True for one caller at a time, by a PostgreSQL advisory lock of this session.

    Raises ``OperationalError`` when another session was asked to give it back: see ``shares_sessions``.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [lock])
        acquired = bool(cursor.fetchone()[0])
        try:
            yield acquired
        finally:
            if acquired:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [lock])
                if not cursor.fetchone()[0]:
                    raise OperationalError(f"{SHARED_SESSIONS} {OWN_SESSIONS}")
