"""Login, tokens, sessions, members."""

from __future__ import annotations

import base64
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from controlplane.common.errors import HeadgateError
from controlplane.teams.models import ApiToken, Membership, Team, User
from controlplane.teams.roles import Role
from controlplane.teams.services import remove_member
from tests.support.django_cast import PASSWORD, Cast

LOGIN = "/api/v1/auth/login/"
pytestmark = pytest.mark.usefixtures("empty_cache")


def basic(username: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()}


def login(client: Client, username: str = "viewer", password: str = PASSWORD) -> Any:
    return client.post(LOGIN, {"username": username, "password": password}, content_type="application/json")


@pytest.mark.parametrize("how", ["json", "basic"])
def test_login_gives_a_token_that_works_until_logout(client: Client, cast: Cast, how: str) -> None:
    answer = login(client) if how == "json" else client.post(LOGIN, headers=basic("viewer", PASSWORD))
    assert answer.status_code == 200
    assert set(answer.json()) == {"token", "expiry"}
    bearer = {"Authorization": f"Bearer {answer.json()['token']}"}
    assert client.get("/api/v1/teams/", headers=bearer).json()["results"][0]["role"] == "viewer"
    assert client.post("/api/v1/auth/logout/", headers=bearer).status_code == 204
    assert client.get("/api/v1/teams/", headers=bearer).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [basic("viewer", "wrong"), basic("nobody", PASSWORD), {"Authorization": "Basic %%%"}, basic("a\x00b", "x")],
)
def test_a_wrong_login_is_401_with_a_challenge(client: Client, cast: Cast, headers: dict[str, str]) -> None:
    answer = client.post(LOGIN, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic")
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_an_inactive_user_can_not_log_in_nor_use_a_token(
    client: Client, clients: dict[str, Client], cast: Cast
) -> None:
    cast.users["viewer"].is_active = False
    cast.users["viewer"].save()
    assert login(client).status_code == 401
    assert clients["viewer"].get("/api/v1/teams/").status_code == 401


def test_logins_are_throttled_whatever_a_header_says(client: Client, cast: Cast) -> None:
    def tried(n: int) -> int:
        return client.post(LOGIN, headers={**basic("viewer", "wrong"), "X-Forwarded-For": f"10.0.0.{n}"}).status_code

    assert [tried(n) for n in range(21)] == [401] * 20 + [429]
    answer = login(client)
    assert answer.status_code == 429
    assert int(wait_s := answer.headers["Retry-After"]) > 0
    assert answer.json()["detail"] == f"Too many attempts. Wait {wait_s} seconds, then try again."


@pytest.mark.parametrize("token", ["x", "a" * 64, "é" * 10, "a\x00b", "a b", ""])
def test_a_wrong_token_is_401_with_a_challenge(client: Client, cast: Cast, token: str) -> None:
    answer = client.get("/api/v1/teams/", headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert answer.json()["type"] == "urn:headgate:problem:not-authenticated"


def test_a_token_that_is_over_is_401(client: Client, cast: Cast) -> None:
    token, secret = ApiToken.objects.create(user=cast.users["viewer"])
    ApiToken.objects.filter(pk=token.pk).update(expiry=timezone.now() - timedelta(seconds=1))
    assert client.get("/api/v1/teams/", headers={"Authorization": f"Bearer {secret}"}).status_code == 401


def test_tokens_are_shown_once_and_are_ones_own(clients: dict[str, Client], cast: Cast) -> None:
    made = clients["viewer"].post("/api/v1/tokens/", {"name": "ci", "days": 7}, content_type="application/json")
    assert made.status_code == 201
    token = made.json()
    listed = clients["viewer"].get("/api/v1/tokens/")
    assert token["token"].encode() not in listed.content
    assert [t["name"] for t in listed.json()["results"]] == ["ci", "test"]
    assert clients["owner"].delete(f"/api/v1/tokens/{token['id']}/").status_code == 404
    assert clients["viewer"].delete(f"/api/v1/tokens/{token['id']}/").status_code == 204
    again = clients["viewer"].get("/api/v1/teams/", headers={"Authorization": f"Bearer {token['token']}"})
    assert again.status_code == 401


def test_a_session_works_and_its_changes_need_the_csrf_token(cast: Cast) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(cast.users["owner"])
    assert browser.get("/api/v1/teams/").status_code == 200
    refused = browser.post("/api/v1/supervisors/flights/suspend/")
    assert (refused.status_code, refused.headers["Content-Type"]) == (403, "application/problem+json")
    cast.supervisor.refresh_from_db()
    assert cast.supervisor.suspended is False


def test_logout_ends_a_session(cast: Cast) -> None:
    browser = Client()
    browser.force_login(cast.users["owner"])
    assert browser.post("/api/v1/auth/logout/").status_code == 204
    assert browser.get("/api/v1/teams/").status_code == 401


def member(client: Client, name: str, role: str, team: str = "alpha") -> Any:
    return client.put(f"/api/v1/teams/{team}/members/{name}/", {"role": role}, content_type="application/json")


def test_members_are_added_changed_and_removed(clients: dict[str, Client], cast: Cast) -> None:
    owner = clients["owner"]
    assert member(owner, "outsider", "viewer").status_code == 202
    accepted = clients["outsider"].post("/api/v1/invitations/alpha/").json()
    assert (accepted["username"], accepted["role"]) == ("outsider", "viewer")
    changed = member(owner, "outsider", "operator")
    assert changed.json() == {"username": "outsider", "role": "operator", "state": "member"}
    listed = owner.get("/api/v1/teams/alpha/members/").json()["results"]
    assert {m["username"]: m["role"] for m in listed} == {
        "owner": "admin",
        "operator": "operator",
        "viewer": "viewer",
        "outsider": "operator",
    }
    assert owner.delete("/api/v1/teams/alpha/members/outsider/").status_code == 204
    assert owner.delete("/api/v1/teams/alpha/members/outsider/").status_code == 404


def test_the_last_admin_stays(clients: dict[str, Client], cast: Cast) -> None:
    owner = clients["owner"]
    assert owner.delete("/api/v1/teams/alpha/members/owner/").status_code == 409
    assert member(owner, "owner", "viewer").status_code == 409
    assert clients["superuser"].delete("/api/v1/teams/alpha/members/owner/").status_code == 409
    assert member(owner, "operator", "admin").status_code == 200
    assert owner.delete("/api/v1/teams/alpha/members/owner/").status_code == 204
    assert list(
        Membership.objects.filter(team=cast.alpha, role=Role.ADMIN).values_list("user__username", flat=True)
    ) == ["operator"]


@pytest.mark.parametrize(("name", "role"), [("a%0Ab", "viewer"), ("outsider", "king"), ("a%00b", "viewer")])
def test_a_wrong_member_is_refused(clients: dict[str, Client], name: str, role: str) -> None:
    assert member(clients["owner"], name, role).status_code == 400
    assert Membership.objects.count() == 4


@pytest.mark.django_db(transaction=True)
def test_two_admins_who_remove_each_other_at_once_leave_one() -> None:
    team = Team.objects.create(name="alpha")
    admins = [User.objects.create_user(name) for name in ("a", "b")]
    for admin in admins:
        Membership.objects.create(user=admin, team=team, role=Role.ADMIN)
    start = threading.Barrier(2)

    def remove(user: User, other: User) -> bool:
        try:
            start.wait()
            remove_member(user=user, team=team, username=other.username)
        except HeadgateError:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(remove, admins, reversed(admins)))
    assert sorted(done) == [False, True]
    assert Membership.objects.filter(team=team, role=Role.ADMIN).count() == 1


@pytest.mark.parametrize("name", ["a\nb", "a\r", "a\u2028"])
def test_a_tokens_name_is_one_line(clients: dict[str, Client], cast: Cast, name: str) -> None:
    """Row 21 of the security checklist: tokens."""
    answer = clients["viewer"].post("/api/v1/tokens/", {"name": f"x{name}y"}, content_type="application/json")
    assert answer.status_code == 400
    assert [t.name for t in ApiToken.objects.filter(user=cast.users["viewer"])] == ["test"]


@pytest.mark.parametrize(("username", "team"), [("ann\n", "web"), ("ann", "web\n"), ("ann", "we\nb"), ("a b", "web")])
def test_a_users_and_a_teams_name_is_one_line(
    db: None, monkeypatch: pytest.MonkeyPatch, username: str, team: str
) -> None:
    """Row 21 of the security checklist: users and teams."""
    monkeypatch.setenv("HEADGATE_LOGIN_PASSWORD", PASSWORD)
    with pytest.raises(CommandError, match=r"--(username|team): "):
        call_command("ensure_login", username=username, team=team)
    assert (User.objects.count(), Team.objects.count()) == (0, 0)
    call_command("ensure_login", username="ann", team="web")
    assert Team.objects.get().name == "web"


def test_who_is_not_logged_in_is_told_how_to(client: Client, cast: Cast) -> None:
    """Also where a password is sent to an address that takes none."""
    for headers in ({}, basic("viewer", PASSWORD)):
        answer = client.get("/api/v1/tasks/", headers=headers)
        assert answer.status_code == 401
        assert "Bearer" in answer.json()["detail"]
    answer = client.get("/druid/indexer/v1/tasks")
    assert answer.status_code == 401
    assert "HTTP Basic" in answer.content.decode()
