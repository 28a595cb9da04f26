"""What teams use by month, on a real PostgreSQL: added up once, kept, shown and downloaded."""

from __future__ import annotations

import csv
from datetime import datetime, timedelta

from django.test import Client
from django.utils import timezone

from controlplane.metrics.models import TeamUsage, UsageFold
from controlplane.metrics.snapshot import take_snapshot
from controlplane.metrics.usage import fold
from controlplane.publishing.models import IndexerFence
from controlplane.tasks.models import Indexer, Status, Task
from controlplane.teams.models import Team
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed

MINUTE = timedelta(minutes=1)


def begin(cast: Cast, slots: int = 3) -> datetime:
    """The cast's task holds so many slots, and nothing is counted of what was used before."""
    now = timezone.now()
    Indexer.objects.all().delete()
    Task.objects.exclude(pk=cast.task.pk).delete()
    values = {"status": Status.RUNNING, "launched_at": now - timedelta(days=1), "ended_at": None}
    Task.objects.filter(pk=cast.task.pk).update(**values, indexers_wanted=slots, without_slot_since=None)
    fold(now)
    TeamUsage.objects.all().delete()
    return now


def used() -> dict[str, float]:
    """Core-seconds by team, of all months."""
    sums: dict[str, float] = {}
    for row in TeamUsage.objects.select_related("team"):
        sums[row.team.name] = sums.get(row.team.name, 0) + row.core_seconds
    return sums


def test_a_running_task_uses_its_slots_and_each_minute_counts_once(cast: Cast) -> None:
    start = begin(cast)
    fold(start + MINUTE)
    fold(start + MINUTE)
    assert used() == {"alpha": 180.0}
    Task.objects.filter(pk=cast.task.pk).update(indexers_wanted=1)
    fold(start + 2 * MINUTE)
    assert used() == {"alpha": 240.0}
    Task.objects.filter(pk=cast.task.pk).update(without_slot_since=start)
    fold(start + 3 * MINUTE)
    assert used() == {"alpha": 240.0}, "Spark had no core for it"


def test_what_was_used_before_the_first_minute_is_over_counts(cast: Cast) -> None:
    """A site's first task may end, and its datasource be full, before usage is added up for the first time."""
    now = timezone.now()
    Indexer.objects.all().delete()
    Task.objects.exclude(pk=cast.task.pk).delete()
    times = {"created_at": now - MINUTE / 2, "launched_at": now - MINUTE / 2, "ended_at": now - MINUTE / 4}
    Task.objects.filter(pk=cast.task.pk).update(status=Status.SUCCESS, indexers_wanted=2, **times)
    IndexerFence.objects.filter(datasource=cast.datasource).update(input_bytes=0, size_bytes=0)
    fence = IndexerFence.objects.create(task_id=cast.task.pk, number=9, datasource=cast.datasource)
    IndexerFence.objects.filter(pk=fence.pk).update(input_bytes=1000, size_bytes=70)
    fold(now)
    fold(now + MINUTE)
    [row] = TeamUsage.objects.filter(team__name="alpha")
    assert (row.core_seconds, row.read_bytes, row.stored_bytes) == (30.0, 1000, 70)


def test_a_task_that_ends_counts_until_then_and_stays_counted(cast: Cast) -> None:
    start = begin(cast)
    ended = {"status": Status.FAILED, "ended_at": start + MINUTE / 2}
    Task.objects.filter(pk=cast.task.pk).update(**ended)
    brief = {"launched_at": start + MINUTE / 4, "created_at": start + MINUTE / 4, "indexers_wanted": 2}
    Task.objects.create(id="brief", kind=cast.task.kind, datasource=cast.datasource, spec={}, **brief, **ended)
    fold(start + MINUTE)
    assert used() == {"alpha": 3 * 30.0 + 2 * 15.0}
    Task.objects.all().delete()
    fold(start + 2 * MINUTE)
    assert used() == {"alpha": 120.0}


def test_bytes_go_to_the_team_that_has_the_datasource_now(cast: Cast) -> None:
    start = begin(cast)
    fence = IndexerFence.objects.create(task_id=cast.task.pk, number=9, datasource=cast.datasource)
    IndexerFence.objects.filter(pk=fence.pk).update(input_bytes=1000, size_bytes=70)
    fold(start + MINUTE)
    cast.datasource.team = Team.objects.get(name="beta")
    cast.datasource.save()
    IndexerFence.objects.filter(pk=fence.pk).update(input_bytes=1500, size_bytes=90)
    fold(start + 2 * MINUTE)
    rows = {row.team.name: (row.read_bytes, row.stored_bytes) for row in TeamUsage.objects.select_related("team")}
    assert rows == {"alpha": (1000, 70), "beta": (500, 20)}
    assert used() == {"alpha": 180.0, "beta": 180.0}


def test_admins_see_it_on_the_page_in_rest_and_as_csv(cast: Cast, clients: dict[str, Client]) -> None:
    for team, month, ms in (("alpha", "2026-02", 1500), ("alpha", "2026-03", 7_200_000), ("beta", "2026-03", 1)):
        of_team = Team.objects.get(name=team)
        TeamUsage.objects.create(team=of_team, month=month, core_ms=ms, read_bytes=2048, stored_bytes=1024)
    answer = clients["owner"].get("/api/v1/usage/", {"team": "alpha"}).json()["results"]
    assert [(r["month"], r["core_seconds"], r["read_bytes"]) for r in answer] == [
        ("2026-03", 7200.0, 2048),
        ("2026-02", 1.5, 2048),
    ]
    page = parsed(browsing_as(cast, "owner").get("/teams/alpha/limits/"))
    assert [row.attributes["data-usage"] for row in page.all("tr") if "data-usage" in row.attributes] == [
        "2026-03",
        "2026-02",
    ]
    [link] = [a for a in page.all("a") if a.text == "Download as CSV"]
    file = browsing_as(cast, "owner").get(link.attributes["href"])
    assert list(csv.reader(file.getvalue().decode().splitlines())) == [
        ["team", "month", "core_seconds", "read_bytes", "stored_bytes"],
        ["alpha", "2026-03", "7200.0", "2048", "1024"],
        ["alpha", "2026-02", "1.5", "2048", "1024"],
    ]
    assert clients["viewer"].get("/api/v1/usage/").json()["results"] == []
    assert clients["viewer"].get("/api/v1/usage/", {"team": "alpha"}).status_code == 403
    assert len(clients["superuser"].get("/api/v1/usage/").json()["results"]) == 3
    first = clients["superuser"].get("/api/v1/usage/", {"limit": 1}).json()
    assert len(clients["superuser"].get(first["next"]).json()["results"]) == 1
    samples = take_snapshot()
    assert dict(samples["headgate_team_core_seconds_total"]) == {("alpha",): 7201.5, ("beta",): 0.001}
    assert dict(samples["headgate_team_read_bytes_total"]) == {("alpha",): 4096, ("beta",): 2048}


def test_a_clock_that_goes_back_takes_nothing(cast: Cast) -> None:
    start = begin(cast)
    fold(start + MINUTE)
    fold(start)
    assert used() == {"alpha": 180.0}
    assert UsageFold.objects.get().until == start + MINUTE
