"""The audit trail: an entry for every change, read by admins, changed by nobody."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.test import Client

from controlplane.teams import audit
from controlplane.teams.models import AuditEntry
from tests.support.django_cast import Cast, browsing_as, spec_for


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
    assert [e["detail"] for e in found if e["action"] == "scale"] == [{"version": 2, "task_count": 3}]
    assert [e["action"] for e in entries(owner, user="operator", target="task")] == ["finish", "submit"]


def test_what_is_refused_leaves_no_entry(clients: dict[str, Client]) -> None:
    assert clients["viewer"].post("/api/v1/supervisors/flights/suspend/").status_code == 403
    assert clients["owner"].post("/api/v1/supervisors/flights/resume/").status_code == 409
    assert entries(clients["owner"]) == []


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
    assert "No entry is like that." in browsing_as(cast, "owner").get("/audit/", {"user": "nobody"}).content.decode()
