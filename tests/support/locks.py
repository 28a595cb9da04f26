"""Something that waits for a lock which the test holds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection, connections, transaction
from django.db.models import Model

from tests.support.waiting import wait_for


def _waiting(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %s::regclass", [table])
        return int(cursor.fetchone()[0])


@contextmanager
def held_up(work: Callable[[], object], at: type[Model]) -> Iterator[None]:
    """``work`` waits where it writes into this table; within, what the test waits for fails after five seconds.

    Afterwards it has ended. For tests with ``transaction=True``.
    """

    def run() -> None:
        work()
        connections.close_all()

    working = threading.Thread(target=run)
    with transaction.atomic():
        with connection.cursor() as cursor:
            table = at._meta.db_table
            cursor.execute(f"LOCK TABLE {table} IN EXCLUSIVE MODE")
            working.start()
            wait_for("it waits for the table", lambda: _waiting(table), 60)
            cursor.execute("SET LOCAL lock_timeout = '5s'")
        yield
    working.join(60)
