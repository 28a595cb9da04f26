"""Changes that are safe to send again, that name the version they are for, and that are only tried."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from controlplane.connections.models import Connection
from controlplane.login.celery_tasks import drop_over
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks.models import Task
from controlplane.teams.models import AnsweredRequest, AuditEntry
from tests.support.django_cast import SEED, Cast, make_cast, speaking_as, spec_for

SUPERVISORS, TASKS = "/api/v1/supervisors/", "/api/v1/tasks/"
PLAN = f"{SUPERVISORS}-/plan/"
NEW_TASK = spec_for("flights", groupId="another-group")

pytestmark = pytest.mark.usefixtures("checked_here")


def send(client: Client, method: str, path: str, body: object, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.generic(method, path, json.dumps(body).encode(), "application/json", headers=named)


# Idempotency-Key


def test_a_task_with_a_key_starts_once(owner: Client, cast: Cast) -> None:
    before = Task.objects.count()
    first = send(owner, "POST", TASKS, NEW_TASK, Idempotency_Key="run-7")
    again = send(owner, "POST", TASKS, NEW_TASK, Idempotency_Key="run-7")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json() and again.headers["Location"] == first.headers["Location"]
    assert again.headers["Idempotency-Replayed"] == "true" and "Idempotency-Replayed" not in first.headers
    assert Task.objects.count() == before + 1


def test_without_a_key_it_starts_twice(owner: Client, cast: Cast) -> None:
    answers = [send(owner, "POST", TASKS, NEW_TASK).json()["id"] for _ in range(2)]
    assert answers[0] != answers[1]


def test_a_key_is_for_one_request_of_one_user(clients: dict[str, Client], cast: Cast) -> None:
    send(clients["owner"], "POST", TASKS, NEW_TASK, Idempotency_Key="k")
    other = {**NEW_TASK, "context": {"a": 1}}
    refused = send(clients["owner"], "POST", TASKS, other, Idempotency_Key="k")
    assert refused.status_code == 409 and "'k'" in refused.json()["detail"]
    theirs = send(clients["operator"], "POST", TASKS, NEW_TASK, Idempotency_Key="k")
    assert theirs.status_code == 201 and "Idempotency-Replayed" not in theirs.headers


def test_a_failed_request_leaves_its_key_unused(owner: Client, cast: Cast) -> None:
    assert send(owner, "POST", TASKS, {}, Idempotency_Key="k").status_code == 400
    assert not AnsweredRequest.objects.exists()
    assert send(owner, "POST", TASKS, NEW_TASK, Idempotency_Key="k").status_code == 201


@pytest.mark.parametrize("key", ["x" * 201, "a\x00b"])
def test_an_odd_key_is_refused(owner: Client, cast: Cast, key: str) -> None:
    assert send(owner, "POST", TASKS, NEW_TASK, Idempotency_Key=key).status_code == 400


def test_a_key_is_forgotten_after_a_day(owner: Client, cast: Cast) -> None:
    first = send(owner, "POST", TASKS, NEW_TASK, Idempotency_Key="k")
    AnsweredRequest.objects.update(created_at=timezone.now() - timedelta(hours=24))
    assert send(owner, "POST", TASKS, NEW_TASK, Idempotency_Key="k").json()["id"] != first.json()["id"]
    AnsweredRequest.objects.update(created_at=timezone.now() - timedelta(hours=24))
    drop_over.apply(throw=True)
    assert not AnsweredRequest.objects.exists()


def test_a_supervisor_with_a_key_gets_one_version(owner: Client, cast: Cast) -> None:
    changed = spec_for("flights", taskCount=2)
    answers = [send(owner, "POST", SUPERVISORS, changed, Idempotency_Key="k") for _ in range(2)]
    assert [a.headers["ETag"] for a in answers] == ['"2"', '"2"']
    assert Supervisor.objects.get(pk="flights").version == 2


def test_requests_of_one_key_at_the_same_time_start_one_task(transactional_db: None) -> None:
    """A client whose connection broke sends again while the site still works on the first request."""
    cast = make_cast()
    client, before = speaking_as(cast, "owner"), Task.objects.count()

    def post(_: int) -> tuple[int, str]:
        try:
            answer = send(client, "POST", TASKS, NEW_TASK, Idempotency_Key="k")
            return answer.status_code, answer.json().get("id", "")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        answers = set(pool.map(post, range(4)))
    assert len(answers) == 1 and answers.pop()[0] == 201
    assert Task.objects.count() == before + 1


# If-Match


def test_a_spec_for_another_version_is_refused(owner: Client, cast: Cast) -> None:
    assert owner.get(f"{SUPERVISORS}flights/").headers["ETag"] == '"1"'
    first = send(owner, "POST", SUPERVISORS, spec_for("flights", taskCount=2), If_Match='"1"')
    late = send(owner, "POST", SUPERVISORS, spec_for("flights", taskCount=3), If_Match='"1"')
    assert (first.status_code, first.headers["ETag"]) == (200, '"2"')
    assert (late.status_code, late.json()["type"]) == (412, "urn:headgate:problem:changed-meanwhile")
    assert Supervisor.objects.get(pk="flights").io_config.taskCount == 2


def test_only_create_and_only_change(owner: Client, cast: Cast) -> None:
    assert send(owner, "POST", SUPERVISORS, spec_for("flights"), If_None_Match="*").status_code == 412
    assert send(owner, "POST", SUPERVISORS, SEED, If_Match='"1"').status_code == 412
    assert not Supervisor.objects.filter(pk="my_datasource").exists()
    assert send(owner, "POST", SUPERVISORS, SEED, If_None_Match="*").status_code == 201


@pytest.mark.parametrize("headers", [{"If_Match": "1"}, {"If_None_Match": '"1"'}, {"If_Match": '"1", "2"'}])
def test_a_condition_that_cannot_be_read_changes_nothing(owner: Client, cast: Cast, headers: dict[str, str]) -> None:
    assert send(owner, "POST", SUPERVISORS, spec_for("flights", taskCount=2), **headers).status_code == 400
    assert SpecVersion.objects.filter(supervisor_id="flights").count() == 1


# Plans and dry runs


def test_a_plan_says_what_changes_and_changes_nothing(owner: Client, cast: Cast) -> None:
    before = AuditEntry.objects.count()
    plan = send(owner, "POST", PLAN, spec_for("flights", taskCount=2)).json()
    assert (plan["supervisor"], plan["action"], plan["version"]) == ("flights", "update", 1)
    changed = [line["text"].strip("+- ,") for line in plan["diff"] if line["kind"] in ("added", "removed")]
    assert changed == ['"taskCount": 1', '"taskCount": 2'] and plan["secrets_changed"] is False
    assert send(owner, "POST", PLAN, SEED).json()["action"] == "create"
    assert send(owner, "POST", PLAN, spec_for("flights")).json()["action"] == "none"
    assert (SpecVersion.objects.count(), Supervisor.objects.count()) == (1, 1)
    assert AuditEntry.objects.count() == before


def test_a_plan_sees_a_changed_secret_and_shows_none(owner: Client, cast: Cast) -> None:
    login = {
        "bootstrap.servers": "10.0.0.1:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "headgate",
    }
    spec = spec_for("flights", consumerProperties={**login, "sasl.password": "first-canary"})
    assert send(owner, "POST", SUPERVISORS, spec).status_code == 200
    spec["ioConfig"]["consumerProperties"]["sasl.password"] = "second-canary"
    answer = send(owner, "POST", PLAN, spec)
    assert (answer.json()["action"], answer.json()["secrets_changed"]) == ("update", True)
    assert b"canary" not in answer.content


def test_a_plan_of_a_resumption_and_of_what_is_terminated(owner: Client, cast: Cast) -> None:
    send(owner, "POST", f"{SUPERVISORS}flights/suspend/", None)
    plan = send(owner, "POST", PLAN, {**spec_for("flights"), "suspended": False}).json()
    assert plan["action"] == "update"
    assert [line["text"].strip(" ,") for line in plan["diff"] if line["kind"] == "added"] == ['+  "suspended": false']
    send(owner, "POST", f"{SUPERVISORS}flights/terminate/", None)
    assert send(owner, "POST", PLAN, spec_for("flights")).json()["action"] == "restore"


def test_a_dry_run_is_answered_and_taken_back(owner: Client, cast: Cast) -> None:
    body = {"name": "tried", "kind": "kafka", "properties": {"bootstrap.servers": "127.0.0.1:9092"}}
    answer = send(owner, "POST", "/api/v1/connections/?dryRun=true", body)
    assert (answer.status_code, answer.json()["name"]) == (201, "tried")
    assert not Connection.objects.filter(name="tried").exists()
    rules = {"rules": [{"type": "loadByPeriod", "period": "P1D"}, {"type": "dropForever"}]}
    tried = send(owner, "PUT", "/api/v1/datasources/flights/rules/?dryRun=true", rules).json()
    assert [rule["type"] for rule in tried["rules"]] == ["loadByPeriod", "dropForever"]
    assert owner.get("/api/v1/datasources/flights/rules/").json()["rules"] == []


def test_a_misspelled_dry_run_makes_no_change(owner: Client, cast: Cast) -> None:
    answer = send(owner, "PUT", "/api/v1/datasources/flights/rules/?dryRun=yes", {"rules": [{"type": "dropForever"}]})
    assert answer.status_code == 400
    assert owner.get("/api/v1/datasources/flights/rules/").json()["rules"] == []


def test_compaction_is_set_tried_and_turned_off(owner: Client, cast: Cast) -> None:
    path = "/api/v1/datasources/flights/compaction/"
    tried = send(owner, "PUT", f"{path}?dryRun=true", {"config": {"skipOffsetFromLatest": "P3D"}}).json()
    assert tried["config"]["skipOffsetFromLatest"] == "P3D" and owner.get(path).json()["config"] is None
    assert send(owner, "PUT", path, {"config": {"skipOffsetFromLatest": "P2D"}}).json()["on"] is True
    assert owner.get(path).json()["config"]["skipOffsetFromLatest"] == "P2D"
    assert [send(owner, "PUT", path, {"config": None}).json()["config"] for _ in range(2)] == [None, None]
    assert send(owner, "PUT", path, {"config": {"nonsense": 1}}).status_code == 400
