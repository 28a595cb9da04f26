"""Supervisors over REST, ours and Druid's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.publishing.models import IndexerFence
from controlplane.sources.models import Source
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks.models import Task
from ingestion.specs.source_traits import OFFSET_RANGE, STORED_OFFSETS
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from tests.support.django_cast import SEED, STARTED, Cast, make_receipt, settle, spec_for

SUPERVISORS = "/api/v1/supervisors/"
FLIGHTS = f"{SUPERVISORS}flights/"
DRUID = "/druid/indexer/v1/supervisor"


def kafka_spec(name: str) -> dict[str, Any]:
    spec = {**spec_for(name), "type": "kafka"}
    del spec["ioConfig"]["groupId"]
    return spec


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
    assert (suspended["suspended"], [r["code"] for r in suspended["why_nothing"]]) == (True, ["stopping"])
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
        recent_errors=[{"task": "t", "at": "", "class": "TaskFailed", "message": "boom"}],
        detailed_state="UNHEALTHY_TASKS",
    )
    flights = owner.get(FLIGHTS).json()
    assert flights["healthy"] is False
    [reason] = flights["why_nothing"]
    assert (reason["code"], reason) == ("failing", {name: flights["health"][name] for name in reason})
    assert "Its last 3 tasks have all failed; the next starts at " in reason["text"]
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


# As Druid documents its status report.
REPORT = {
    "dataSource",
    "stream",
    "partitions",
    "replicas",
    "durationSeconds",
    "activeTasks",
    "publishingTasks",
    "latestOffsets",
    "minimumLag",
    "aggregateLag",
    "offsetsLastUpdated",
    "suspended",
    "healthy",
    "state",
    "detailedState",
    "recentErrors",
}
REPORTED_TASK = {"id", "startingOffsets", "startTime", "remainingSeconds", "type", "currentOffsets"}


def test_druid_status_of_a_share_group(owner: Client, cast: Cast) -> None:
    status = owner.get(f"{DRUID}/flights/status").json()
    payload = status["payload"]
    assert set(payload) == REPORT
    assert (status["id"], payload["stream"], payload["partitions"]) == ("flights", "flights-topic", 2)
    assert payload["latestOffsets"] == {"0": 1000, "1": 1000}
    assert payload["minimumLag"] == {"0": 10, "1": 400}
    assert payload["aggregateLag"] == 410
    [task] = payload["activeTasks"]
    assert (set(task), task["id"]) == (REPORTED_TASK | {"lag"}, cast.task.pk)
    assert (task["startingOffsets"], task["currentOffsets"]) == ({"0": 0}, {"0": 1000, "1": 600})
    # Its tasks read for as long as they can.
    assert (payload["durationSeconds"], task["remainingSeconds"]) == (None, None)


def test_druid_status_of_stored_offsets(owner: Client, cast: Cast) -> None:
    """Its task read on from 100 and has published up to 120; the one before is still publishing."""
    post(owner, DRUID, kafka_spec("rides"))
    supervisor = Supervisor.objects.get(pk="rides")
    Supervisor.objects.filter(pk="rides").update(partitions=2)
    source = Source.objects.create(
        datasource=supervisor.datasource,
        kind=STORED_OFFSETS.kind,
        cluster_id="c",
        group="rides",
        topic="rides-topic",
        topic_id="t",
        looked_at=STARTED,
        bounds={"0": [0, 90, 150], "1": [0, 0, 5]},
    )
    key = source.keys.create(partition=0, next_offset=120)
    settle(key, (90, 120))
    now = timezone.now()
    for name, goal, told in (("reads", "continue", None), ("publishes", "finish", now - timedelta(minutes=1))):
        task = Task.objects.create(
            id=name,
            kind=OFFSET_RANGE.kind,
            datasource=supervisor.datasource,
            supervisor_id="rides",
            spec=parse_supervisor_spec(kafka_spec("rides")).task_spec(1).canonical(),
            status="RUNNING",
            goal=goal,
            created_at=STARTED,
            started_at=STARTED,
            observation={"told_at": told and told.isoformat()},
        )
        ago = timedelta(minutes=10)
        IndexerFence.objects.create(
            task_id=name, number=0, datasource=task.datasource, source=source, started_at=now - ago
        )
        make_receipt(task, key, (100, 120) if name == "reads" else (90, 100), {}, [])
    payload = owner.get(f"{DRUID}/rides/status").json()["payload"]
    assert set(payload) == REPORT
    assert (payload["partitions"], payload["durationSeconds"], payload["aggregateLag"]) == (2, 3600, 35)
    [active], [publishing] = payload["activeTasks"], payload["publishingTasks"]
    assert set(active) == REPORTED_TASK | {"lag"}
    assert set(publishing) == REPORTED_TASK
    assert (active["startingOffsets"], active["currentOffsets"]) == ({"0": 100}, {"0": 120})
    assert (active["type"], active["lag"]) == ("ACTIVE", {"0": 30, "1": 5})
    assert (publishing["type"], publishing["startingOffsets"]) == ("PUBLISHING", {"0": 90})
    assert 2940 < active["remainingSeconds"] <= 3000  # of an hour
    assert 1680 < publishing["remainingSeconds"] <= 1740  # of 30 minutes, completionTimeout


@pytest.mark.parametrize("make", ["kafka", "share group"])
def test_what_druid_answers_can_be_sent_back(owner: Client, make: str) -> None:
    """Its parts stand beside ``spec`` too; what comes back unchanged changes nothing, suspended or not."""
    spec = kafka_spec("rides") if make == "kafka" else spec_for("rides")
    spec["ioConfig"]["consumerProperties"] |= {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "user",
        "sasl.password": "hidden-one",
    }
    post(owner, DRUID, spec)
    for action in ("suspend", "resume"):
        post(owner, f"{DRUID}/rides/{action}")
        document = owner.get(f"{DRUID}/rides").json()
        assert {name: document[name] for name in document["spec"]} == document["spec"]
        assert set(document["spec"]) == {"dataSchema", "ioConfig", "tuningConfig"}
        assert {"context", "suspended", "type", "id"} < set(document)
        assert "hidden-one" not in str(document)
        for sent in (document, {**document, "context": None}):
            for query in ("?skipRestartIfUnmodified=true", ""):
                assert post(owner, f"{DRUID}{query}", sent).json() == {"id": "rides"}
            assert SpecVersion.objects.filter(supervisor_id="rides").count() == 1
    document["spec"]["ioConfig"]["taskCount"] = 2  # what is under spec counts
    post(owner, f"{DRUID}?skipRestartIfUnmodified=true", document)
    assert Supervisor.objects.get(pk="rides").io_config.taskCount == 2


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
