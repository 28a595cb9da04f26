"""The home page: problems first, each with its next step; first steps where there is nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.alerts.evaluating import evaluate
from controlplane.alerts.models import Alert
from controlplane.datasources.models import Datasource
from controlplane.loading.demo import TOPIC
from controlplane.loading.models import Draft
from controlplane.sources.models import SourceEvent
from controlplane.supervisors import services
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.states import Detail
from controlplane.tasks.models import Task
from tests.integration.test_health_of_supervisors import COARSE_S, one_of_everything, sample
from tests.integration.test_overview import quarantine
from tests.support.alert_rounds import rule_of
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import Element, parsed


@pytest.fixture
def owner(cast: Cast) -> Client:
    return browsing_as(cast, "owner")


def problems(page: Element) -> dict[str, Element]:
    return {e.attributes["data-problem"]: e for e in page.all("div") if "data-problem" in e.attributes}


def test_each_problem_is_a_sentence_with_its_next_step(owner: Client, cast: Cast) -> None:
    Supervisor.objects.update(detailed_state=Detail.UNHEALTHY_TASKS, failures=3)
    quarantine(cast, range(3), "amount is text", timezone.now())
    found = problems(parsed(owner.get("/")))
    assert list(found) == ["failing", "gap", "quarantined"]
    assert "flights: Its last 3 tasks have all failed" in found["failing"].text
    assert (
        "flights: 3 records wait in quarantine, the newest by version 1 of flights: amount is"
        in found["quarantined"].text
    )
    [fix] = [link for link in found["quarantined"].all("a") if link.text.startswith("Fix spec")]
    assert fix.attributes["href"].startswith("/datasources/flights/quarantine/fix/?cause=")
    for row in found.values():
        for link in row.all("a"):
            assert owner.get(link.attributes["href"]).status_code == 200


def test_a_reader_that_kafka_refuses_is_a_problem_and_fires(owner: Client, cast: Cast) -> None:
    """Although its task runs, and published before."""
    for ago in (2, 0):
        sample(cast.source, timedelta(minutes=ago), 0)
    rule_of(cast, "unhealthy")
    evaluate()
    assert Alert.objects.get().state == "ok"
    lacks = "This login lacks the right READ on topic 'flights-topic' (Broker: Topic authorization failed)."
    cast.task.indexers.filter(number=1).update(state="refused", message=lacks)
    evaluate()
    told = f"1 of 2 indexers: {lacks.rstrip('.')}. It retries every few seconds."
    assert told in problems(parsed(owner.get("/")))["kafka_refuses"].text
    alert = Alert.objects.get()
    assert (alert.state, told in alert.text) == ("firing", True)
    [reason] = owner.get(f"/api/v1/tasks/{cast.task.pk}/").json()["why_nothing"]
    assert (reason["code"], reason["cause"]) == ("kafka_refuses", lacks)


def test_a_well_site_says_so(owner: Client, cast: Cast) -> None:
    SourceEvent.objects.all().delete()
    sample(cast.source, timedelta(minutes=2), 0)
    sample(cast.source, timedelta(), 0)
    page = parsed(owner.get("/"))
    assert problems(page) == {}
    assert "Nothing needs attention now" in page.one("p", data_no_problems="").text
    [state] = [e for e in page.one("main").all("span") if "data-health" in e.attributes]
    assert (state.attributes["data-health"], state.text) == ("idle", "idle")


def test_a_site_that_nobody_looks_at_is_not_called_well(owner: Client, cast: Cast) -> None:
    SourceEvent.objects.all().delete()
    Supervisor.objects.update(ran_at=timezone.now() - timedelta(minutes=5))
    assert "not_observed" not in problems(parsed(owner.get("/"))), "it begins again"
    Supervisor.objects.update(contacted_at=timezone.now())
    page = parsed(owner.get("/"))
    assert "Check that the processes `worker` and `beat` are running." in problems(page)["not_observed"].text
    assert page.all("p", data_no_problems="") == []
    druid = "/druid/indexer/v1/supervisor/flights/health"
    assert [owner.get(druid).status_code, owner.get("/api/v1/supervisors/flights/").json()["healthy"]] == [503, False]
    Supervisor.objects.update(suspended=True)
    assert owner.get(druid).json() == {"healthy": True}


def test_several_teams_stand_side_by_side_and_a_chosen_one_alone(cast: Cast) -> None:
    Datasource.objects.create(name="trains", team=cast.beta)
    admin = browsing_as(cast, "superuser")
    rows = [e for e in parsed(admin.get("/")).all("tr") if "data-team" in e.attributes]
    assert [row.one("th").text for row in rows] == ["alpha", "beta"]
    assert [row.all("td")[-1].text for row in rows][1] == "none"
    admin.post("/-/team/", {"team": "beta"})
    assert [e for e in parsed(admin.get("/")).all("tr") if "data-team" in e.attributes] == []


def test_a_burst_that_is_over_is_no_rate_and_is_in_the_days_chart(owner: Client, cast: Cast) -> None:
    for ago in range(240, -5, -5):
        sample(cast.source, timedelta(seconds=ago), 0, processed=9000 if ago < 180 else 0)
    for minutes in (30, 0):
        sample(cast.source, timedelta(minutes=minutes), 0, processed=9000, resolution_s=COARSE_S)
    page = parsed(owner.get("/"))
    assert page.one("div", data_figure="rate").one("div", class_="figure-value").text == "0"
    charts = [e for e in page.all("section") if "data-chart" in e.attributes]
    assert [chart.one("h2").text for chart in charts] == ["Records stored/s", "Lag"]
    summaries = [chart.one("span", class_="small").text for chart in charts]
    assert "-minute averages; peak" in summaries[0] and "-minute maximums; peak" in summaries[1]
    assert len(charts[0].all("span")) == 6  # the most, and five times


def test_who_may_read_the_audit_trail_sees_the_newest_changes(owner: Client, cast: Cast) -> None:
    services.suspend(user=cast.users["operator"], supervisor=cast.supervisor)
    shown = [e.attributes["data-change"] for e in parsed(owner.get("/")).all("li") if "data-change" in e.attributes]
    assert shown == ["suspend"]
    assert "Newest changes" not in parsed(browsing_as(cast, "viewer").get("/")).one("main").text


def test_names_from_outside_are_text(owner: Client, cast: Cast) -> None:
    SourceEvent.objects.update(detail="<script>alert(1)</script>")
    answer = owner.get("/").content.decode()
    assert "<script>alert(1)" not in answer
    assert "&lt;script&gt;alert(1)" in answer


@pytest.mark.parametrize(
    ("role", "says", "leads_on"),
    [("outsider", "From a topic to rows", True), ("viewer", "An admin of your team submits", False)],
)
def test_first_steps(cast: Cast, role: str, says: str, leads_on: bool) -> None:
    Supervisor.objects.all().delete()
    Task.objects.all().delete()
    Datasource.objects.all().delete()
    main = parsed(browsing_as(cast, role).get("/")).one("main")
    assert says in main.text
    assert ("Load data" in [a.text for a in main.all("a")]) == leads_on


def _emptied(settings: Any, bootstrap: str) -> None:
    Supervisor.objects.all().delete()
    Task.objects.all().delete()
    Datasource.objects.all().delete()
    settings.DEFAULT_BOOTSTRAP = bootstrap
    cache.clear()


@pytest.fixture
def demos_topic(broker: Broker) -> Iterator[None]:
    """It goes again: whoever walks through the demo makes it."""
    broker.admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(30)
    yield
    broker.admin.delete_topics([TOPIC])[TOPIC].result(30)


@pytest.mark.usefixtures("demos_topic")
def test_one_click_begins_with_the_demos_topic(cast: Cast, broker: Broker, settings: Any) -> None:
    _emptied(settings, broker.kafka.bootstrap)
    owner = browsing_as(cast, "owner")
    form = parsed(owner.get("/")).one("main").one("form")
    fields = {
        e.attributes["name"]: e.attributes["value"] for e in form.all("input") if e.attributes["type"] == "hidden"
    }
    begun = owner.post(form.attributes["action"], fields)
    assert begun["Location"].endswith("/topic/")
    draft = Draft.objects.get()
    assert draft.document["spec"]["ioConfig"]["topic"] == TOPIC
    assert draft.document["spec"]["ioConfig"]["consumerProperties"] == {"bootstrap.servers": broker.kafka.bootstrap}


@pytest.mark.parametrize(
    ("bootstrap", "says"),
    [("127.0.0.1:1", "does not answer"), ("", "Any topic of a Kafka that Headgate can reach")],
)
def test_without_the_demos_topic_the_page_says_what_is_missing(
    cast: Cast, settings: Any, bootstrap: str, says: str
) -> None:
    _emptied(settings, bootstrap)
    main = parsed(browsing_as(cast, "owner").get("/")).one("main")
    assert says in main.text
    assert main.all("form") == []


def test_many_cost_as_many_statements_as_a_few(owner: Client, cast: Cast, settings: Any) -> None:
    settings.WORKER_CAPACITY = 3

    def statements() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert owner.get("/").status_code == 200
        return len(captured)

    one_of_everything(cast.alpha, 0)
    few = statements()
    for number in range(1, 6):
        one_of_everything(cast.alpha, number)
    assert statements() == few
