"""Two PostgreSQL servers, of which the second replicates the first: the metadata store as production has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from controlplane.embedded.home import Home
from controlplane.embedded.ports import LOOPBACK
from controlplane.embedded.postgres import DATABASE, ROLE, Postgres
from controlplane.embedded.processes import run_to_end
from tests.support.waiting import wait_for

_STREAMS = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"
_IS_SYNC = "SELECT 1 FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"


class Standby(Postgres):
    """A copy of a running server that follows it. It has its logins."""

    def __init__(self, home: Home, primary: Postgres) -> None:
        super().__init__(home, name="standby")
        self._primary = primary
        self.password, self._superuser_password = primary.password, primary._superuser_password

    def _create_cluster(self, programs: Path, data: Path) -> None:
        source = make_conninfo(self._primary.superuser_dsn.rpartition("/")[0])
        command = [str(programs / "pg_basebackup"), "-d", source, "-D", str(data), "-R", "-X", "stream", "-c", "fast"]
        assert run_to_end(command, self.log, timeout_s=120, folder=Path("/"), account=self._account) == 0, self.log


class ReplicatedPostgres:
    """``synchronous``: the first server answers a commit when the second one has it, as the documentation asks."""

    def __init__(self, home: Home, synchronous: bool) -> None:
        self.first = Postgres(home)
        self.first.start().wait_ready()
        self.second = Standby(home, self.first)
        self.second.start().wait_ready()
        if synchronous:
            self.ask(self.first, "ALTER SYSTEM SET synchronous_standby_names = '*'")
            self.ask(self.first, "SELECT pg_reload_conf()")
        wait_for("the standby follows", lambda: self.ask(self.first, _IS_SYNC if synchronous else _STREAMS), 30)

    @property
    def dsn(self) -> str:
        """One address for both: whoever connects gets the one that takes changes."""
        hosts = ",".join(f"{LOOPBACK}:{server.port}" for server in (self.first, self.second))
        return f"postgresql://{ROLE}:{self.first.password}@{hosts}/{DATABASE}?target_session_attrs=read-write"

    def ask(self, server: Postgres, query: str) -> list[tuple[Any, ...]]:
        """Rows of a statement that the superuser runs; none of a command."""
        with psycopg.connect(server.superuser_dsn, autocommit=True) as connection:
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else []

    def lag_behind(self) -> None:
        """The second server gets nothing more of the first; what it has of it, it keeps."""
        self.ask(self.second, "ALTER SYSTEM SET primary_conninfo = ''")
        self.ask(self.second, "SELECT pg_reload_conf()")
        wait_for("nothing is received", lambda: not self.ask(self.second, "SELECT 1 FROM pg_stat_wal_receiver"), 30)

    def fail_over(self) -> None:
        """The first server's host dies; the second one takes over."""
        self.first.kill()
        self.ask(self.second, "SELECT pg_promote(wait => true, wait_seconds => 120)")

    def stop(self) -> None:
        for server in (self.first, self.second):
            server.stop()


@contextmanager
def replicated(home: Home, synchronous: bool) -> Iterator[ReplicatedPostgres]:
    """Both run; whatever is left of them is stopped at the end."""
    servers = ReplicatedPostgres(home, synchronous)
    try:
        yield servers
    finally:
        servers.stop()
