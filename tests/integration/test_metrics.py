"""``GET /metrics``: what the cast is in, as Prometheus reads it, and who may read it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from controlplane.alerts.models import AboutKind, Alert, Rule
from controlplane.common.measures import HTTP_REQUESTS
from controlplane.compaction.models import Job, State
from controlplane.datasources.models import Datasource
from controlplane.lag.models import LagSample
from controlplane.metrics.collector import cache
from controlplane.sources.models import Source
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Indexer
from controlplane.teams.roles import Scope
from tests.support.django_cast import DAY, STARTED, Cast, browsing_as, serving, spec_for
from tests.support.prometheus import OPEN_METRICS, SITE, SITE_TOKEN, Values, scrape

FLIGHTS = ("flights", "team-alpha")


@pytest.fixture(autouse=True)
def _token(settings: LazySettings) -> Iterator[None]:
    """Without the thousands of series that the requests of other tests have left: to read them takes a second."""
    HTTP_REQUESTS.clear()
    settings.METRICS_TOKEN = SITE_TOKEN
    cache.clear()
    yield
    cache.clear()


def scrape_anew(path: str = "/metrics") -> Values:
    """After ten seconds, so to speak."""
    cache.clear()
    return scrape(path)


def of_flights(values: Values, name: str) -> dict[tuple[str, ...], float]:
    """The values of a metric, without the names of the cast's team, datasource and supervisor."""
    shown = [(labels, value) for (sample, labels), value in values.items() if sample == name]
    return {tuple(w for w in labels if w not in ("alpha", "flights")): value for labels, value in shown}


def test_what_became_of_records(cast: Cast) -> None:
    values = scrape()
    outcomes = {
        "published": 1500,
        "rolled_up": 0,
        "thrown_away": 42,
        "unparseable": 1,
        "duplicates": 5,
        "released": 504,
    }
    assert of_flights(values, "headgate_records_total") == {(name,): value for name, value in outcomes.items()}
    details = {"filtered": 2, "outside_window": 40, "processed_with_error": 20, "redelivered": 9, "quarantined": 1}
    assert of_flights(values, "headgate_record_details_total") == {(name,): value for name, value in details.items()}
    expected = {
        "headgate_records_polled_total": 2052,
        "headgate_records_bytes_total": 150_000,
        "headgate_publishes_total": 5,
        "headgate_segments_published_total": 4,
        "headgate_segments_published_bytes_total": 15_000,
        "headgate_datasource_last_publish_timestamp_seconds": (STARTED + timedelta(seconds=100)).timestamp(),
        "headgate_datasource_segments": 4,
        "headgate_datasource_segments_bytes": 15_000,
        "headgate_datasource_rows": 1500,
    }
    assert {name: of_flights(values, name) for name in expected} == {n: {(): v} for n, v in expected.items()}
    assert of_flights(values, "headgate_datasource_quarantined_records") == {("kept",): 1, ("ended",): 0}
    assert of_flights(values, "headgate_datasource_unacknowledged_alarms") == {("gap",): 1}
    assert of_flights(values, "headgate_tasks") == {("RUNNING",): 1}


def test_a_supervisor_and_what_is_not_known_of_it(cast: Cast) -> None:
    values = scrape()
    assert of_flights(values, "headgate_supervisor_state") == {("RUNNING",): 1}
    assert len(of_flights(values, "headgate_supervisor_health")) == 1
    assert of_flights(values, "headgate_supervisor_indexers") == {("reading",): 2}
    assert of_flights(values, "headgate_supervisor_failed_runs") == {(): 0}
    # Its topic was looked at a year ago; it has not run; none of its records was acknowledged.
    for unknown in ("lag_records", "lag_seconds", "complete_until_timestamp_seconds", "longest_hold_seconds"):
        assert of_flights(values, f"headgate_supervisor_{unknown}") == {}, unknown
    assert of_flights(values, "headgate_supervisor_last_run_timestamp_seconds") == {}


def test_lag_in_records_and_in_seconds_as_long_as_the_topic_is_looked_at(cast: Cast) -> None:
    now = timezone.now()
    Source.objects.filter(pk=cast.source.pk).update(looked_at=now, complete_until=now - timedelta(minutes=5))
    counts = {"lag": 410, "partitions": [10, 400], "in_flight": 0, "processed": 1, "redelivered": 0}
    sample = LagSample.objects.create(source=cast.source, resolution_s=5, at=now, observed_at=now, **counts)
    values = scrape()
    assert of_flights(values, "headgate_supervisor_lag_records") == {(): 410}
    [lag_s] = of_flights(values, "headgate_supervisor_lag_seconds").values()
    assert 300 <= lag_s < 360
    until = {(): (now - timedelta(minutes=5)).timestamp()}
    assert of_flights(values, "headgate_supervisor_complete_until_timestamp_seconds") == pytest.approx(until)
    Source.objects.filter(pk=cast.source.pk).update(looked_at=now - timedelta(seconds=61))
    LagSample.objects.filter(pk=sample.pk).update(observed_at=now - timedelta(seconds=61))
    later = scrape_anew()
    assert of_flights(later, "headgate_supervisor_lag_records") == {}
    assert of_flights(later, "headgate_supervisor_lag_seconds") == {}
    assert of_flights(later, "headgate_supervisor_complete_until_timestamp_seconds") == pytest.approx(until)


def test_a_share_group_s_longest_hold_and_an_open_breaker(cast: Cast) -> None:
    Indexer.objects.filter(task=cast.task, number=0).update(state="paused", leases={"longest_hold_ms": 12_500})
    values = scrape()
    assert of_flights(values, "headgate_supervisor_indexers") == {("reading",): 1, ("paused",): 1}
    assert of_flights(values, "headgate_supervisor_longest_hold_seconds") == {(): 12.5}


def test_merges_that_wait_and_alerts_that_fire(cast: Cast) -> None:
    now = timezone.now()
    job: dict[str, Any] = {"interval_end": DAY, "tier": 0, "inputs": [], "data_schema": {}, "rollup": False}
    job |= {"max_rows_per_segment": 1, "rows_before": 1, "bytes_before": 1, "datasource": cast.datasource}
    for n, state in enumerate([State.WAITING, State.WAITING, State.RUNNING, State.DONE]):
        start, created_at = DAY - timedelta(days=n), now - timedelta(minutes=10 * (n + 1))
        Job.objects.create(id=f"job-{n}", interval_start=start, state=state, created_at=created_at, **job)
    rule = Rule.objects.create(team=cast.alpha, name="late", kind="lag")
    about = {"rule": rule, "team": cast.alpha, "about": AboutKind.SUPERVISOR, "datasource": "flights", "since": now}
    Alert.objects.create(**about, subject="flights", state=Alert.State.FIRING)
    Alert.objects.create(**about, subject="other", state=Alert.State.OK)
    values = scrape()
    assert of_flights(values, "headgate_datasource_merges") == {("waiting",): 2, ("running",): 1}
    [age_s] = of_flights(values, "headgate_datasource_oldest_waiting_merge_seconds").values()
    assert 1200 <= age_s < 1260
    assert of_flights(values, "headgate_alerts_firing") == {("lag",): 1}


def test_the_pool_and_a_team_s_quota(cast: Cast, settings: LazySettings) -> None:
    values = scrape()
    assert values["headgate_pool_used_slots", ()] == 2
    assert ("headgate_pool_slots", ()) not in values, "a pool without a limit has no number of slots"
    settings.WORKER_CAPACITY = 6
    assert scrape_anew()["headgate_pool_slots", ()] == 6


def test_a_supervisor_that_ends_and_a_state_that_is_left_leave_no_series(cast: Cast) -> None:
    """Exporters that set gauges keep the last value of labels that are gone."""
    scrape()
    Supervisor.objects.filter(pk="flights").update(detailed_state="SUSPENDED", suspended=True)
    assert of_flights(scrape_anew(), "headgate_supervisor_state") == {("SUSPENDED",): 1}
    Supervisor.objects.filter(pk="flights").update(terminated_at=timezone.now())
    assert not [name for name, _ in scrape_anew() if name.startswith("headgate_supervisor_")]
    Datasource.objects.filter(pk=cast.datasource.pk).update(deleted_at=timezone.now())
    left = {labels for name, labels in scrape_anew("/metrics/store") if "flights" in labels}
    assert not left


def test_names_with_quotes_and_letters_of_all_kinds(cast: Cast) -> None:
    name = 'größe "x"\\\n漢字'
    Datasource.objects.filter(pk=cast.datasource.pk).update(name=name)
    for accept in ("text/plain", "application/openmetrics-text;version=1.0.0", OPEN_METRICS):
        assert scrape(headers={"Accept": accept})["headgate_datasource_segments", (name, "alpha")] == 4


@pytest.mark.parametrize("accept", ["", "*/*", "text/plain;version=0.0.4", "text/plain;version=1.0.0", OPEN_METRICS])
@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_each_format_says_the_same(cast: Cast, accept: str, encoding: str) -> None:
    store = scrape("/metrics/store")
    assert scrape("/metrics/store", headers={"Accept": accept, "Accept-Encoding": encoding}) == store


def test_a_scrape_is_kept_by_nobody_and_head_has_no_body(cast: Cast) -> None:
    answer = Client().head("/metrics", headers=SITE)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in answer.headers
    assert Client().post("/metrics", headers=SITE).status_code == 405


@pytest.mark.parametrize("path", ["/metrics", "/metrics/store", "/metrics/process"])
@pytest.mark.parametrize(
    "shown", ["", "Bearer", "Bearer wrong", f"Basic {SITE_TOKEN}", f"Bearer {SITE_TOKEN}x", "Bearer é"]
)
def test_who_shows_no_token_that_is_known_is_told_so(cast: Cast, path: str, shown: str) -> None:
    answer = Client().get(path, headers={"Authorization": shown} if shown else {})
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert "token" in answer.content.decode()


def test_a_login_on_the_pages_is_no_token(cast: Cast) -> None:
    assert browsing_as(cast, "superuser").get("/metrics").status_code == 401


def test_without_a_token_in_the_settings_nobody_has_it(cast: Cast, settings: LazySettings) -> None:
    settings.METRICS_TOKEN = ""
    for shown in ("Bearer ", "Bearer", "bearer  "):
        assert Client().get("/metrics", headers={"Authorization": shown}).status_code == 401


def test_off_is_not_there_whatever_is_shown(cast: Cast, settings: LazySettings) -> None:
    settings.METRICS = False
    answer = Client().get("/metrics", headers=SITE)
    assert answer.status_code == 404
    assert "HEADGATE_METRICS" in answer.content.decode()


def test_plain_http_is_not_redirected(cast: Cast, settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert Client().get("/metrics", headers=SITE).status_code == 200
    assert Client().get("/metricsx", headers=SITE).status_code == 301


def own(values: Values) -> Values:
    """Without when and how long the store was read, which every token shows."""
    about = {(name, ()) for name in ("headgate_store_read_timestamp_seconds", "headgate_store_read_duration_seconds")}
    assert about <= set(values)
    return {key: value for key, value in values.items() if key not in about}


def test_each_team_s_token_shows_its_own(cast: Cast, clients: dict[str, Client]) -> None:
    other = Datasource.objects.create(name="clicks", team=cast.beta)
    values = scrape()
    alpha, beta = (own(scrape(client=client)) for client in (serving(cast, Scope.READ), clients["outsider"]))
    assert {labels for _, labels in alpha} and all("alpha" in labels for _, labels in alpha)
    assert {name for name, _ in beta} == {
        f"headgate_datasource_{part}" for part in ("segments", "segments_bytes", "rows")
    }
    assert all(labels == (other.name, "beta") for _, labels in beta)
    of_site = {name for name, labels in values if not labels}
    assert {"headgate_pool_used_slots", "headgate_store_read_timestamp_seconds"} <= of_site
    assert all(values[key] == value for key, value in (alpha | beta).items())


def test_a_token_for_named_datasources_shows_these(cast: Cast) -> None:
    Datasource.objects.create(name="clicks", team=cast.alpha)
    assert {labels[0] for _, labels in own(scrape(client=serving(cast, Scope.READ, "clicks")))} == {"clicks"}


def test_a_team_s_token_does_not_open_the_process_s_metrics(cast: Cast) -> None:
    answer = serving(cast, Scope.ADMIN).get("/metrics/process")
    assert answer.status_code == 401
    assert "HEADGATE_METRICS_TOKEN" in answer.content.decode()
    assert not [
        name for name, _ in scrape(client=serving(cast, Scope.ADMIN)) if name.startswith(("process_", "python_"))
    ]


def test_requests_are_counted_by_view_and_what_clients_make_up_is_no_label(cast: Cast) -> None:
    count = "headgate_http_request_duration_seconds_count"
    before = scrape("/metrics/process")
    Client().get("/healthz")
    Client().get("/nothing/here/4711")
    Client().generic("BREW", "/healthz")
    after = scrape("/metrics/process")
    new = {labels: after[name, labels] - before.get((name, labels), 0) for name, labels in after if name == count}
    assert new["GET", "2xx", "healthz"] == new["GET", "4xx", "none"] == new["other", "4xx", "healthz"] == 1
    assert not any("4711" in word or word == "BREW" for labels in new for word in labels)


def test_a_spec_that_changes_takes_nothing_from_a_counter(cast: Cast, owner: Client, checked_here: None) -> None:
    before = scrape("/metrics/store")
    spec = spec_for("flights", taskCount=2)
    assert owner.post("/druid/indexer/v1/supervisor", data=spec, content_type="application/json").status_code == 200
    after = scrape_anew("/metrics/store")
    assert all(after[key] >= value for key, value in before.items() if key[0].endswith("_total"))
