"""Supervisors over REST, ours and Druid's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks.models import Task
from tests.support.django_cast import SEED, Cast, spec_for

SUPERVISORS = "/api/v1/supervisors/"
FLIGHTS = f"{SUPERVISORS}flights/"
DRUID = "/druid/indexer/v1/supervisor"


@pytest.fixture
def owner(clients: dict[str, Client]) -> Client:
    return clients["owner"]


def post(client: Client, path: str, document: object = None) -> Any:
    return client.post(path, document, content_type="application/json")


def test_create_then_change(owner: Client) -> None:
    made = post(owner, SUPERVISORS, SEED)
    assert (made.status_code, made.headers["Location"]) == (201, f"{SUPERVISORS}my_datasource/")
    assert made.json()["task_count"] == 1
    changed = {**SEED, "ioConfig": {**SEED["ioConfig"], "taskCount": 3}}
    again = post(owner, SUPERVISORS, changed)
    assert (again.status_code, again.json()["version"], again.json()["task_count"]) == (200, 2, 3)
    versions = owner.get(f"{SUPERVISORS}my_datasource/versions/").json()["results"]
    assert [(v["version"], v["spec"]["spec"]["ioConfig"]["taskCount"], v["created_by"]) for v in versions] == [
        (2, 3, "owner"),
        (1, 1, "owner"),
    ]


def test_one_supervisor_in_full(owner: Client, cast: Cast) -> None:
    flights = owner.get(FLIGHTS).json()
    assert (flights["topic"], flights["group"], flights["team"]) == ("flights-topic", "flights-group", "alpha")
    assert flights["current_task"] == cast.task.pk
    assert (flights["totals"]["published"], flights["totals"]["adds_up"]) == (1500, True)
    assert (flights["healthy"], flights["why_nothing"]) == (True, [])


def test_list_filters(owner: Client, cast: Cast) -> None:
    assert [s["id"] for s in owner.get(SUPERVISORS, {"search": "FLI"}).json()["results"]] == ["flights"]
    assert owner.get(SUPERVISORS, {"search": "x"}).json()["results"] == []
    assert owner.get(SUPERVISORS, {"state": "SUSPENDED"}).json()["results"] == []
    assert owner.get(SUPERVISORS, {"state": "ODD"}).status_code == 400


def test_suspend_resume_scale_terminate(owner: Client, cast: Cast) -> None:
    suspended = post(owner, f"{FLIGHTS}suspend/").json()
    assert (suspended["suspended"], suspended["why_nothing"][0]["code"]) == (True, "suspended")
    assert post(owner, f"{FLIGHTS}suspend/").status_code == 409
    assert post(owner, f"{FLIGHTS}resume/").json()["suspended"] is False
    assert post(owner, f"{FLIGHTS}resume/").status_code == 409
    scaled = post(owner, f"{FLIGHTS}scale/", {"taskCount": 4}).json()
    assert (scaled["task_count"], scaled["version"]) == (4, 2)
    assert post(owner, f"{FLIGHTS}terminate/").json()["terminated_at"]
    assert owner.get(SUPERVISORS).json()["results"] == []
    assert owner.get(FLIGHTS).json()["why_nothing"][0]["code"] == "terminated"
    assert post(owner, f"{FLIGHTS}resume/").status_code == 409
    assert owner.get(f"{DRUID}/flights").status_code == 404


@pytest.mark.parametrize("body", [{}, {"taskCount": 0}, {"taskCount": "x"}, {"taskCount": 10**9}, {"task_count": 2}])
def test_a_wrong_scale_changes_nothing(owner: Client, body: object) -> None:
    assert post(owner, f"{FLIGHTS}scale/", body).status_code == 400
    assert SpecVersion.objects.count() == 1


def test_backing_off_says_until_when_and_why(owner: Client, cast: Cast) -> None:
    Task.objects.update(status="FAILED", error="boom")
    Supervisor.objects.update(
        failures=3,
        next_start_at=timezone.now() + timedelta(minutes=1),
        recent_errors=[{"task": "t", "at": "", "message": "boom"}],
        state="UNHEALTHY_TASKS",
    )
    flights = owner.get(FLIGHTS).json()
    assert flights["healthy"] is False
    [reason] = flights["why_nothing"]
    assert reason["code"] == "backing_off"
    assert "3 failures" in reason["text"]
    assert "boom" in reason["text"]


def test_druid_forms(owner: Client, cast: Cast) -> None:
    assert owner.get(DRUID).json() == ["flights"]
    [state] = owner.get(f"{DRUID}?state=true").json()
    assert state == {
        "id": "flights",
        "state": "RUNNING",
        "detailedState": "RUNNING",
        "healthy": True,
        "suspended": False,
    }
    for query in ("full", "full=", "full=null"):
        [full] = owner.get(f"{DRUID}?{query}").json()
        assert full["spec"]["spec"]["dataSchema"]["dataSource"] == "flights"
    spec = owner.get(f"{DRUID}/flights").json()
    assert (spec["type"], spec["suspended"]) == ("index_kafka_share_group", False)


def test_druid_status(owner: Client, cast: Cast) -> None:
    status = owner.get(f"{DRUID}/flights/status").json()
    payload = status["payload"]
    assert (status["id"], payload["stream"], payload["partitions"]) == ("flights", "flights-topic", 2)
    assert payload["latestOffsets"] == {"0": 1000, "1": 1000}
    assert payload["minimumLag"] == {"0": 10, "1": 400}
    assert payload["aggregateLag"] == 410
    assert [t["id"] for t in payload["activeTasks"]] == [cast.task.pk]


def test_druid_submit_and_actions(owner: Client) -> None:
    assert post(owner, DRUID, SEED).json() == {"id": "my_datasource"}
    assert post(owner, f"{DRUID}/my_datasource/suspend").json()["suspended"] is True
    again = post(owner, f"{DRUID}/my_datasource/suspend")
    assert (again.status_code, "already suspended" in again.json()["errorMessage"]) == (400, True)
    assert post(owner, f"{DRUID}/my_datasource/resume").json()["suspended"] is False
    again = post(owner, f"{DRUID}/my_datasource/resume")
    assert (again.status_code, "already running" in again.json()["errorMessage"]) == (400, True)
    assert post(owner, f"{DRUID}/my_datasource/terminate").json() == {"id": "my_datasource"}
    assert post(owner, f"{DRUID}/my_datasource/terminate").status_code == 404


def test_a_supervisor_of_another_team_can_not_be_taken_over(clients: dict[str, Client], cast: Cast) -> None:
    answer = post(clients["outsider"], SUPERVISORS, {**spec_for("mine"), "id": "flights"})
    assert answer.status_code == 409
    assert Supervisor.objects.get(pk="flights").datasource == cast.datasource
    assert post(clients["outsider"], SUPERVISORS, spec_for("flights")).status_code == 409
