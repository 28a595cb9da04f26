"""What ends sessions and tokens, and what a team's admin may do with its members' tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.core.management import call_command
from django.db import connection
from django.test import Client

from controlplane.teams.models import ApiToken, AuditEntry, Membership, User
from controlplane.teams.roles import Role
from controlplane.teams.services import create_token
from tests.support.django_cast import PASSWORD, Cast, browsing_as, speaking_as

TEAMS = "/api/v1/teams/"
OTHER = "another correct horse battery"
pytestmark = pytest.mark.usefixtures("empty_cache")


def turned_off_and_on(user: User) -> None:
    for active in (False, True):
        user.is_active = active
        user.save()


def another_password(user: User) -> None:
    user.set_password(OTHER)
    user.save()


def no_password(user: User) -> None:
    user.set_unusable_password()
    user.save(update_fields=["password"])


def by_command(user: User) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADGATE_LOGIN_PASSWORD", OTHER)
        call_command("ensure_login", username=user.username, team="alpha", role="viewer")


def assigned(user: User) -> None:
    user.password = make_password(OTHER)
    user.save()


def updated_off_and_on(user: User) -> None:
    for active in (False, True):
        User.objects.filter(pk=user.pk).update(is_active=active)


def updated_in_bulk(user: User) -> None:
    for active in (False, True):
        user.is_active = active
        User.objects.bulk_update([user], ["is_active"])


def saved_over(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)
    user.save()  # as it was read before


def by_sql(user: User) -> None:
    with connection.cursor() as cursor:
        for active in (False, True):
            cursor.execute("UPDATE teams_user SET is_active = %s WHERE id = %s", [active, user.pk])


ENDS = [
    turned_off_and_on,
    another_password,
    no_password,
    by_command,
    assigned,
    updated_off_and_on,
    updated_in_bulk,
    saved_over,
    by_sql,
]


@pytest.mark.parametrize("change", ENDS)
def test_sessions_and_tokens_end(cast: Cast, change: Callable[[User], None]) -> None:
    """Row 26 of the security checklist: for good, whatever comes afterwards."""
    clients = [speaking_as(cast, "viewer"), browsing_as(cast, "viewer")]
    others = [speaking_as(cast, "operator"), browsing_as(cast, "operator")]
    assert [c.get(TEAMS).status_code for c in clients] == [200, 200]
    change(User.objects.get(username="viewer"))
    assert [c.get(TEAMS).status_code for c in clients] == [401, 401]
    assert [c.get(TEAMS).status_code for c in others] == [200, 200]
    assert not ApiToken.objects.filter(user=cast.users["viewer"]).exists()


def updated_off(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def deleted(user: User) -> None:
    User.objects.filter(pk=user.pk).delete()


@pytest.mark.parametrize("change", [updated_off, deleted])
def test_who_is_off_or_gone_is_nobody(cast: Cast, change: Callable[[User], None]) -> None:
    """Row 26 of the security checklist: a session or token that is left, or comes to be, counts for nothing."""
    clients = [speaking_as(cast, "viewer"), browsing_as(cast, "viewer")]
    change(cast.users["viewer"])
    if change is updated_off:
        clients.append(speaking_as(cast, "viewer"))
    assert {c.get(TEAMS).status_code for c in clients} == {401}
    assert clients[1].get("/datasources/").headers["Location"].startswith("/login/")
    given = {"username": "viewer", "password": PASSWORD}
    login = Client().post("/api/v1/auth/login/", given, content_type="application/json")
    assert login.status_code == 401


def test_a_password_that_is_hashed_anew_ends_nothing(cast: Cast, settings: Any) -> None:
    """A login makes it so when the way of hashing has changed: scripts must not stop for that."""
    token = speaking_as(cast, "viewer")
    before = User.objects.get(username="viewer").password
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.PBKDF2PasswordHasher",
        "django.contrib.auth.hashers.MD5PasswordHasher",
    ]
    browser = Client()
    assert browser.post("/login/", {"username": "viewer", "password": PASSWORD}).status_code == 302
    assert User.objects.get(username="viewer").password != before
    assert [c.get(TEAMS).status_code for c in (token, browser)] == [200, 200]


# Members' tokens


def tokens(client: Client, team: str = "alpha") -> list[dict[str, Any]]:
    answer = client.get(f"{TEAMS}{team}/tokens/")
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def revoke(client: Client, of: dict[str, Any], team: str = "alpha") -> int:
    return client.delete(f"{TEAMS}{team}/members/{of['username']}/tokens/{of['id']}/").status_code


def test_an_admin_lists_and_revokes_members_tokens(clients: dict[str, Client], cast: Cast) -> None:
    """Row 26 of the security checklist: at once, with an entry in the audit trail, and nobody else's."""
    _, secret = create_token(user=cast.users["operator"], name="deploy")
    bearer = {"Authorization": f"Bearer {secret}"}
    found = tokens(clients["owner"])
    assert {t["username"] for t in found} == {"owner", "operator", "viewer"}
    assert secret not in str(found)
    [deploy] = [t for t in found if t["name"] == "deploy"]
    assert Client().get(TEAMS, headers=bearer).status_code == 200
    assert revoke(clients["owner"], deploy) == 204
    assert Client().get(TEAMS, headers=bearer).status_code == 401
    assert revoke(clients["owner"], deploy) == 404
    entry = AuditEntry.objects.get()
    assert (entry.username, entry.target, entry.action) == ("owner", "token", "revoke")
    assert entry.target_id == f"operator/{deploy['id']}"


def test_nobody_else_may(clients: dict[str, Client], cast: Cast) -> None:
    """Row 26 of the security checklist: neither lower roles nor other teams' admins."""
    [theirs] = [t for t in tokens(clients["owner"]) if t["username"] == "owner"]
    for role, status in (("operator", 403), ("viewer", 403), ("outsider", 404)):
        assert clients[role].get(f"{TEAMS}alpha/tokens/").status_code == status
        assert revoke(clients[role], theirs) == status
    assert revoke(clients["outsider"], theirs, team="beta") == 404
    assert clients["owner"].get(TEAMS).status_code == 200


def test_a_token_of_a_member_of_two_teams_is_not_one_teams_to_revoke(clients: dict[str, Client], cast: Cast) -> None:
    """Row 26 of the security checklist: it is for both teams; who removes the member ends what it may do here."""
    Membership.objects.create(user=cast.users["outsider"], team=cast.alpha, role=Role.VIEWER)
    create_token(user=cast.users["outsider"], name="beta's secret plan")
    found = [t for t in tokens(clients["owner"]) if t["username"] == "outsider"]
    assert [(t["name"], t["revocable"]) for t in found] == [("", False)] * 2
    assert revoke(clients["owner"], found[0]) == 409
    assert clients["outsider"].get("/api/v1/datasources/flights/").status_code == 200
    clients["owner"].delete(f"{TEAMS}alpha/members/outsider/")
    assert clients["outsider"].get("/api/v1/datasources/flights/").status_code == 404
    assert [t["revocable"] for t in tokens(clients["superuser"], "beta")] == [True, True]
    assert revoke(clients["superuser"], found[0], team="beta") == 204


def test_an_admin_of_both_teams_may(clients: dict[str, Client], cast: Cast) -> None:
    for user, team in (("outsider", cast.alpha), ("owner", cast.beta)):
        Membership.objects.create(user=cast.users[user], team=team, role=Role.ADMIN)
    [theirs] = [t for t in tokens(clients["owner"]) if t["username"] == "outsider"]
    assert theirs["revocable"]
    assert revoke(clients["owner"], theirs) == 204


def test_a_site_admins_token_is_no_teams(clients: dict[str, Client], cast: Cast) -> None:
    Membership.objects.create(user=cast.users["superuser"], team=cast.alpha, role=Role.VIEWER)
    [theirs] = [t for t in tokens(clients["owner"]) if t["username"] == "superuser"]
    assert (theirs["revocable"], revoke(clients["owner"], theirs)) == (False, 409)
