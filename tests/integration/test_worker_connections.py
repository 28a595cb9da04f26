"""The Celery worker's connections to the metadata store: kept over many jobs, and replaced when they are of no use."""

from __future__ import annotations

from contextlib import suppress

import psutil

from tests.support.house import House
from tests.support.waiting import wait_for

# That of a process which has asked again long after it connected: rounds come every two seconds.
_KEPT = "SELECT pid, client_port FROM pg_stat_activity WHERE query_start > backend_start + interval '5 seconds'"


def kept(house: House) -> set[int]:
    """The backends of the worker's processes that have served several jobs.

    Its first process is left out: it renews the lease of its host's name every two seconds, with jobs or without.
    """
    worker = psutil.Process(house.worker.pid)
    ports, of_first = set[int](), set[int]()
    for process in [worker, *worker.children(recursive=True)]:
        with suppress(psutil.Error):  # it has ended meanwhile
            found = {opened.laddr.port for opened in process.net_connections()}
            ports |= found
            of_first |= found if process.children() else set()
    return {backend for backend, port in house.sql(_KEPT) if port in ports - of_first}


def failures(house: House) -> int:
    return house.worker.log.read_text().count("raised unexpected")


def rests(house: House, backends: set[int]) -> bool:
    """Whether none is within a job: there it may be idle between two statements, while Kafka is asked."""
    quiet = house.sql(
        "SELECT bool_and(state = 'idle' AND state_change < now() - interval '5 seconds') FROM pg_stat_activity"
        " WHERE pid = ANY(%s)",
        list(backends),
    )
    return quiet[0][0] is True


def test_a_connection_lasts_for_many_jobs_and_a_cut_one_fails_none(house: House) -> None:
    before = wait_for("a connection that is kept", lambda: kept(house))
    house.beat.pause()
    try:
        wait_for("no job is under way", lambda: rests(house, before))
        failed = failures(house)
        assert all(cut for backend in before for (cut,) in house.sql("SELECT pg_terminate_backend(%s)", backend))
    finally:
        house.beat.resume()
    wait_for("another one instead", lambda: kept(house) - before)
    assert failures(house) == failed
