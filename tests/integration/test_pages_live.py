"""The parts of a page that keep themselves fresh bring with them all else that has changed: no page says two things."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.publishing.models import IndexerFence
from controlplane.sources.models import SourceEvent
from controlplane.supervisors import services
from controlplane.tasks.models import Goal, Indexer, Status, Task
from tests.support.django_cast import Cast, browsing_as, settle
from tests.support.html import Element, parsed

FLIGHTS = "/supervisors/flights/"
CAUGHT_UP = {"topic_exists": True, "settled": 1500, "lag": 0, "end_offsets": {"0": 1500}}


@pytest.fixture
def owner(cast: Cast) -> Client:
    return browsing_as(cast, "owner")


def asked_again(client: Client, page: Element, part: str) -> Element:
    """What the part's question is answered with, as htmx would ask it."""
    live = page.one(id=part)
    head = live.attributes["hx-vals"].removeprefix('{"head": "').removesuffix('"}')
    return parsed(client.get(live.attributes["hx-get"], {"head": head}))


def replaced(answer: Element) -> set[str]:
    """The ids of what is put elsewhere on the page."""
    return {e.attributes["id"] for e in answer.all() if "hx-swap-oob" in e.attributes}


def test_a_supervisors_buttons_follow_its_state(owner: Client, cast: Cast) -> None:
    page = parsed(owner.get(FLIGHTS))
    assert replaced(asked_again(owner, page, "supervisor-live")) == {
        "supervisor-tasks",
        "supervisor-runs",
        "supervisor-totals",
    }, "a question may be open there"
    services.suspend(user=cast.users["owner"], supervisor=cast.supervisor)
    answer = asked_again(owner, page, "supervisor-live")
    assert replaced(answer) == {"supervisor-tasks", "supervisor-runs", "supervisor-totals", "supervisor-head"}
    assert [d.attributes["id"] for d in answer.all("dialog", class_="confirm")] == [
        "ask-resume",
        "ask-scale",
        "ask-terminate",
    ]
    assert page.one(id="supervisor-head").one("h1").text == answer.one(id="supervisor-head").one("h1").text
    assert answer.one(id="supervisor-tasks").one("a", title=cast.task.pk)


def test_a_tasks_buttons_follow_its_state(owner: Client, cast: Cast) -> None:
    page = parsed(owner.get(f"/tasks/{cast.task.pk}/"))
    assert replaced(asked_again(owner, page, "task-live")) == set()
    Task.objects.filter(pk=cast.task.pk).update(goal=Goal.FINISH)
    answer = asked_again(owner, page, "task-live")
    assert replaced(answer) == {"task-actions"}
    assert [d.attributes["id"] for d in answer.all("dialog", class_="confirm")] == ["ask-stop"]


def test_a_datasource_is_the_same_above_and_below(owner: Client, cast: Cast) -> None:
    page = parsed(owner.get("/datasources/flights/"))
    parts = {"datasource-facts", "datasource-filling", "datasource-gaps", "datasource-readers"}
    assert replaced(asked_again(owner, page, "totals")) == parts
    SourceEvent.objects.create(datasource=cast.datasource, kind="gap", alarm=True, detail="Another one.")
    Task.objects.filter(pk=cast.task.pk).update(status=Status.FAILED)
    answer = asked_again(owner, page, "totals")
    assert replaced(answer) == {*parts, "datasource-alarms"}
    assert "Another one." in answer.one(id="datasource-alarms").text
    assert "FAILED" in answer.one(id="datasource-readers").text


@pytest.mark.parametrize("page", [FLIGHTS, "task"])
def test_a_topic_that_is_missing_is_red(owner: Client, cast: Cast, page: str) -> None:
    nothing: dict[str, Any] = {"topic_exists": False, "settled": 0, "lag": 0, "end_offsets": {}}
    Task.objects.filter(pk=cast.task.pk).update(observation=nothing)
    shown = parsed(owner.get(f"/tasks/{cast.task.pk}/" if page == "task" else page))
    assert shown.one("p", data_topic_missing="").one("span", class_="state-bad").text == "topic missing"
    assert shown.all("div", role="progressbar") == []


def test_an_empty_topic_has_no_share_that_is_done(owner: Client, cast: Cast) -> None:
    empty = {"topic_exists": True, "settled": 0, "lag": 0, "end_offsets": {"0": 0}}
    Task.objects.filter(pk=cast.task.pk).update(observation=empty)
    shown = parsed(owner.get(f"/tasks/{cast.task.pk}/"))
    assert "The topic is empty." in shown.one("main").text
    assert shown.all("div", role="progressbar") == []


def test_a_new_task_that_finds_all_published_is_no_reason_to_worry(owner: Client, cast: Cast) -> None:
    later = Task.objects.get(pk=cast.task.pk)
    Task.objects.filter(pk=cast.task.pk).update(status=Status.SUCCESS)
    later.pk, later.observation = "later", CAUGHT_UP
    later.save(force_insert=True)
    for address in (FLIGHTS, "/tasks/later/"):
        said = parsed(owner.get(address)).one("div", data_reasons="")
        assert [li.attributes["data-reason"] for li in said.all("li")] == ["caught_up"]
        assert said.all("h2") == []


@pytest.mark.parametrize("waiting", [True, False])
def test_a_suspended_supervisor_says_why_nothing_is_published_only_if_something_waits(
    owner: Client, cast: Cast, waiting: bool
) -> None:
    Task.objects.update(status=Status.SUCCESS)
    services.suspend(user=cast.users["owner"], supervisor=cast.supervisor)
    if not waiting:
        settle(cast.keys[0], (700, 710))
        settle(cast.keys[1], (600, 1000))
    said = parsed(owner.get(FLIGHTS)).one("div", data_reasons="")
    assert [h.text for h in said.all("h2")] == ["Why nothing is published"] * waiting
    assert "Suspended by owner since" in said.text


def test_all_in_quarantine_is_not_published(owner: Client, cast: Cast) -> None:
    IndexerFence.objects.update(published=0)
    Task.objects.filter(pk=cast.task.pk).update(observation=CAUGHT_UP)
    assert parsed(owner.get(FLIGHTS)).one("div", data_reasons="").one("h2").text == "Why nothing is published"


def test_a_cause_that_its_task_gives_is_shown_once(owner: Client, cast: Cast) -> None:
    IndexerFence.objects.update(published=0)
    Task.objects.filter(pk=cast.task.pk).update(status=Status.PENDING)
    live = parsed(owner.get(FLIGHTS)).one(id="supervisor-live")
    assert live.one("p", data_health_text="").text == "starting"
    assert live.text.count("It has not sent its first heartbeat yet") == 1


def test_what_is_not_read_is_said_though_rows_were_published(owner: Client, cast: Cast) -> None:
    now = timezone.now()
    Task.objects.filter(pk=cast.task.pk).update(status=Status.RUNNING, last_heartbeat_at=now)
    said = "This login lacks the right READ on topic 'flights-topic'."
    Indexer.objects.filter(task=cast.task).update(state="refused", message=said)
    for address in (FLIGHTS, f"/tasks/{cast.task.pk}/"):
        block = parsed(owner.get(address)).one("div", data_reasons="")
        assert block.one("h2").text == "Some records are not read"
        assert block.one("li").text.startswith(said) and "What to do: " in block.one("li").text
