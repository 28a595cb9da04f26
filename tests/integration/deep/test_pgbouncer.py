"""A store behind a real PgBouncer: in session mode it does, in transaction mode it is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.management import CommandError
from django.db import OperationalError, connection, connections

from controlplane.common import database
from controlplane.embedded.home import temporary_home
from controlplane.operations.doctor.findings import FAIL, Finding, run_one
from controlplane.operations.doctor.metadata_store import check_metadata_store
from tests.support.django_cast import Cast
from tests.support.pgbouncer import PgBouncer

LOCK = 471_100


@pytest.fixture
def mode(request: pytest.FixtureRequest, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each new connection goes through it."""
    of = connection.settings_dict
    to = {"host": of["HOST"], "port": int(of["PORT"]), "user": of["USER"], "password": of["PASSWORD"]}
    with temporary_home() as home, PgBouncer(home, request.param, **to) as pooler:
        monkeypatch.setitem(of, "PORT", str(pooler.port))
        yield request.param


def shared_sessions() -> list[Finding]:
    return [finding for finding in run_one("", check_metadata_store) if finding.check == "PostgreSQL sessions"]


@pytest.mark.parametrize("mode", ["session"], indirect=True)
def test_with_a_session_for_each_connection_all_is_well(mode: str) -> None:
    database.refuse_shared_sessions()
    assert shared_sessions() == []


@pytest.mark.parametrize("mode", ["transaction"], indirect=True)
def test_with_shared_sessions_nothing_begins(mode: str) -> None:
    """The doctor says it, and no table is made or changed."""
    with pytest.raises(CommandError, match="pool_mode = session"):
        database.refuse_shared_sessions()
    [finding] = shared_sessions()
    assert finding.state == FAIL
    assert "share sessions" in finding.found


@pytest.mark.parametrize("mode", ["transaction"], indirect=True)
def test_a_lock_that_stays_taken_is_an_error(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever changes the pooler's mode later: the job that gets another session than the lock's says so."""
    own, other = (connections.create_connection("default") for _ in range(2))
    for made in (own, other):  # the test's pool has connections that do not go through it
        options = {name: value for name, value in made.settings_dict["OPTIONS"].items() if name != "pool"}
        made.settings_dict = {**made.settings_dict, "OPTIONS": options}
    monkeypatch.setattr(database, "connection", own)

    def locked() -> None:
        with database.try_advisory_lock(LOCK) as won, other.cursor() as cursor:
            assert won
            cursor.execute("BEGIN")
            cursor.execute("SELECT 1")  # it has that session now

    try:
        with pytest.raises(OperationalError, match="share sessions"):
            locked()
    finally:
        own.close()
        other.close()
