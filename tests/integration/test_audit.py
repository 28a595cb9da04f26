"""The audit trail: an entry for every change, read by admins, changed by nobody."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.test import Client

from controlplane.teams import audit
from controlplane.teams.models import AuditEntry
from tests.support.django_cast import PASSWORD, Cast, browsing_as, spec_for
from tests.support.second_factors import code_of, enrolled


def entries(client: Client, **query: str) -> list[dict[str, Any]]:
    answer = client.get("/api/v1/teams/alpha/audit/", query)
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def post(client: Client, path: str, body: Any = None) -> None:
    answer = client.post(path, body or {}, content_type="application/json")
    assert answer.status_code < 300, answer.content


def test_each_change_is_an_entry_with_its_author(cast: Cast, clients: dict[str, Client]) -> None:
    operator, owner = clients["operator"], clients["owner"]
    post(operator, "/api/v1/supervisors/flights/suspend/")
    post(operator, "/api/v1/supervisors/flights/resume/")
    post(operator, "/api/v1/supervisors/flights/handoff/")
    post(owner, "/api/v1/supervisors/flights/scale/", {"taskCount": 3})
    post(owner, "/api/v1/supervisors/", spec_for("flights", pollTimeout=100))
    post(operator, "/api/v1/tasks/", spec_for("flights", groupId="another"))
    post(operator, f"/api/v1/tasks/{cast.task.pk}/stop/", {"finish": True})
    post(owner, "/api/v1/supervisors/flights/terminate/")
    found = entries(owner)
    assert [(e["user"], e["target"], e["action"]) for e in reversed(found)] == [
        ("operator", "supervisor", "suspend"),
        ("operator", "supervisor", "resume"),
        ("operator", "supervisor", "handoff"),
        ("owner", "supervisor", "scale"),
        ("owner", "supervisor", "update"),
        ("operator", "task", "submit"),
        ("operator", "task", "finish"),
        ("owner", "supervisor", "terminate"),
    ]
    assert [e["detail"] for e in found if e["action"] == "scale"] == [{"version": 2, "task_count": 3, "before": 1}]
    assert [e["action"] for e in entries(owner, user="operator", target="task")] == ["finish", "submit"]


def test_what_is_refused_leaves_no_entry(clients: dict[str, Client]) -> None:
    assert clients["viewer"].post("/api/v1/supervisors/flights/suspend/").status_code == 403
    assert clients["owner"].post("/api/v1/supervisors/flights/resume/").status_code == 409
    assert entries(clients["owner"]) == []


def site_entries(client: Client, **query: str) -> list[dict[str, Any]]:
    answer = client.get("/api/v1/audit/", {"team": "-", **query})
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def test_an_entry_names_the_token_that_was_shown(cast: Cast, clients: dict[str, Client]) -> None:
    post(clients["operator"], "/api/v1/supervisors/flights/suspend/")
    browsing_as(cast, "operator").post("/supervisors/flights/resume/")
    by_page, by_token = entries(clients["owner"])
    [token] = clients["operator"].get("/api/v1/tokens/").json()["results"]
    assert (by_token["token"], by_page["token"]) == (f"{token['id']} test", "")
    page = browsing_as(cast, "owner").get("/audit/", {"text": token["id"]}).content.decode()
    assert f"token {token['id']} test" in page


CHANGES: list[tuple[str, str, Any, Any]] = [
    ("members/viewer/", "set", {"role": "operator"}, "viewer"),
    ("connection-rule/", "rule", {"own_properties": False}, True),
    ("", "describe", {"description": "what we do"}, ""),
]


@pytest.mark.parametrize(("address", "action", "body", "before"), CHANGES, ids=[c[1] for c in CHANGES])
def test_an_entry_has_the_value_before(
    clients: dict[str, Client], address: str, action: str, body: Any, before: Any
) -> None:
    answer = clients["owner"].put(f"/api/v1/teams/alpha/{address}", body, content_type="application/json")
    assert answer.status_code == 200, answer.content
    assert [e["detail"]["before"] for e in entries(clients["owner"], action=action)] == [before]


def test_an_entry_of_settings_has_those_before(cast: Cast, clients: dict[str, Client]) -> None:
    owner = clients["owner"]
    rules = "/api/v1/datasources/flights/rules/"
    for of_rules in ([{"type": "dropByPeriod", "period": "P1Y"}], []):
        assert owner.put(rules, {"rules": of_rules}, content_type="application/json").status_code == 200
    made = owner.post(
        "/api/v1/alerts/rules/", {"name": "late", "kind": "unhealthy", "hold_s": 0}, content_type="application/json"
    )
    rule = f"/api/v1/alerts/rules/{made.json()['id']}/"
    assert owner.put(rule, {"name": "later", "hold_s": 60}, content_type="application/json").status_code == 200
    [dropped, set_first] = entries(owner, action="set_rules")
    assert (set_first["detail"]["before"], len(dropped["detail"]["before"])) == ([], 1)
    [changed] = entries(owner, action="change_rule")
    said = [changed["detail"][when] for when in ("before", "after")]
    assert [(one["name"], one["hold_s"]) for one in said] == [("late", 0), ("later", 60)]


@pytest.mark.usefixtures("empty_cache")
def test_logins_stand_in_the_sites_trail(cast: Cast, clients: dict[str, Client]) -> None:
    rest = "/api/v1/auth/login/"

    def tried(**given: str) -> int:
        return Client().post(rest, given, content_type="application/json").status_code

    assert tried(username="viewer", password=PASSWORD) == 200
    for _ in range(3):  # once a minute: who tries without end fills no trail
        assert tried(username="viewer", password="wrong") == 401
    assert tried(username="my-password-by-mistake", password="wrong") == 401
    Client().post("/login/", {"username": "viewer", "password": PASSWORD})
    Client().post("/login/", {"username": "owner", "password": "wrong"})
    enrolled(cast.users["operator"])
    assert tried(username="operator", password=PASSWORD, code="000000") == 401
    assert tried(username="operator", password=PASSWORD, code=code_of(cast.users["operator"])) == 200
    found = [(e["action"], e["user"], e["target_id"]) for e in site_entries(clients["superuser"], target="login")]
    assert found[::-1] == [
        ("log_in", "viewer", "viewer"),
        ("fail", "", "viewer"),
        ("fail", "", ""),
        ("log_in", "viewer", "viewer"),
        ("fail", "", "owner"),
        ("second_factor_fail", "", "operator"),
        ("log_in", "operator", "operator"),
    ]
    assert "my-password-by-mistake" not in str(list(AuditEntry.objects.values()))


@pytest.mark.usefixtures("empty_cache")
def test_a_refusal_stands_there_once_a_minute(cast: Cast, clients: dict[str, Client]) -> None:
    suspend = "/api/v1/supervisors/flights/suspend/"
    for _ in range(3):
        assert clients["viewer"].post(suspend).status_code == 403
    assert browsing_as(cast, "viewer").post("/supervisors/flights/suspend/").status_code == 403
    assert clients["outsider"].post(suspend).status_code == 404
    for name in ("made-up", "another"):  # an address may hold anything: one entry of those of a kind
        assert clients["owner"].delete(f"/api/v1/users/{name}/second-factors/").status_code == 403
    found = [(e["user"], e["target_id"]) for e in site_entries(clients["superuser"], action="refuse")]
    assert found.pop(0) == ("owner", "DELETE /api/v1/users/made-up/second-factors/")
    assert found == [("viewer", "POST /supervisors/flights/suspend/"), ("viewer", f"POST {suspend}")]


@pytest.mark.usefixtures("empty_cache")
def test_what_does_not_prove_who_asks_is_no_refusal(cast: Cast, clients: dict[str, Client]) -> None:
    stale = Client(enforce_csrf_checks=True)
    stale.force_login(cast.users["owner"])
    address = {"email": "new@headgate.test", "secret": "wrong"}
    forbidden = [
        stale.post("/supervisors/flights/suspend/"),
        stale.post("/api/v1/supervisors/flights/suspend/", content_type="application/json"),
        stale.post("/api/v1/supervisors/flights/suspend", content_type="application/json"),
        clients["owner"].put("/api/v1/account/email/", address, content_type="application/json"),
    ]
    assert [answer.status_code for answer in forbidden] == [403] * 4
    stale.logout()
    assert stale.get("/supervisors/flights/").status_code == 302
    assert Client().get("/supervisors/flights/").status_code == 302
    assert site_entries(clients["superuser"], action="refuse") == []


def test_no_secret_is_in_an_entry(cast: Cast, clients: dict[str, Client]) -> None:
    properties = {
        "bootstrap.servers": "kafka-broker:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "reader",
        "sasl.password": "hunter2-secret",
    }
    post(clients["owner"], "/api/v1/supervisors/", spec_for("flights", consumerProperties=properties))
    assert AuditEntry.objects.filter(action="update").exists()
    assert b"hunter2" not in clients["owner"].get("/api/v1/teams/alpha/audit/").content


def test_nobody_changes_an_entry(cast: Cast) -> None:
    audit.record(user=cast.users["owner"], team=cast.alpha, target="task", target_id="t", action="stop")
    for change in (
        lambda: AuditEntry.objects.update(username="somebody else"),
        lambda: AuditEntry.objects.all().delete(),
    ):
        with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
            change()
    assert AuditEntry.objects.get().username == "owner"


def test_entries_of_another_team_are_not_shown(cast: Cast, clients: dict[str, Client]) -> None:
    audit.record(user=cast.users["owner"], team=cast.alpha, target="task", target_id="alphas-task", action="stop")
    assert clients["outsider"].get("/api/v1/teams/beta/audit/").json()["results"] == []
    page = browsing_as(cast, "outsider").get("/audit/", {"team": "alpha"})
    assert page.status_code == 200 and b"alphas-task" not in page.content


def test_the_page_shows_who_did_what(cast: Cast) -> None:
    audit.record(user=cast.users["operator"], team=cast.alpha, target="task", target_id="the-task", action="stop")
    audit.record(user=None, team=cast.alpha, target="quarantine", target_id="flights", action="retention", records=3)
    text = browsing_as(cast, "owner").get("/audit/").content.decode()
    assert "operator" in text and "the-task" in text
    assert "Headgate, by a rule" in text
    assert (
        "No entries match these filters."
        in browsing_as(cast, "owner").get("/audit/", {"user": "nobody"}).content.decode()
    )
