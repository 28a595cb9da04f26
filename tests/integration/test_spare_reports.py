"""The page Capacity shows which applications wait for a task."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from controlplane.tasks import spare_reports, spare_rounds
from controlplane.tasks.models import Host
from tests.integration.test_spares import NOW_S, here, ready_spare
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed

__all__ = ["here"]  # a fixture of all tests here, too


def rows(client: Client) -> list[str]:
    page = parsed(client.get("/tasks/-/capacity/"))
    tables = page.all("table", data_spares="")
    return [row.text for table in tables for row in table.all("tr")][1:]


def test_it_shows_host_start_and_memory(cast: Cast) -> None:
    owner = browsing_as(cast, "owner")
    for name in ("ingest-1", "ingest-2"):
        Host.objects.create(name=name, folder="", identity=name, seen_at=timezone.now())
    ready_spare()
    spare_rounds.run(NOW_S + spare_reports.PERIOD_S)
    [told] = spare_reports.waiting_applications()
    assert told.host == "ingest-2" and told.memory_bytes is not None
    assert 1 < told.memory_bytes / 2**20 < 1_000
    assert abs((timezone.now() - told.since).total_seconds()) < 600
    [row] = rows(owner)
    assert "ingest-2" in row and f"{told.since:%Y-%m-%d %H:%M:%S} UTC" in row and "MiB" in row


def test_it_says_that_none_waits(cast: Cast, here: Any) -> None:
    cache.clear()
    owner = browsing_as(cast, "owner")
    assert rows(owner) == []
    assert "No application waits." in parsed(owner.get("/tasks/-/capacity/")).text


def test_those_of_several_hosts_are_in_order(cast: Cast, here: Any) -> None:
    for name, starts in (("b", [(30.0, None), (20.0, 2**20)]), ("a", [(40.0, 5)])):
        Host.objects.create(name=name, folder="", identity=name, seen_at=timezone.now())
        cache.set(spare_reports._key(name), starts, 60)
    found = [(a.host, a.since, a.memory_bytes) for a in spare_reports.waiting_applications()]
    times = {n: datetime.fromtimestamp(n, UTC) for n in (20, 30, 40)}
    assert found == [("a", times[40], 5), ("b", times[20], 2**20), ("b", times[30], None)]
