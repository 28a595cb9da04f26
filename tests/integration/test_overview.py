"""What home and ``/api/v1/overview/`` tell, by what is in the store."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.common.health import Kind
from controlplane.datasources.models import Datasource
from controlplane.lag.last_day import day_by_group
from controlplane.lag.models import LagSample
from controlplane.lag.trend import lag_trends
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.sources.models import Source, SourceEvent
from controlplane.supervisors import services
from controlplane.supervisors.health_queries import health_of_supervisor
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.overview import overview
from controlplane.supervisors.states import Detail
from controlplane.supervisors.trends import trends
from controlplane.tasks.models import Status, Task
from controlplane.teams.models import User
from ingestion.specs.causes import cause_of
from tests.integration.test_health_of_supervisors import one_of_everything
from tests.support.django_cast import Cast, browsing_as, speaking_as


@pytest.fixture
def viewer(cast: Cast) -> User:
    return cast.users["viewer"]


def quarantine(cast: Cast, offsets: range, error: str, at: datetime) -> None:
    QuarantinedRecord.objects.bulk_create(
        QuarantinedRecord(
            source=cast.source,
            datasource=cast.datasource,
            task_id=cast.task.pk,
            partition=1,
            offset=offset,
            delivery_count=1,
            reason="unparseable",
            error=error.format(offset),
            cause=cause_of("unparseable", error.format(offset)).fingerprint,
            publish_id=uuid.uuid4(),
            created_at=at,
        )
        for offset in offsets
    )


def codes(user: User, **wanted: Any) -> set[str]:
    return {p.health.code for p in overview(user, **wanted).problems}


def test_new_records_in_quarantine_are_told_by_cause(cast: Cast, viewer: User) -> None:
    now = timezone.now()
    quarantine(cast, range(30), "Unexpected end at byte {}", now - timedelta(minutes=5))
    quarantine(cast, range(100, 110), "amount is text", now - timedelta(minutes=2))
    quarantine(cast, range(200, 300), "long ago", now - timedelta(days=2))
    [found] = [p for p in overview(viewer).problems if p.health.code == "quarantined"]
    assert found.health.cause == (
        "40 records wait in quarantine for 2 causes, the newest by version 1 of flights. Most of them: "
        "Unexpected end at byte #."
    )
    QuarantinedRecord.objects.update(state=QuarantinedRecord.State.STORED)  # by a replay
    assert codes(viewer) == {"gap"}


def test_alarms_age_out(cast: Cast, viewer: User) -> None:
    assert codes(viewer) == {"gap"}  # the cast's
    SourceEvent.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert codes(viewer) == set()


def test_an_alarm_of_failures_is_over_with_its_task(cast: Cast, viewer: User) -> None:
    SourceEvent.objects.update(kind=SourceEvent.Kind.FAILING)
    assert codes(viewer) == {"failing"}
    Task.objects.update(status=Status.SUCCESS)
    assert "failing" not in codes(viewer)


def test_a_supervisor_is_said_to_be_as_its_page_says(cast: Cast, viewer: User) -> None:
    Supervisor.objects.update(detailed_state=Detail.UNHEALTHY_TASKS, failures=3)
    problem = next(p for p in overview(viewer).problems if p.subject == "supervisor")
    said = health_of_supervisor(viewer, Supervisor.objects.get())
    assert (problem.health.kind, problem.health) == (Kind.FAILED, said)


def look(source: Source, at: datetime, processed: int, *, resolution_s: int = 60, lag: int = 0) -> None:
    LagSample.objects.create(
        source=source, resolution_s=resolution_s, at=at, observed_at=at, lag=lag, partitions=[], in_flight=0,
        processed=processed, redelivered=0,
    )  # fmt: skip


def test_the_stretch_that_is_not_over_has_the_rate_that_it_has_so_far(cast: Cast, viewer: User) -> None:
    """Ten a second: a minute's row has its last look."""
    begin = datetime(2026, 1, 31, 11, 50, tzinfo=UTC)
    for minute in range(13):
        look(cast.source, begin + timedelta(minutes=minute), 600 * (minute + 1) if minute < 12 else 600 * 12 + 300)
    points = day_by_group({cast.source.pk: "alpha"}, begin + timedelta(minutes=12, seconds=30))["alpha"]
    assert [point.records_per_s for point in points] == [10, 10]


def test_what_was_stored_while_nobody_looked_is_of_no_stretch(cast: Cast, viewer: User) -> None:
    now = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
    Source.objects.filter(pk=cast.source.pk).update(created_at=now - timedelta(minutes=301))
    for minutes_ago, processed in ((300, 1200), (299, 1800), (21, 900_000), (20, 900_600)):
        look(cast.source, now - timedelta(minutes=minutes_ago), processed)
    points = day_by_group({cast.source.pk: "alpha"}, now)["alpha"]
    assert [point.records_per_s for point in points] == [3.0, 0.0, 1.0], "the first look's is all new, too"


def test_the_rate_of_now_is_over_a_minute_even_right_after_a_burst(cast: Cast, viewer: User) -> None:
    now = timezone.now()
    look(cast.source, now - timedelta(seconds=5), 0, resolution_s=5)
    look(cast.source, now, 210_000, resolution_s=5)
    assert overview(viewer).records_per_s == 3500
    [trend] = lag_trends([cast.source.pk]).values()
    assert (trend.records_per_s, trend.elapsed) == (3500, timedelta(seconds=5))


def test_the_rate_is_not_known_while_nobody_looks(cast: Cast, viewer: User) -> None:
    """The worker is down: without a sample the rate is not 0."""
    now = timezone.now()
    for ago in (180, 120):
        look(cast.source, now - timedelta(seconds=ago), 600, resolution_s=5)
    shown = overview(viewer)
    assert shown.records_per_s is None and [t.records_per_s for t in shown.teams if t.name == "alpha"] == [None]
    page = browsing_as(cast, "viewer").get("/").content.decode()
    assert "unknown: Headgate has not checked any supervisor in the last minute" in page
    answer = speaking_as(cast, "viewer").get("/api/v1/overview/").json()
    assert answer["records_per_s"] is None
    Supervisor.objects.update(suspended=True)
    assert overview(viewer).records_per_s == 0, "nothing reads"


def test_the_first_minute_of_a_reader_has_a_rate(cast: Cast, viewer: User) -> None:
    """Though its first rows were stored before anybody looked; what an old reader had stored by then is not new."""
    now = timezone.now()
    for resolution_s in (5, 60):
        look(cast.source, now - timedelta(seconds=10), 600, resolution_s=resolution_s)

    def told() -> tuple[float | None, ...]:
        [trend], [minutes] = lag_trends([cast.source.pk]).values(), trends([cast.supervisor]).values()
        [point] = day_by_group({cast.source.pk: "alpha"}, now)["alpha"]
        return overview(viewer).records_per_s, trend.records_per_s, minutes.rate_now, point.records_per_s > 0

    Source.objects.filter(pk=cast.source.pk).update(created_at=now - timedelta(seconds=14))
    assert told() == (10, 10, 10, True)
    look(cast.source, now - timedelta(seconds=5), 660, resolution_s=5)
    assert overview(viewer).records_per_s == 11
    for seconds in (70, 62):  # and while no look is a minute old yet
        Source.objects.filter(pk=cast.source.pk).update(created_at=now - timedelta(seconds=seconds))
        assert overview(viewer).records_per_s == pytest.approx(660 / max(60, seconds - 5))
    reader = {"datasource": cast.datasource, "cluster_id": "cluster-1", "group": cast.source.group}
    Source.objects.create(pk=0, **reader, topic=cast.source.topic, topic_id="deleted", current=False)
    assert told() == (None, 1, None, False), "the topic was made again: its indexers brought their counters along"
    Source.objects.filter(pk=0).delete()
    Source.objects.filter(pk=cast.source.pk).update(created_at=now - timedelta(days=40))
    assert told() == (None, 1, None, False)


def test_a_minute_that_has_just_begun_is_no_minute(cast: Cast) -> None:
    """Published three seconds after a minute's end: the list says what came within the minute before."""
    minute = timezone.now().replace(second=0, microsecond=0)
    for n, (seen_s, processed) in enumerate(((-62, 600), (-2, 1200), (3, 51_200))):
        LagSample.objects.create(
            source=cast.source, resolution_s=60, at=minute - timedelta(minutes=2 - n), lag=0, partitions=[],
            observed_at=minute + timedelta(seconds=seen_s), in_flight=0, processed=processed, redelivered=0,
        )  # fmt: skip
    [trend] = trends([cast.supervisor]).values()
    assert trend.rate_now == pytest.approx((51_200 - 600) / 65)


def test_the_day_sums_all_sources(cast: Cast, viewer: User) -> None:
    begin = timezone.now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=3)
    for minute, processed in ((0, 0), (1, 600), (2, 1200)):
        at = begin + timedelta(minutes=minute)
        LagSample.objects.create(
            source=cast.source,
            resolution_s=60,
            at=at,
            observed_at=at,
            lag=100 - minute,
            partitions=[],
            in_flight=0,
            processed=processed,
            redelivered=0,
        )
    [point] = overview(viewer).day
    assert (point.at, point.lag, point.records_per_s) == (begin, 100, 1200 / 600)  # of ten minutes


def test_each_team_has_its_share(cast: Cast) -> None:
    at = timezone.now().replace(second=0, microsecond=0)
    theirs = Datasource.objects.create(name="trains", team=cast.beta)
    others = Source.objects.create(datasource=theirs, cluster_id="c", group="g", topic="t", topic_id="i")
    for source, lag in ((cast.source, 70), (others, 30)):
        LagSample.objects.create(
            source=source, resolution_s=60, at=at, observed_at=at, lag=lag, partitions=[], in_flight=0, processed=0,
            redelivered=0,
        )  # fmt: skip
    shown = overview(cast.users["superuser"])
    shares = {share.name: (sum(share.kinds.values()), [point.lag for point in share.day]) for share in shown.teams}
    assert shares == {"alpha": (1, [70]), "beta": (0, [30])}
    assert [point.lag for point in shown.day] == [100]
    assert [share.name for share in overview(cast.users["superuser"], "beta").teams] == ["beta"]


def test_what_another_team_has_is_not_told(cast: Cast) -> None:
    shown = overview(cast.users["outsider"])
    assert (shown.problems, shown.supervisors, shown.freshness, shown.is_empty) == ([], [], [], True)


def test_only_admins_see_the_newest_changes(cast: Cast, viewer: User) -> None:
    services.suspend(user=cast.users["operator"], supervisor=cast.supervisor)
    assert overview(viewer).changes == []
    [change] = overview(cast.users["owner"]).changes
    assert (change.username, change.action, change.target_id) == ("operator", "suspend", "flights")
    assert overview(cast.users["superuser"], "beta").changes == []


def test_over_rest(cast: Cast) -> None:
    said = speaking_as(cast, "viewer").get("/api/v1/overview/").json()
    assert [p["code"] for p in said["problems"]] == ["gap"]
    assert sum(said["supervisors"].values()) == 1
    assert [f["datasource"] for f in said["freshness"]] == ["flights"]
    assert [(team["team"], sum(team["supervisors"].values())) for team in said["teams"]] == [("alpha", 1)]
    assert speaking_as(cast, "outsider").get("/api/v1/overview/?team=alpha").status_code == 404


def test_many_cost_as_many_statements_as_a_few(cast: Cast, viewer: User, settings: Any) -> None:
    settings.WORKER_CAPACITY = 3
    quarantine(cast, range(3), "no", timezone.now())
    one_of_everything(cast.alpha, 0)

    def statements() -> int:
        with CaptureQueriesContext(connection) as captured:
            overview(viewer)
        return len(captured)

    few = statements()
    for number in range(1, 6):
        one_of_everything(cast.alpha, number)
    assert statements() == few
