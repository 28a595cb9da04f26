"""Metrics of the metadata store: what a scrape reads of it, counters that never go down, and a store that fails."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.common.errors import Unavailable
from controlplane.metrics import collector, record_sums
from controlplane.metrics.collector import SnapshotCache
from controlplane.metrics.families import FAMILIES, Samples
from controlplane.metrics.models import RecordSum
from controlplane.metrics.snapshot import take_snapshot
from controlplane.publishing.models import IndexerFence
from controlplane.tasks.models import Status, Task
from tests.support.django_cast import Cast
from tests.support.large_store import MANY, SUPERVISORS, fill
from tests.support.prometheus import SITE, SITE_TOKEN, scrape

PROJECT = Path(__file__).parents[2]
# What a site has ever more of. A scrape reads none of it from one end to the other.
GROWING = (
    "segments_segment",
    "segments_interval",
    "tasks_task",
    "tasks_indexer",
    "publishing_indexerfence",
    "publishing_publish",
    "publishing_receipt",
    "publishing_settledrange",
    "lag_lagsample",
    "quarantine_quarantinedrecord",
    "compaction_job",
    "sources_sourceevent",
)


@pytest.fixture(autouse=True)
def _token(settings: LazySettings) -> Iterator[None]:
    settings.METRICS_TOKEN = SITE_TOKEN
    collector.cache.clear()
    yield
    collector.cache.clear()


def read_through() -> dict[str, int]:
    """By table, how often this transaction has read it from one end to the other; the parts of receipts are one."""
    statement = "SELECT relname, seq_scan FROM pg_stat_xact_user_tables WHERE schemaname = 'public'"
    with connection.cursor() as cursor:
        cursor.execute(statement)
        scans = dict.fromkeys(GROWING, 0)
        for table, count in cursor.fetchall():
            scans |= {name: scans[name] + count for name in GROWING if table == name or table.startswith(f"{name}_")}
    return scans


def test_a_scrape_reads_no_table_that_grows_from_one_end_to_the_other(cast: Cast) -> None:
    with CaptureQueriesContext(connection) as of_one:
        take_snapshot()
    fill(cast)
    with connection.cursor() as cursor:
        sizes = {}
        for table in GROWING:
            cursor.execute(f"SELECT count(*) FROM {table}")
            sizes[table] = cursor.fetchone()[0]
    assert min(sizes.values()) >= MANY, sizes
    before = read_through()
    with CaptureQueriesContext(connection) as statements:
        samples = take_snapshot()
    assert {table: n - before[table] for table, n in read_through().items() if n > before[table]} == {}
    assert len(samples["headgate_supervisor_state"]) == SUPERVISORS + 1
    assert len(statements) <= len(of_one) + 5, "as many for one supervisor, and what is asked of those that are behind"
    records = sum(value for _, value in samples["headgate_publishes_total"])
    assert records == 5 + 4 * (MANY + SUPERVISORS), "each indexer counts once, summed or not"


def totals(name: str = "published") -> dict[int, int]:
    return {datasource: totals.counters[name] for datasource, totals in record_sums.record_totals().items()}


def end_task(cast: Cast, ago: timedelta) -> None:
    Task.objects.filter(pk=cast.task.pk).update(status=Status.SUCCESS, ended_at=timezone.now() - ago)


def test_summing_up_changes_no_total_and_waits_until_a_task_has_ended_for_long(cast: Cast) -> None:
    before = record_sums.record_totals()
    assert record_sums.sum_up() == 0, "its task still runs"
    end_task(cast, timedelta(minutes=9))
    assert record_sums.sum_up() == 0, "it may have ended within a publish"
    end_task(cast, timedelta(minutes=11))
    assert record_sums.sum_up() == 1
    assert RecordSum.objects.get().counters["published"] == 1500
    assert record_sums.record_totals() == before
    assert record_sums.sum_up() == 0, "each indexer counts once"
    assert record_sums.record_totals() == before


def test_what_comes_after_summing_up_is_added(cast: Cast) -> None:
    end_task(cast, timedelta(hours=1))
    record_sums.sum_up()
    IndexerFence.objects.create(task_id=cast.task.pk, number=2, datasource=cast.datasource, published=7)
    assert totals() == {cast.datasource.pk: 1507}
    record_sums.sum_up()
    assert RecordSum.objects.get().counters["published"] == 1507
    assert totals() == {cast.datasource.pk: 1507}


def test_a_replay_takes_nothing_from_a_counter(cast: Cast) -> None:
    before = totals("unparseable")
    IndexerFence.objects.filter(pk=cast.fences[0].pk).update(replayed=1)
    assert totals("unparseable") == before


def test_merged_rows_are_no_records(cast: Cast) -> None:
    before = totals()
    IndexerFence.objects.create(task_id="merge", number=0, datasource=cast.datasource, published=900, merges=True)
    assert totals() == before


# The cache.


def sampled(value: float) -> Samples:
    return {"headgate_pool_used_slots": [((), value)]}


def reading(*results: Samples | Exception) -> tuple[Callable[[], Samples], list[int]]:
    """A store that answers so, one after the other, and how often it was asked."""
    calls: list[int] = []

    def read() -> Samples:
        calls.append(len(calls))
        result = results[min(len(calls), len(results)) - 1]
        if isinstance(result, Exception):
            raise result
        return result

    return read, calls


def test_scrapes_at_the_same_time_read_the_store_once(db: None) -> None:
    asked, go_on, calls = Event(), Event(), []

    def read() -> Samples:
        calls.append(1)
        asked.set()
        assert go_on.wait(30)
        return sampled(1)

    kept = SnapshotCache(read)
    with ThreadPoolExecutor(4) as pool:
        scrapes = [pool.submit(kept.samples) for _ in range(4)]
        assert asked.wait(30)
        go_on.set()
        assert [scrape.result() for scrape in scrapes] == [sampled(1)] * 4
    assert len(calls) == 1


def test_who_has_waited_for_a_read_that_fails_does_not_wait_for_another(db: None) -> None:
    """Else the second of two scrapers waits twice as long as a store may take, and gets no answer in its time."""
    read, calls = reading(OperationalError("gone"), sampled(1))
    kept = SnapshotCache(read)
    for _ in range(3):
        with pytest.raises(Unavailable):
            kept.samples()
    assert len(calls) == 1


def test_what_was_read_is_good_for_ten_seconds(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    read, calls = reading(sampled(1), sampled(2))
    now = [100.0]
    monkeypatch.setattr(collector, "monotonic", lambda: now[0])
    kept = SnapshotCache(read)
    seen = []
    for now[0] in (100.0, 109.9, 110.0, 119.0):
        seen.append(kept.samples()["headgate_pool_used_slots"][0][1])
    assert seen == [1, 1, 2, 2]
    assert len(calls) == 2


# A store that fails.


def test_a_statement_that_takes_too_long_ends_the_scrape_and_says_so(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep() -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(60)")

    monkeypatch.setattr("controlplane.metrics.snapshot.STATEMENT_MS", 50)
    monkeypatch.setattr("controlplane.metrics.snapshot.record_totals", sleep)
    answer = Client().get("/metrics", headers=SITE)
    assert answer.status_code == 503
    assert "metadata store" in answer.content.decode()
    assert b"headgate_" not in answer.content
    assert scrape("/metrics/process"), "the process's own need no store"


def test_no_statement_begins_when_the_time_is_over(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controlplane.metrics.snapshot.READ_S", -1.0)
    assert Client().get("/metrics", headers=SITE).status_code == 503


_AWAY = """
import django; django.setup()
import time
from django.test import Client
site, unknown = {"Authorization": "Bearer TOKEN"}, {"Authorization": "Bearer of-nobody"}
for path, headers in (("/metrics", site), ("/metrics", unknown), ("/metrics/store", site), ("/metrics/process", site)):
    began = time.monotonic()
    answer = Client().get(path, headers=headers)
    print(answer.status_code, time.monotonic() - began < 8, b"headgate_supervisor" in answer.content)
"""


def test_a_store_that_is_away() -> None:
    """In a process of its own whose store is at a closed port: pools of connections wait for longer than a scraper."""
    closed = {
        "DATABASE_URL": "postgresql://u:p@127.0.0.1:1/d",
        "HEADGATE_METRICS_TOKEN": SITE_TOKEN,
        "HEADGATE_INSECURE_COOKIES": "1",
        "HEADGATE_ALLOWED_HOSTS": "testserver",
    }
    script = _AWAY.replace("TOKEN", SITE_TOKEN)
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **closed}, cwd=PROJECT, capture_output=True, text=True
    )
    lines = [line for line in done.stdout.splitlines() if line[:3].isdigit()]
    assert lines == ["503 True False"] * 3 + ["200 True False"], done.stderr


def test_every_family_of_the_store_can_have_values(cast: Cast) -> None:
    """And a snapshot has no other: a name that is misspelt would be lost without a word."""
    assert set(take_snapshot()) <= set(FAMILIES)
