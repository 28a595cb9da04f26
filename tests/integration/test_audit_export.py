"""The audit trail filtered and taken out as a file."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.utils import timezone

from controlplane.teams import audit, audit_export
from controlplane.teams.audit_export import escape_formula
from controlplane.teams.models import ApiToken, AuditEntry
from tests.support.django_cast import Cast, browsing_as

ADDRESS = "/api/v1/teams/alpha/audit/"
EVIL = "=cmd|' /C calc'!A0"


@pytest.fixture
def trail(cast: Cast) -> Cast:
    """Four entries of alpha, and one of beta."""
    owner, operator = cast.users["owner"], cast.users["operator"]
    audit.record(user=owner, team=cast.alpha, target="supervisor", target_id="flights", action="create", version=1)
    audit.record(user=operator, team=cast.alpha, target="supervisor", target_id="flights", action="suspend")
    audit.record(user=owner, team=cast.alpha, target="member", target_id=EVIL, action="invite", role="Viewer-ish")
    audit.record(user=None, team=cast.alpha, target="quarantine", target_id="flights", action="retention", records=7)
    audit.record(user=cast.users["outsider"], team=cast.beta, target="team", target_id="beta", action="create")
    return cast


def actions(client: Client, **query: str) -> list[str]:
    answer = client.get(ADDRESS, query)
    assert answer.status_code == 200, answer.content
    return [entry["action"] for entry in answer.json()["results"]]


def text_of(answer: Any) -> str:
    assert answer.status_code == 200
    return b"".join(answer).decode()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["retention", "invite", "suspend", "create"]),
        ({"user": "operator"}, ["suspend"]),
        ({"action": "create"}, ["create"]),
        ({"target": "supervisor", "target_id": "flights"}, ["suspend", "create"]),
        ({"text": "viewer-ISH"}, ["invite"]),
        ({"text": "flight"}, ["retention", "suspend", "create"]),
        ({"text": "100%_"}, []),
        ({"to": "2020-01-01T00:00:00Z"}, []),
        ({"from": "2020-01-01T00:00:00Z", "text": "version"}, ["create"]),
    ],
    ids=str,
)
def test_entries_are_filtered_on_the_page_over_rest_and_in_files(
    trail: Cast, clients: dict[str, Client], query: dict[str, str], expected: list[str]
) -> None:
    assert actions(clients["owner"], **query) == expected
    lines = text_of(clients["owner"].get(f"{ADDRESS}export/", {**query, "as": "ndjson"})).splitlines()
    assert [json.loads(line)["action"] for line in lines] == expected
    shown = {name: value.removesuffix("Z") for name, value in query.items()}
    lines = text_of(browsing_as(trail, "owner").get("/audit/export/", {**shown, "as": "ndjson"})).splitlines()
    assert [json.loads(line)["action"] for line in lines] == expected
    page = browsing_as(trail, "owner").get("/audit/", shown).content.decode()
    assert [a for a in expected if f'data-entry="{a}"' not in page] == []
    assert page.count("data-entry=") == len(expected)


def test_a_file_holds_all_however_many(
    trail: Cast, clients: dict[str, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_export, "AT_ONCE", 3)
    rows = list(csv.DictReader(io.StringIO(text_of(clients["owner"].get(f"{ADDRESS}export/")))))
    mine = AuditEntry.objects.filter(team=trail.alpha).order_by("-id")
    assert [int(row["id"]) for row in rows] == [entry.pk for entry in mine]
    assert [json.loads(row["detail"]) for row in rows] == [entry.detail for entry in mine]


def test_a_spreadsheet_calculates_nothing_of_it(trail: Cast, clients: dict[str, Client]) -> None:
    rows = list(csv.DictReader(io.StringIO(text_of(clients["owner"].get(f"{ADDRESS}export/")))))
    assert [row["target_id"] for row in rows if row["action"] == "invite"] == [f"'{EVIL}"]
    assert [escape_formula(cell) for cell in ("+1", "-1", "@a", "\ta", "a=1", "")] == [
        "'+1",
        "'-1",
        "'@a",
        "'\ta",
        "a=1",
        "",
    ]


def test_it_is_for_the_teams_admins(trail: Cast, clients: dict[str, Client]) -> None:
    for role, status in (("operator", 403), ("viewer", 403), ("outsider", 404), ("anonymous", 401)):
        assert clients[role].get(f"{ADDRESS}export/").status_code == status
    lines = text_of(browsing_as(trail, "outsider").get("/audit/export/", {"team": "alpha", "as": "ndjson"}))
    assert [json.loads(line)["target"] for line in lines.splitlines()] == ["team"]


@pytest.mark.parametrize("query", [{"as": "xlsx"}, {"from": "yesterday"}, {"limit": "1"}, {"action": "fly"}], ids=str)
def test_bad_parameters_are_refused(trail: Cast, clients: dict[str, Client], query: dict[str, str]) -> None:
    assert clients["owner"].get(f"{ADDRESS}export/", query).status_code == 400


def test_a_window_is_half_open(trail: Cast, clients: dict[str, Client]) -> None:
    newest = AuditEntry.objects.filter(team=trail.alpha).latest("id")
    at, after = newest.at.isoformat(), (newest.at + timedelta(microseconds=1)).isoformat()
    assert "retention" not in actions(clients["owner"], to=at)
    assert "retention" in actions(clients["owner"], to=after, **{"from": at})
    assert actions(clients["owner"], **{"from": (timezone.now() + timedelta(days=1)).isoformat()}) == []


def test_a_server_of_either_kind_sends_it(clients: dict[str, Client], trail: Cast) -> None:
    answer: Any = clients["owner"].get(f"{ADDRESS}export/")

    async def chunks() -> list[bytes]:
        return [chunk async for chunk in answer]

    assert b"".join(async_to_sync(chunks)()).decode() == text_of(clients["owner"].get(f"{ADDRESS}export/"))


SITE = "/api/v1/audit/"


def test_a_site_admin_reads_all_teams_and_the_site(trail: Cast, clients: dict[str, Client]) -> None:
    """Deleted teams, too; and nobody else does."""
    admin = clients["superuser"]
    assert admin.post("/api/v1/people/", {"username": "ann"}, content_type="application/json").status_code == 201
    assert admin.post("/api/v1/teams/", {"name": "gone"}, content_type="application/json").status_code == 201
    assert admin.delete("/api/v1/teams/gone/").status_code == 204

    def told(**query: str) -> list[tuple[str | None, str, str]]:
        found = admin.get(SITE, query).json()["results"]
        return [((e["team"] or "").split("~")[-1] or None, e["target"], e["action"]) for e in found]

    newest = [("gone", "team", "delete"), ("gone", "team", "create"), (None, "person", "create")]
    assert told()[:4] == [*newest, ("beta", "team", "create")]
    assert len(told()) == 8
    assert told(team="-") == [(None, "person", "create")]
    assert told(team="beta", target="team") == [("beta", "team", "create")]
    assert told(team="beta", target="person") == []
    lines = text_of(admin.get(f"{SITE}export/", {"team": "-", "as": "ndjson"})).splitlines()
    assert [json.loads(line)["target_id"] for line in lines] == ["ann"]
    page = browsing_as(trail, "superuser")
    shown = page.get("/audit/").content.decode()
    assert "Audit trail of the site" in shown and "gone (deleted)" in shown
    assert "viewer-ish" not in page.get("/audit/?team=-").content.decode().lower()
    assert len(text_of(page.get("/audit/export/?team=-&as=ndjson")).splitlines()) == 1
    assert "Audit trail of beta" in page.get("/audit/?team=beta").content.decode()
    assert "Audit trail of the site" not in browsing_as(trail, "owner").get("/audit/?team=-").content.decode()
    _, scoped = ApiToken.objects.create(user=trail.users["superuser"], scope="admin")
    assert Client().get(SITE, headers={"Authorization": f"Bearer {scoped}"}).status_code == 403
