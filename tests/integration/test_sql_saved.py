"""Saved queries and the history of queries, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from controlplane.datasources.models import Datasource
from controlplane.query import history
from controlplane.query.models import PastQuery, SavedQuery
from controlplane.query.running import run_query
from controlplane.query.saved import may_edit, save_query, saved_queries
from controlplane.teams.models import AuditEntry, Membership, User
from controlplane.teams.roles import Limits, Scope
from tests.support.django_cast import Cast
from tests.support.sql import ADDRESS, rows, send
from tests.support.sql import june as make_june

SAVED = f"{ADDRESS}saved/"
ONE = {"name": "Delays", "description": "By carrier.", "statement": " SELECT 1\n"}


@pytest.fixture
def june(cast: Cast, tmp_path: Path, settings: Any) -> Datasource:
    return make_june(cast.alpha, tmp_path, settings)


def post(client: Client, **body: Any) -> Any:
    return client.post(SAVED, {**ONE, **body}, content_type="application/json")


def put(client: Client, number: int, **body: Any) -> Any:
    return client.put(f"{SAVED}{number}/", {**ONE, **body}, content_type="application/json")


def names(client: Client, query: str = "") -> list[str]:
    return [saved["name"] for saved in client.get(f"{SAVED}{query}").json()["results"]]


def states(client: Client) -> list[tuple[str, int | None, str]]:
    listed = client.get(f"{ADDRESS}history/").json()["results"]
    return [(entry["state"], entry["rows"], entry["error"]) for entry in listed]


def test_a_private_query_is_its_owners_alone(clients: dict[str, Client]) -> None:
    made = post(clients["viewer"])
    assert made.status_code == 201, made.content
    saved = made.json()
    assert {name: saved[name] for name in ONE} == ONE
    assert (saved["owner"], saved["team"]) == ("viewer", "")
    assert clients["viewer"].get(made["Location"]).json() == saved
    assert names(clients["viewer"]) == ["Delays"]
    assert names(clients["viewer"], "?search=CARRIER") == ["Delays"]
    assert names(clients["viewer"], "?search=none") == []
    for other in ("owner", "outsider", "superuser"):
        assert names(clients[other]) == []
        assert clients[other].get(made["Location"]).status_code == 404
        assert put(clients[other], saved["id"]).status_code == 404
        assert clients[other].delete(made["Location"]).status_code == 404
    assert clients["viewer"].delete(made["Location"]).status_code == 204
    assert names(clients["viewer"]) == []
    assert not AuditEntry.objects.filter(target="saved_query").exists()


def test_a_shared_query_is_seen_by_its_team_and_changed_by_owner_and_admins(
    clients: dict[str, Client], cast: Cast
) -> None:
    number = post(clients["operator"], team="alpha").json()["id"]
    for name in ("viewer", "owner", "superuser"):
        assert names(clients[name], "?team=alpha") == ["Delays"]
    assert names(clients["outsider"]) == []
    assert clients["outsider"].get(f"{SAVED}{number}/").status_code == 404
    assert put(clients["viewer"], number, team="alpha").status_code == 403
    assert clients["viewer"].delete(f"{SAVED}{number}/").status_code == 403
    assert put(clients["owner"], number, name="Renamed", team="alpha").status_code == 200
    # Only its owner takes it from the team.
    assert put(clients["owner"], number).status_code == 403
    assert put(clients["operator"], number, team="beta").status_code == 400
    assert put(clients["operator"], number).json()["team"] == ""
    assert names(clients["owner"]) == []
    trail = AuditEntry.objects.filter(team=cast.alpha, target="saved_query").order_by("id")
    assert [(e.username, e.action) for e in trail] == [
        ("operator", "share"),
        ("owner", "change"),
        ("operator", "delete"),
    ]


def test_who_leaves_a_team_no_longer_sees_what_is_shared_with_it(clients: dict[str, Client], cast: Cast) -> None:
    number = post(clients["operator"], team="alpha").json()["id"]
    Membership.objects.filter(user=cast.users["operator"]).delete()
    assert clients["operator"].get(f"{SAVED}{number}/").status_code == 404
    assert names(clients["owner"]) == ["Delays"]
    cast.alpha.deleted_at = SavedQuery.objects.get().created_at
    cast.alpha.save()
    assert names(clients["operator"]) == ["Delays"]
    assert names(clients["owner"]) == names(clients["superuser"]) == []


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": " "}, "/name"),
        ({"name": "two\nlines"}, "/name"),
        ({"name": "x" * 201}, "/name"),
        ({"description": "x" * 2001}, "/description"),
        ({"statement": " \n"}, "/statement"),
        ({"statement": "x" * 100_001}, "/statement"),
        ({"statement": "\ud800"}, "/statement"),
        ({"team": "beta"}, "/team"),
        ({"owner": "viewer"}, "/owner"),
    ],
)
def test_a_bad_saved_query_is_refused(clients: dict[str, Client], body: dict[str, str], pointer: str) -> None:
    refused = post(clients["owner"], **body)
    assert refused.status_code == 400, refused.content
    assert [fault["pointer"] for fault in refused.json()["errors"]] in ([pointer], [])
    assert not SavedQuery.objects.exists()


def test_tokens_with_a_scope_save_nothing_and_those_of_datasources_see_nothing(
    clients: dict[str, Client], cast: Cast, june: Datasource
) -> None:
    post(clients["owner"], team="alpha")
    rows(clients["owner"], "SELECT 1")
    [saved] = SavedQuery.objects.all()
    seen = {}
    for name, datasources in (("all", frozenset[str]()), ("june", frozenset({"june"}))):
        user = User.objects.get(username="owner")
        user.limits = Limits(Scope.ADMIN, datasources)
        seen[name] = (saved_queries(user).count(), history.past_queries(user).count(), may_edit(user, saved))
        with pytest.raises(Exception, match="No token with a scope may save queries"):
            save_query(user=user, name="x", statement="SELECT 1")
    assert seen == {"all": (1, 1, False), "june": (0, 0, False)}


def test_the_history_has_ones_own_queries_and_how_they_ended(
    clients: dict[str, Client], june: Datasource, cast: Cast
) -> None:
    operator = clients["operator"]
    rows(operator, "SELECT n FROM june")
    send(operator, "SELECT no FROM june")
    send(operator, "SELECT * FROM theirs")
    assert send(operator, "EXPLAIN SELECT n FROM june", query_id="mine").status_code == 200
    run_query(user=cast.users["operator"], sql="SELECT n FROM june").close()  # unread
    closed, explained, unknown, wrong, good = states(operator)
    assert (closed, explained, good) == (("closed", None, ""), ("succeeded", None, ""), ("succeeded", 6, ""))
    assert unknown == ("failed", None, "There is no datasource 'theirs' that you can read.")
    assert wrong[:2] == ("failed", None)
    assert '"no"' in wrong[2]
    first = operator.get(f"{ADDRESS}history/?limit=2").json()
    assert [entry["statement"] for entry in first["results"]] == ["SELECT n FROM june", "EXPLAIN SELECT n FROM june"]
    assert (first["results"][1]["query_id"], first["results"][0]["duration_ms"] > 0) == ("mine", True)
    assert len(operator.get(first["next"]).json()["results"]) == 2
    assert states(clients["owner"]) == states(clients["superuser"]) == []


def test_the_history_keeps_the_last_of_each_user(
    clients: dict[str, Client], june: Datasource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "KEPT", 3)
    rows(clients["owner"], "SELECT 'another'")
    for number in range(5):
        rows(clients["operator"], f"SELECT {number}")
    kept = PastQuery.objects.order_by("id").values_list("statement", flat=True)
    assert list(kept) == ["SELECT 'another'", "SELECT 2", "SELECT 3", "SELECT 4"]


@pytest.mark.parametrize("query_id", ["saved", "history", ".", ".."])
def test_ids_that_cannot_be_cancelled_are_refused(clients: dict[str, Client], query_id: str) -> None:
    refused = send(clients["owner"], "SELECT 1", query_id=query_id)
    assert refused.status_code == 400
    assert "is reserved" in refused.json()["errors"][0]["detail"]
    assert b"[1]" in b"".join(send(clients["owner"], "SELECT 1", query_id="saved2").streaming_content)
