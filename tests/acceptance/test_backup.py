"""The metadata store is lost, and restored from a backup that is older than what was published since."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from controlplane.common.applications import running_applications
from controlplane.embedded.postgres import DATABASE, ROLE, installation
from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.lanes import lane_spec
from tests.support.records import numbered, published, published_rows
from tests.support.waiting import wait_for
from tests.support.workers import Workers

_REPAIRED = (
    "SELECT 1 FROM sources_sourceevent e JOIN datasources_datasource d ON d.id = e.datasource_id"
    " WHERE d.name = %s AND e.kind = 'repaired'"
)


def run(program: str, *arguments: str) -> None:
    subprocess.run([installation() / "bin" / program, *arguments], check=True, capture_output=True, text=True)


def lose_everything(house: House) -> None:
    """The store with all that is in it, and all processes."""
    for app in (house.beat, house.worker, house.web):
        app.kill()
    for task, _ in running_applications(house.home.tasks):
        house.kill_application(task)
    with psycopg.connect(house.postgres.superuser_dsn, autocommit=True) as connection:
        name, owner = sql.Identifier(DATABASE), sql.Identifier(ROLE)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(name, owner))


@pytest.mark.timeout(1200)
def test_a_restored_store_reads_again_what_it_lacks(
    house: House, make_workers: Callable[..., Workers], tmp_path: Path
) -> None:
    """Row 43 of the failure matrix, in the words of docs/operations/backup.md.

    No record comes afterwards: what the backup lacks is noticed without. A share group under Spark, whose application
    begins anew, beside stored offsets without.
    What Kafka has as a consumer group's offset counts for nothing: ``test_consumer_group_faults``.
    """
    topic, backup = house.topic(), str(tmp_path / "headgate.dump")
    house.produce(topic, numbered(0, 1_000))
    names = share, ranges = f"{topic}-share", f"{topic}-ranges"
    house.supervise(lane_spec(house, "share_group", topic, share, startDelay="PT0S"))
    of_ranges = lane_spec(house, "offset_range", topic, ranges)
    lost = make_workers(of_ranges)
    lost.start(0)
    for name in names:
        published(house, name, 1_000, 240)
    run("pg_dump", "--format=custom", f"--file={backup}", house.postgres.dsn)
    house.produce(topic, numbered(1_000, 2_000))
    for name in names:
        published(house, name, 2_000, 240)

    lost.give_way()
    lose_everything(house)
    run("pg_restore", "--exit-on-error", "--single-transaction", f"--dbname={house.postgres.dsn}", backup)
    for name in names:
        assert published_rows(house, name) < 2_000, "the backup lacks what came after it"
    house.start_again()
    make_workers(of_ranges).start(0)
    for name in names:
        published(house, name, 2_000, 300)
        check_exactly_once(house, name, range(2_000))
    wait_for("a repair says so", lambda: house.sql(_REPAIRED, share), 60)
    assert ", 0 are damaged" in house.manage("verify_segments", "--datasource", share)
