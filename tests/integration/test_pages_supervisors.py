"""The pages of supervisors: list, state, spec versions, actions."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.connections.kafka import TopicOffsets
from controlplane.loading.models import Draft
from controlplane.supervisors import services
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.run import run
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Task
from controlplane.tasks.watching import ObservedTopic, store_observations
from controlplane.teams.models import AuditEntry
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.integration.test_health_of_supervisors import sample
from tests.support.django_cast import Cast, browsing_as, spec_for
from tests.support.html import counters, parsed

FLIGHTS = "/supervisors/flights/"


@pytest.fixture
def owner(cast: Cast) -> Client:
    return browsing_as(cast, "owner")


def test_the_list(owner: Client, cast: Cast) -> None:
    [row] = parsed(owner.get("/supervisors/")).one("tbody").all("tr")
    cells = {c.attributes["data-col"]: c.text for c in row.all("td")}
    assert (cells["state"], cells["datasource"], cells["team"]) == ("starting", "flights", "alpha")
    assert (cells["topic"], cells["indexers"], cells["version"]) == ("flights-topic", "1", "version 1")
    assert row.one("a", title=cast.task.pk).text == "06-01 12:00 · abcdefgh"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"state": "RUNNING"}, 1),
        ({"state": "SUSPENDED"}, 0),
        ({"search": "LIGHT"}, 1),
        ({"search": "s-TOP"}, 1),
        ({"search": "x"}, 0),
    ],
)
def test_filters(owner: Client, query: dict[str, str], found: int) -> None:
    assert len(parsed(owner.get("/supervisors/", query)).all("tbody")) == found


def test_filter_and_order_by_the_state_that_follows_from_the_detailed_one(owner: Client, cast: Cast) -> None:
    services.submit_supervisor(user=cast.users["owner"], document=spec_for("late"), team_name="alpha")
    Supervisor.objects.filter(pk="flights").update(detailed_state="KAFKA_REFUSES")

    def listed(query: dict[str, str]) -> list[str]:
        return [row.one("th").text for row in parsed(owner.get("/supervisors/", query)).one("tbody").all("tr")]

    assert listed({"state": "UNHEALTHY_TASKS"}) == ["flights"]
    assert listed({"sort": "state"}) == ["late", "flights"]  # PENDING before UNHEALTHY_TASKS
    assert listed({"sort": "-state"}) == ["flights", "late"]


def test_one_shows_its_state_and_totals_and_keeps_them_fresh(owner: Client, cast: Cast) -> None:
    page = parsed(owner.get(FLIGHTS))
    live = page.one(id="supervisor-live")
    assert live.attributes["hx-get"] == f"{FLIGHTS}live/"
    assert live.one("a", title=cast.task.pk)
    assert counters(page)["published"] == "1,500"
    assert counters(parsed(owner.get(f"{FLIGHTS}live/"))) == counters(page)


def test_that_the_members_of_its_group_are_not_known_is_said_once(owner: Client, cast: Cast) -> None:
    unknown = TopicOffsets("id", {0: 0}, {0: 0}, {0: 0}, members_problem="This login lacks the right DESCRIBE.")
    spec = parse_task_spec({name: value for name, value in cast.task.spec.items() if name != "suspended"})
    for topic in (unknown, replace(unknown, members_problem="")):
        store_observations([ObservedTopic(cast.task, spec, topic)])
        shown = owner.get(FLIGHTS).content.decode()
        assert shown.count("This login lacks the right DESCRIBE.") == bool(topic.members_problem)
        assert ("can't list the other members of its consumer group" in shown) == bool(topic.members_problem)


def test_a_supervisor_that_backs_off_says_so(owner: Client, cast: Cast) -> None:
    Supervisor.objects.filter(pk="flights").update(
        failures=3,
        next_start_at=timezone.now() + timedelta(minutes=1),
        detailed_state="UNHEALTHY_TASKS",
        recent_errors=[{"at": "2025-06-01T12:00:00Z", "message": "no heartbeat"}],
    )
    page = parsed(owner.get(FLIGHTS))
    assert "Its last 3 tasks have all failed; the next starts at" in page.one("div", data_reasons="").text
    assert page.one(id="supervisor-live").text.count("have all failed") == 1
    assert "no heartbeat" in [e.raw_text for e in page.all("pre")]


def test_versions_and_what_changed(owner: Client) -> None:
    assert parsed(owner.get(f"{FLIGHTS}spec/")).all("span", class_="diff-line") == []
    owner.post(f"{FLIGHTS}scale/", {"task_count": 5})
    page = parsed(owner.get(f"{FLIGHTS}spec/"))
    changed = [e.text for e in page.all("span", class_="diff-added") + page.all("span", class_="diff-removed")]
    assert changed == ['+ "taskCount": 5,', '- "taskCount": 1,']
    assert '"taskCount": 5' in page.one("pre", id="spec-json").text
    assert '"taskCount": 1' in parsed(owner.get(f"{FLIGHTS}spec/?version=1")).one("pre", id="spec-json").text


@pytest.mark.parametrize("version", ["3", "x", ""])
def test_a_version_that_is_none_is_not_found(owner: Client, version: str) -> None:
    assert owner.get(f"{FLIGHTS}spec/?version={version}").status_code == 404


def test_suspend_and_resume(owner: Client, cast: Cast) -> None:
    page = parsed(owner.post(f"{FLIGHTS}suspend/", follow=True))
    assert "is suspended" in page.one("div", class_="alert-success").text
    assert [d.attributes["id"] for d in page.all("dialog", class_="confirm")] == [
        "ask-resume",
        "ask-scale",
        "ask-terminate",
    ]
    assert [r.attributes["data-reason"] for r in page.all("li") if "data-reason" in r.attributes] == ["stopping"]
    again = parsed(owner.post(f"{FLIGHTS}suspend/", follow=True))
    assert "is already suspended" in again.one("div", class_="alert-danger").text
    owner.post(f"{FLIGHTS}resume/")
    cast.supervisor.refresh_from_db()
    assert not cast.supervisor.suspended


def test_terminate(owner: Client, cast: Cast) -> None:
    page = parsed(owner.post(f"{FLIGHTS}terminate/", follow=True))
    assert page.all("dialog", class_="confirm") == []
    assert "TERMINATED" in page.one(id="supervisor-live").text
    assert "hx-get" in page.one(id="supervisor-live").attributes, "its task may still publish"
    end_task(cast.task, error="")
    run(cast.supervisor.pk)
    assert "hx-get" not in parsed(owner.get(FLIGHTS)).one(id="supervisor-live").attributes
    assert parsed(owner.get("/supervisors/")).all("tbody") == []
    again = parsed(owner.post(f"{FLIGHTS}suspend/", follow=True))
    assert "is terminated" in again.one("div", class_="alert-danger").text


def test_what_is_read_out_of_one_that_is_terminated_while_it_is_suspended(owner: Client, cast: Cast) -> None:
    """Not its state in REST, which is SUSPENDED until its next round."""
    owner.post(f"{FLIGHTS}suspend/")
    end_task(cast.task, error="")
    run(cast.supervisor.pk)
    assert parsed(owner.get(FLIGHTS)).one(id="supervisor-live").attributes["data-announce"] == "flights is SUSPENDED"
    page = parsed(owner.post(f"{FLIGHTS}terminate/", follow=True))
    said = page.one(id="supervisor-live").attributes["data-announce"]
    assert said is not None and said.startswith("flights: Terminated by owner since ")


def test_the_scale_form_starts_with_what_is(owner: Client) -> None:
    field = parsed(owner.get(FLIGHTS)).one("dialog", id="ask-scale").one("input", name="task_count")
    assert field.attributes["value"] == "1"


@pytest.mark.parametrize("count", ["", "0", "-1", "many", "1001"])
def test_a_number_of_indexers_that_is_none_is_asked_again(owner: Client, cast: Cast, count: str) -> None:
    answer = owner.post(f"{FLIGHTS}scale/", {"task_count": count})
    assert answer.status_code == 400
    page = parsed(answer)
    assert page.one("main").one("form").all("div", role="alert")
    cast.supervisor.refresh_from_db()
    assert cast.supervisor.version == 1


def test_more_indexers_than_slots_are_refused_with_the_reason(owner: Client, cast: Cast) -> None:
    page = parsed(owner.post(f"{FLIGHTS}scale/", {"task_count": 999}, follow=True))
    assert "slots" in page.one("div", class_="alert-danger").text
    cast.supervisor.refresh_from_db()
    assert cast.supervisor.version == 1


def test_an_operator_sees_no_button_of_an_admin(cast: Cast) -> None:
    page = parsed(browsing_as(cast, "operator").get(FLIGHTS))
    assert [d.attributes["id"] for d in page.all("dialog", class_="confirm")] == ["ask-suspend", "ask-handoff"]
    assert [e for e in page.one("main").all() if e.tag in ("a", "button") and e.text.startswith("Change")] == []
    page = parsed(browsing_as(cast, "owner").get(FLIGHTS)).one("main")
    links = {a.text: a.attributes["href"] for a in page.all("a")}
    assert links["Change the JSON"] == "/supervisors/-/new/?from=flights"
    assert page.one("form", action="/load/").one("button").text == "Change"


def test_change_opens_the_review_of_a_draft_by_one_click(owner: Client, cast: Cast) -> None:
    form = parsed(owner.get(FLIGHTS)).one("form", action="/load/")
    answer = owner.post("/load/", {"supervisor": form.one("input", name="supervisor").attributes["value"]})
    draft = Draft.objects.get()
    assert answer["Location"] == f"/load/{draft.pk}/review/"
    assert draft.supervisor_id == "flights"


def test_a_change_starts_with_the_current_spec_and_says_that_secrets_are_hidden(owner: Client, cast: Cast) -> None:
    version = cast.supervisor.versions.get(version=1)
    page = parsed(owner.get("/supervisors/-/new/?from=flights"))
    assert '"topic": "flights-topic"' in page.one("textarea", id="id_document").raw_text
    assert "never shown" not in page.one("main").text
    type(version).objects.filter(pk=version.pk).update(secrets="sealed")
    assert "never shown" in parsed(owner.get("/supervisors/-/new/?from=flights")).one("main").text


def test_a_change_of_a_suspended_one_leaves_it_so(owner: Client, cast: Cast) -> None:
    """On the page, over REST and at Druid's address: what is shown and sent back neither suspends nor resumes."""
    services.suspend(user=cast.users["owner"], supervisor=cast.supervisor)
    page = parsed(owner.get("/supervisors/-/new/?from=flights"))
    assert "This supervisor is suspended. It stays suspended" in page.one("main").text
    written = json.loads(page.one("textarea", id="id_document").raw_text)
    written["spec"]["ioConfig"]["taskCount"] = 2
    owner.post("/supervisors/-/new/?from=flights", {"document": json.dumps(written)})
    shown = owner.get("/api/v1/supervisors/flights/").json()["spec"]
    assert shown["suspended"] is True
    shown["spec"]["ioConfig"]["taskCount"] = 3
    owner.post("/api/v1/supervisors/", shown, content_type="application/json")
    del shown["suspended"]
    shown["spec"]["ioConfig"]["taskCount"] = 4
    owner.post("/druid/indexer/v1/supervisor", shown, content_type="application/json")
    cast.supervisor.refresh_from_db()
    assert (cast.supervisor.version, cast.supervisor.suspended) == (4, True)


def test_history_has_authors_changes_of_secrets_and_terminations(owner: Client, cast: Cast) -> None:
    """The page and REST tell the same history."""

    def submit(password: str, **io_config: int) -> None:
        spec = spec_for("guarded", **io_config)
        login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u"}
        spec["ioConfig"]["consumerProperties"] |= {**login, "sasl.password": password}
        services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")

    submit("one")
    submit("two")
    services.terminate(user=cast.users["owner"], supervisor=Supervisor.objects.get(pk="guarded"))
    submit("two", taskCount=7)
    third, second, first = owner.get("/api/v1/supervisors/guarded/versions/").json()["results"]
    assert [v["created_by"] for v in (third, second, first)] == ["owner"] * 3
    assert [v["secrets_changed"] for v in (third, second, first)] == [False, True, False]
    assert (first["diff"], second["diff"], first["terminated"], third["terminated"]) == ([], [], None, None)
    changed = [line["text"].strip("+- ,") for line in third["diff"] if line["kind"] in ("added", "removed")]
    assert changed == ['"taskCount": 1', '"taskCount": 7']
    assert second["terminated"]["by"] == "owner"
    assert first["created_at"] < second["created_at"] < second["terminated"]["at"] < third["created_at"]
    page = parsed(owner.get("/supervisors/guarded/spec/?version=2"))
    assert "by owner" in page.one("li", data_tombstone="").text
    assert page.one("p", data_secrets_changed="").text.startswith("Only secrets")
    assert [e.text[:9] for e in page.all("ol")[-1].all("li")] == ["Version 3", "terminate", "Version 2", "Version 1"]
    assert "data-secrets-changed" not in owner.get("/supervisors/guarded/spec/").content.decode()


def test_a_secret_is_on_no_page(owner: Client) -> None:
    spec = spec_for("guarded")
    spec["ioConfig"]["consumerProperties"] |= {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": "canary-7",
    }
    assert owner.post("/supervisors/-/new/", {"document": json.dumps(spec)}).status_code == 302
    for address in ("/supervisors/guarded/", "/supervisors/guarded/spec/", "/supervisors/-/new/?from=guarded"):
        assert "canary-7" not in owner.get(address).content.decode()


def test_any_two_versions_are_compared(owner: Client) -> None:
    for count in (5, 7):
        owner.post(f"{FLIGHTS}scale/", {"task_count": count})
    page = parsed(owner.get(f"{FLIGHTS}spec/?version=3&against=1"))
    changed = [e.text for e in page.all("span", class_="diff-added") + page.all("span", class_="diff-removed")]
    assert changed == ['+ "taskCount": 7,', '- "taskCount": 1,']
    page = parsed(owner.get(f"{FLIGHTS}spec/?version=1&against=3"))
    assert [e.text for e in page.all("span", class_="diff-added")] == ['+ "taskCount": 1,']
    assert owner.get(f"{FLIGHTS}spec/?version=1&against=9").status_code == 404


def test_rolling_back_asks_shows_what_changes_and_writes_a_new_version(owner: Client, cast: Cast) -> None:
    owner.post(f"{FLIGHTS}scale/", {"task_count": 5})
    asks = parsed(owner.get(f"{FLIGHTS}spec/1/confirm/"))
    assert [e.text for e in asks.all("span", class_="diff-added")] == ['+ "taskCount": 1,']
    owner.post(f"{FLIGHTS}spec/1/")
    supervisor = Supervisor.objects.get(pk="flights")
    assert supervisor.version == 3
    assert supervisor.current.spec["spec"] == supervisor.versions.get(version=1).spec["spec"]
    assert supervisor.current.created_by == cast.users["owner"]
    entry = AuditEntry.objects.get(target_id="flights", action="update")
    assert entry.detail == {"version": 3, "rolled_back_to": 1}


def test_a_supervisor_that_is_suspended_stays_so_when_it_is_rolled_back(owner: Client) -> None:
    owner.post(f"{FLIGHTS}scale/", {"task_count": 5})
    owner.post(f"{FLIGHTS}suspend/")
    owner.post(f"{FLIGHTS}spec/1/")
    assert Supervisor.objects.get(pk="flights").suspended


def test_there_is_no_way_back_to_what_holds(owner: Client) -> None:
    assert owner.get(f"{FLIGHTS}spec/1/confirm/").status_code == 404
    page = parsed(owner.post(f"{FLIGHTS}spec/1/", follow=True))
    assert "is the current version" in page.one("div", class_="alert-danger").text
    assert Supervisor.objects.get(pk="flights").version == 1


def test_runs_are_drawn_and_named(owner: Client, cast: Cast) -> None:
    Task.objects.update(created_at=timezone.now() - timedelta(hours=1))
    drawing = parsed(owner.get(FLIGHTS)).one(id="supervisor-runs")
    [link] = drawing.all("a")
    assert link.attributes["href"] == f"/tasks/{cast.task.pk}/"
    assert "running" in link.attributes["aria-label"]


def test_the_list_is_filtered_by_trouble(owner: Client, cast: Cast) -> None:
    """What the list says of a supervisor and what it is filtered by are one thing."""

    def found(trouble: str) -> int:
        return len(parsed(owner.get("/supervisors/", {"health": trouble})).all("tbody"))

    choices = [o.text for o in parsed(owner.get("/supervisors/")).one("select", name="health").all("option")]
    assert choices == ["Any", "Kafka unreachable", "Lagging"]
    assert (found("kafka_unreachable"), found("behind"), found("")) == (0, 0, 1)
    for minutes in (2, 0):
        sample(cast.source, timedelta(minutes=minutes), 50_000)
    assert (found("kafka_unreachable"), found("behind"), found("nonsense")) == (0, 1, 1)
    silent = {"at": "2025-06-01T12:00:00Z", "message": "no broker answers", "class": "KafkaSilent", "stream": True}
    Supervisor.objects.filter(pk="flights").update(failed_runs=3, run_errors=[silent])
    assert (found("kafka_unreachable"), found("behind")) == (1, 0)
    rest = parsed(owner.get("/supervisors/", {"health": "kafka_unreachable"})).one(id="page-curl").text
    assert "/api/v1/supervisors/?health=kafka_unreachable" in rest
