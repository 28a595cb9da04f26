"""Causes of the quarantine: what is counted follows the records through publishes, replays and purges."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.datasources.models import Datasource
from controlplane.publishing.publish import publish
from controlplane.quarantine import cause_sums, replays
from controlplane.quarantine import services as quarantine
from controlplane.quarantine.models import CauseSum, FaultyRecord, QuarantinedRecord
from controlplane.quarantine.selectors.causes import CauseFilter, count_new_causes, list_causes, trends
from controlplane.quarantine.selectors.filters import Choice, QuarantineFilter
from controlplane.sources.models import Source
from controlplane.tasks.causes import describe_causes
from ingestion.specs.causes import cause_of
from ingestion.specs.messages.protocol import FaultyRecord as WireFaulty
from ingestion.specs.messages.protocol import Outcomes
from ingestion.specs.messages.protocol import QuarantinedRecord as WireRecord
from tests.support.django_cast import Cast
from tests.support.publishes import request, start

ADDRESS = "/api/v1/quarantine/causes/"
TIME, NULL = "field 'ts' has no time of format auto", "field 'ts' has no time: it is missing or null"


def quarantined(offset: int, error: str) -> WireRecord:
    return WireRecord.model_construct(
        partition=1, offset=offset, timestamp_ms=None, delivery_count=1, reason="unparseable", error=error,
        key=None, payload=b"{}", headers=[],
    )  # fmt: skip


@pytest.fixture
def kept(cast: Cast) -> Cast:
    """Three records of one cause, one of another, and one that is stored with a fault."""
    errors = [f"{TIME}: {n} o'clock" for n in range(3)] + [NULL]
    faulty = [WireFaulty(partition=1, offset=704, delivery_count=1, error="field 'n' is not a whole number")]
    epoch = start(cast.source, number=7, task=cast.task.pk)
    body = request(
        epoch,
        {1: [(704, 706)]},
        {1: Outcomes(unparseable=[(700, 704)])},
        quarantined=[quarantined(700 + n, error) for n, error in enumerate(errors)],
    )
    counters = body.counters.model_copy(update={"processed_with_error": 1})
    publish(
        task_id=cast.task.pk, number=7, request=body.model_copy(update={"faulty": faulty, "counters": counters})
    )  # fmt: skip
    return cast


def found(cast: Cast, role: str = "viewer", **wanted: Any) -> dict[str, tuple[int, int]]:
    """Title → records, and how many wait."""
    rows = describe_causes(cast.users[role], list(list_causes(cast.users[role], CauseFilter(**wanted))))
    return {row.title: (row.cause.records, row.cause.kept) for row in rows}


def counted() -> dict[tuple[str, str], tuple[int, int]]:
    """What the records' table itself says."""
    out: dict[tuple[str, str], tuple[int, int]] = {}
    for cause, reason, state in QuarantinedRecord.objects.values_list("cause", "reason", "state"):
        records, waiting = out.get((cause, reason), (0, 0))
        out[(cause, reason)] = (records + 1, waiting + (state == "kept"))
    return out


def check_sums(cast: Cast) -> None:
    """Before and after folding the sums say what is there."""
    for _ in range(2):
        rows = list_causes(cast.users["viewer"], CauseFilter())
        assert {(r.cause, r.reason): (r.records, r.kept) for r in rows} == counted()
        cause_sums.fold_sums()


def of_title(title: str, **more: Any) -> QuarantineFilter:
    return QuarantineFilter(cause=cause_of("unparseable", title).fingerprint, **more)


def test_records_are_counted_by_cause(kept: Cast) -> None:
    assert found(kept) == {TIME: (3, 3), NULL: (1, 1), "Malformed JSON at byte #": (1, 1)}
    check_sums(kept)
    [faulty] = FaultyRecord.objects.all()
    assert faulty.cause == cause_of("processed_with_error", "field 'n' is not a whole number").fingerprint


def test_sums_follow_replays_and_purges(kept: Cast) -> None:
    mine = QuarantinedRecord.objects.filter(cause=of_title(TIME).cause)
    assert replays.take_records(mine, "a-replay") == 3
    assert found(kept)[TIME] == (3, 0)
    assert TIME not in found(kept, waiting=True)
    check_sums(kept)
    replays.release_records("a-replay")
    check_sums(kept)
    assert found(kept, waiting=True)[TIME] == (3, 3)
    purged = quarantine.purge(
        user=kept.users["owner"], datasource=kept.datasource, choice=Choice(filter=of_title(TIME, partition=1))
    )
    assert purged == 3
    check_sums(kept)
    assert TIME not in found(kept)


def test_a_record_that_still_cannot_be_read_changes_its_cause(kept: Cast) -> None:
    mine = QuarantinedRecord.objects.filter(offset=700)
    mine.update(error=NULL, cause=of_title(NULL).cause)
    assert found(kept)[TIME] == (2, 2)
    assert found(kept)[NULL] == (2, 2)
    check_sums(kept)


def test_old_hours_become_one(kept: Cast) -> None:
    now = timezone.now()
    QuarantinedRecord.objects.filter(offset=700).update(created_at=now - timedelta(days=3))
    QuarantinedRecord.objects.filter(offset=701).update(created_at=now - timedelta(days=4))
    cause_sums.fold_sums()
    mine = CauseSum.objects.filter(cause=of_title(TIME).cause)
    assert [row.records for row in mine.filter(hour=CauseSum.LONG_AGO)] == [2]
    [row] = [r for r in list_causes(kept.users["viewer"], CauseFilter()) if r.cause == of_title(TIME).cause]
    assert row.first_at == now - timedelta(days=4)
    assert sum(trends([row], now)[(row.datasource_id, row.cause, row.reason)]) == 1
    check_sums(kept)
    # The hours go on: what was folded into them is folded further.
    assert cause_sums.fold_sums(now + timedelta(days=5)) == len(counted())
    check_sums(kept)


def test_the_trend_is_by_hour(kept: Cast) -> None:
    now = timezone.now().replace(minute=30)
    at: dict[int, datetime] = {
        700: now - timedelta(hours=23),
        701: now - timedelta(hours=2),
        702: now - timedelta(days=1),
    }
    for offset, moment in at.items():
        QuarantinedRecord.objects.filter(offset=offset).update(created_at=moment)
    [row] = [r for r in list_causes(kept.users["viewer"], CauseFilter()) if r.cause == of_title(TIME).cause]
    trend = trends([row], now)[(row.datasource_id, row.cause, row.reason)]
    assert [n for n, records in enumerate(trend) if records] == [0, 21]


def test_what_is_new(kept: Cast) -> None:
    assert count_new_causes(kept.users["viewer"]) == 2  # the cast's own is of last year
    assert count_new_causes(kept.users["outsider"]) == 0
    replays.take_records(QuarantinedRecord.objects.filter(cause=of_title(TIME).cause), "a-replay")
    assert count_new_causes(kept.users["viewer"]) == 1
    assert count_new_causes(kept.users["viewer"], timezone.now() + timedelta(days=2)) == 0


def test_rest_tells_them(kept: Cast, clients: dict[str, Client]) -> None:
    body = clients["viewer"].get(ADDRESS, {"since": "2026-01-01T00:00:00Z"}).json()
    rows = {row["title"]: row for row in body["results"]}
    assert set(rows) == {TIME, NULL}
    one = rows[TIME]
    assert (one["team"], one["datasource"], one["reason"]) == ("alpha", "flights", "unparseable")
    assert (one["records"], one["kept"], one["trend"][-1]) == (3, 3, 3)
    assert one["error"] == f"{TIME}: 2 o'clock"
    assert (one["supervisor"], one["spec_version"]) == (kept.supervisor.pk, kept.task.spec_version)
    listed = clients["viewer"].get("/api/v1/datasources/flights/quarantine/", {"cause": one["cause"]}).json()
    assert [r["offset"] for r in listed["results"]] == [702, 701, 700]
    assert {r["cause"] for r in listed["results"]} == {one["cause"]}


def test_rest_filters_and_turns_pages(kept: Cast, clients: dict[str, Client]) -> None:
    def titles(**query: Any) -> list[str]:
        return [row["title"] for row in clients["viewer"].get(ADDRESS, query).json()["results"]]

    assert titles(datasource="another") == titles(team="beta") == titles(reason="refused") == titles(cause="x") == []
    assert titles(cause=of_title(NULL).cause) == [NULL]
    seen, address = [], f"{ADDRESS}?limit=1"
    while address:
        body = clients["viewer"].get(address).json()
        seen += [row["title"] for row in body["results"]]
        address = body["next"]
    assert sorted(seen) == sorted(titles())
    assert clients["viewer"].get(ADDRESS, {"reason": "none"}).status_code == 400
    assert clients["outsider"].get(ADDRESS).json() == {"results": [], "next": None}


def test_queries_do_not_grow_with_causes(kept: Cast, clients: dict[str, Client]) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection, ) as seen:  # fmt: skip
            assert clients["viewer"].get(ADDRESS).status_code == 200
        return len(seen)

    queries()
    before = queries()
    other = Datasource.objects.create(name="another", team=kept.alpha)
    source = Source.objects.create(datasource=other, cluster_id="c", group="g", topic="t", topic_id="i")
    for n in range(12):
        QuarantinedRecord.objects.create(
            source=source, datasource=other, task_id=f"task-{n}", partition=0, offset=n, delivery_count=1,
            reason="unparseable", error="x", cause=f"{n:016x}", publish_id="3f2b8c1a-0000-4000-8000-123456789abc",
            created_at=timezone.now(),
        )  # fmt: skip
    assert len(clients["viewer"].get(ADDRESS).json()["results"]) == 15
    assert queries() == before


def test_a_datasource_can_go(kept: Cast) -> None:
    QuarantinedRecord.objects.filter(datasource=kept.datasource).delete()
    CauseSum.objects.create(
        datasource_id=10**9, cause="x", reason="refused", hour=timezone.now(), records=1, kept=1,
        first_at=timezone.now(), last_at=timezone.now(),
    )  # fmt: skip
    CauseSum.objects.create(
        datasource_id=10**9, cause="x", reason="refused", hour=timezone.now(), records=1, kept=1
    )  # fmt: skip
    cause_sums.fold_sums()
    cause_sums.fold_sums(timezone.now() + timedelta(days=9))
    assert CauseSum.objects.count() == 0
