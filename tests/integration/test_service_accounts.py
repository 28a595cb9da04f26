"""Service accounts and tokens with a scope: at every address they get what their scope's role gets, and no more.

Derived from ``support.permission_table``: what differs from it stands in ``OTHERWISE``, with the reason.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.db.models import QuerySet
from django.test import Client
from django.utils import timezone

from controlplane.datasources.models import Datasource
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from controlplane.teams.models import ApiToken, AuditEntry, Invitation, Membership, User
from controlplane.teams.roles import Role, Scope
from controlplane.teams.service_accounts import NOTE_USE_EVERY, note_use
from tests.support.django_cast import PASSWORD, ROLES, Cast, browsing_as, serving, speaking_as, spec_for
from tests.support.permission_table import METRICS, TABLE, Row, ask_by
from tests.support.snapshot import Snapshot

ACCOUNTS = "/api/v1/teams/alpha/service-accounts/"
OF_SCOPE = {Scope.READ: "viewer", Scope.OPERATE: "operator", Scope.ADMIN: "owner"}
V1 = "api/v1/"
MEMBER = f"{V1}teams/<str:name>/members/<str:username>/"
# (method, pattern) → the status that a token with a scope gets, and why it is not the role's.
OTHERWISE: dict[tuple[str, str], tuple[dict[str, int], str]] = {
    ("POST", f"{V1}tokens/"): ({"": 403}, "a token makes no tokens: it would make the next before it ends"),
    ("POST", f"{V1}teams/<str:name>/service-accounts/<str:account>/tokens/"): (
        {"admin": 403, "other": 404},
        "nor for another account",
    ),
    ("DELETE", f"{V1}tokens/<str:token_id>/"): ({"": 403}, "nor does it revoke those of whom it acts for"),
    ("DELETE", f"{V1}account/sessions/"): ({"": 403}, "nor does it log anybody out"),
    ("DELETE", f"{V1}account/sessions/<str:session_id>/"): ({"": 403}, "nor does it log anybody out"),
    ("POST", f"{V1}invitations/<str:name>/"): ({"": 403}, "somebody accepts by themselves"),
    ("DELETE", f"{V1}invitations/<str:name>/"): ({"": 403}, "somebody declines by themselves"),
    ("PUT", MEMBER): ({"admin": 403}, "a role would outlive the token"),
    ("DELETE", MEMBER): ({"read": 403}, "the table's viewer may leave; a service account is no member"),
    ("POST", f"{V1}teams/<str:name>/invitation-links/"): ({"admin": 403}, "a link would outlive the token"),
    ("POST", f"{V1}sql/saved/"): ({"": 403}, "a saved query would outlive the token"),
    ("PUT", f"{V1}sql/saved/<int:number>/"): ({"admin": 403}, "nor does it change one"),
    ("DELETE", f"{V1}sql/saved/<int:number>/"): ({"admin": 403}, "nor does it delete one"),
    # Drafts are their owner's, who is a person of the table.
    ("DELETE", f"{V1}load/drafts/<uuid:draft_id>/"): ({"admin": 204}, ""),
}
REST = [row for row in TABLE if not row.is_page]
PAGES = [row for row in TABLE if row.is_page]


def status_of(row: Row, role: str) -> int:
    return row.statuses[ROLES.index(role)]


def expected(row: Row, kind: str) -> set[int]:
    """What a client of this kind may get."""
    statuses, _ = OTHERWISE.get((row.method, row.pattern), ({}, ""))
    if kind in statuses or "" in statuses:
        if status_of(row, "anonymous") != 401:
            return {status_of(row, "anonymous")}
        return {statuses.get(kind, statuses.get("", 0))}
    if kind == "other":
        # What an outsider changes in a team of their own, a token for named datasources does not.
        return {status_of(row, "outsider")} | ({403} if row.method != "GET" else set())
    return {status_of(row, OF_SCOPE[Scope(kind)])}


def memberships() -> QuerySet[Membership, tuple[Any, ...]]:
    return Membership.objects.order_by("user__username", "team__name").values_list(
        "user__username", "team__name", "role"
    )


def everything() -> Snapshot:
    return Snapshot(
        Task.objects.order_by("id").values_list("id", "goal", "status"),
        Supervisor.objects.order_by("id").values_list("id", "version", "suspended", "terminated_at"),
        Datasource.objects.order_by("id").values_list("name", "team__name"),
        memberships(),
        User.objects.order_by("username").values_list("username", "is_superuser", "is_active", "service_of"),
        ApiToken.objects.order_by("user__username", "pk").values_list("user__username", "scope"),
    )


def asked(client: Client, row: Row, cast: Cast, state: Snapshot, before: object) -> Any:
    """The answer, and nothing of it stays; who is refused has changed nothing."""
    cache.clear()
    with transaction.atomic():
        answer: Any = ask_by(client, row, cast)
        if answer.status_code >= 400:
            assert state() == before, f"{row.method} {row.pattern} was refused and changed something"
        transaction.set_rollback(True)
    return answer


@pytest.mark.parametrize("kind", ["read", "operate", "admin", "other"])
def test_a_token_gets_what_its_scope_s_role_gets_at_every_address(cast: Cast, kind: str) -> None:
    """Row 30 of the security checklist: at every address, derived from the table of who may do what."""
    other = serving(cast, Scope.ADMIN, "another-datasource")
    client = other if kind == "other" else serving(cast, Scope(kind))
    state, wrong = everything(), []
    before = state()
    for row in REST:
        answer = asked(client, row, cast, state, before)
        if answer.status_code not in expected(row, kind):
            wrong.append(f"{row.method} /{row.pattern}{row.query}: {answer.status_code}, not {expected(row, kind)}")
        body = b"".join(answer) if answer.streaming else answer.content  # a query has its place until it is read
        if kind == "other" and answer.status_code < 400 and row.pattern != f"{V1}validate/":
            found = [w for w in (b"flights", b"orders-schemas") if w in body.replace(b"flights-topic", b"")]
            wrong += [f"{row.method} /{row.pattern}{row.query} shows {found}"] if found else []
    assert wrong == []


def test_a_token_opens_no_page(cast: Cast) -> None:
    client, state = serving(cast, Scope.ADMIN), everything()
    before = state()
    for row in PAGES:
        if row.pattern in METRICS:
            continue  # it is read by a token
        assert asked(client, row, cast, state, before).status_code == status_of(row, "anonymous"), row


def test_who_is_off_is_nobody_and_who_is_only_invited_an_outsider(cast: Cast) -> None:
    """Row 30 of the security checklist: deactivated, and invited."""
    off = speaking_as(cast, "owner")
    Membership.objects.create(user=cast.users["superuser"], team=cast.alpha, role=Role.ADMIN)
    User.objects.filter(username="owner").update(is_active=False)
    now = timezone.now()
    Invitation.objects.create(team=cast.alpha, username="outsider", role=Role.ADMIN, created_at=now)
    invited, state = speaking_as(cast, "outsider"), everything()
    before = state()
    of_invitations = {f"{V1}invitations/<str:name>/"}
    for row, (client, like) in product(REST, ((off, "anonymous"), (invited, "outsider"))):
        if "load/drafts/" in row.pattern or (like == "outsider" and row.pattern in of_invitations):
            continue  # a draft is the owner's, who is off; an invitation may be answered
        answer = asked(client, row, cast, state, before)
        assert answer.status_code == status_of(row, like), f"{like}: {row} {answer.content[:300]}"


def new_token(client: Client, account: str = "loader", **body: Any) -> Any:
    return client.post(f"{ACCOUNTS}{account}/tokens/", {"scope": "read", **body}, content_type="application/json")


def test_an_admin_makes_an_account_and_tokens_which_are_listed_and_revoked(clients: dict[str, Client]) -> None:
    owner = clients["owner"]
    made = owner.post(ACCOUNTS, {"name": "robot"}, content_type="application/json")
    assert (made.status_code, made.json()["username"], made.json()["token_count"]) == (201, "robot@alpha", 0)
    answer = new_token(owner, "robot", name="nightly", scope="operate", days=7)
    assert answer.status_code == 201
    token = answer.json()
    assert token["scope"] == "operate"
    robot = Client(headers={"Authorization": f"Bearer {token['token']}"})
    assert robot.post("/api/v1/supervisors/flights/suspend/").status_code == 200
    refused = robot.post("/api/v1/supervisors/flights/terminate/")
    assert refused.status_code == 403
    assert "scope operate" in refused.json()["detail"]
    [listed] = owner.get(f"{ACCOUNTS}robot/tokens/").json()["results"]
    assert listed["last_used_at"] is not None
    assert "token" not in listed
    assert owner.delete(f"{ACCOUNTS}robot/tokens/{token['id']}/").status_code == 204
    assert robot.get("/api/v1/teams/").status_code == 401
    entries = AuditEntry.objects.filter(team__name="alpha").order_by("id").values_list("username", "target", "action")
    assert list(entries) == [
        ("owner", "service_account", "create"),
        ("owner", "token", "create"),
        ("robot@alpha", "supervisor", "suspend"),
        ("owner", "token", "revoke"),
    ]


def test_a_token_for_a_datasource_sees_it_and_not_another(cast: Cast) -> None:
    Datasource.objects.create(name="clicks", team=cast.alpha)
    client = serving(cast, Scope.READ, "clicks")
    assert [d["name"] for d in client.get("/api/v1/datasources/").json()["results"]] == ["clicks"]
    assert client.get("/api/v1/datasources/clicks/").status_code == 200
    assert client.get("/api/v1/datasources/flights/").status_code == 404
    assert client.get("/api/v1/supervisors/").json()["results"] == []
    taken = client.post("/api/v1/supervisors/", spec_for("flights"), content_type="application/json")
    free = client.post("/api/v1/supervisors/", spec_for("a-free-name"), content_type="application/json")
    assert taken.status_code == free.status_code == 403, "it is not told which names are taken"
    assert taken.json()["detail"] == free.json()["detail"]


def test_a_read_token_changes_nothing_and_is_told_why(cast: Cast) -> None:
    answer = serving(cast, Scope.READ).post("/api/v1/supervisors/flights/suspend/")
    assert answer.status_code == 403
    assert "scope read" in answer.json()["detail"]
    assert not Supervisor.objects.get(pk="flights").suspended


def test_an_account_has_no_login(cast: Cast, empty_cache: None) -> None:
    body = {"username": "loader@alpha", "password": PASSWORD}
    assert Client().post("/api/v1/auth/login/", body, content_type="application/json").status_code == 401
    assert not cast.users["service"].has_usable_password()
    assert browsing_as(cast, "service").get("/api/v1/datasources/flights/").status_code == 404, (
        "even if it had a session"
    )
    _, secret = ApiToken.objects.create(user=cast.users["service"])
    bare = Client(headers={"Authorization": f"Bearer {secret}"})
    assert bare.get("/api/v1/datasources/flights/").status_code == 404, "nor anything with a token without a scope"


def test_an_account_is_nobody_s_member_and_never_the_site_s_admin(cast: Cast, clients: dict[str, Client]) -> None:
    robot = serving(cast, Scope.ADMIN)
    names = [m["username"] for m in clients["owner"].get("/api/v1/teams/alpha/members/").json()["results"]]
    assert "loader@alpha" not in names
    assert robot.post("/api/v1/invitations/alpha/").status_code == 403
    assert not Membership.objects.filter(user=cast.users["service"]).exists()
    User.objects.filter(pk=cast.users["service"].pk).update(is_superuser=True)
    assert robot.post("/api/v1/teams/", {"name": "gamma"}, content_type="application/json").status_code == 403
    assert robot.get("/api/v1/teams/beta/").status_code == 404
    assert [d["name"] for d in robot.get("/api/v1/teams/").json()["results"]] == ["alpha"]


@pytest.mark.parametrize("username", ["viewer", "outsider", "loader@alpha", "nobody-yet"])
def test_no_token_with_a_scope_makes_somebody_an_admin(cast: Cast, clients: dict[str, Client], username: str) -> None:
    """Row 30 of the security checklist: a role stays when the token is revoked, so a person gives it."""
    address, body = f"/api/v1/teams/alpha/members/{username}/", {"role": "admin"}
    made = clients["owner"].post("/api/v1/tokens/", {"scope": "admin"}, content_type="application/json").json()
    mine, before = Client(headers={"Authorization": f"Bearer {made['token']}"}), list(memberships())
    for client in (serving(cast, Scope.ADMIN), mine):
        refused = client.put(address, body, content_type="application/json")
        assert refused.status_code == 403
        assert "No token with a scope may give a role or invite" in refused.json()["detail"]
    assert not Invitation.objects.exists()
    assert list(memberships()) == before
    status = 200 if username == "viewer" else 202
    assert clients["owner"].put(address, body, content_type="application/json").status_code == status


@pytest.mark.parametrize(("scope", "role"), [("read", "viewer"), ("operate", "operator"), ("admin", "admin")])
def test_a_token_of_ones_own_may_have_a_scope(cast: Cast, clients: dict[str, Client], scope: str, role: str) -> None:
    made = clients["owner"].post("/api/v1/tokens/", {"scope": scope}, content_type="application/json")
    client = Client(headers={"Authorization": f"Bearer {made.json()['token']}"})
    assert [team["role"] for team in client.get("/api/v1/teams/").json()["results"]] == [role]
    assert client.post("/api/v1/tokens/", {}, content_type="application/json").status_code == 403
    may_operate = client.post("/api/v1/supervisors/flights/suspend/").status_code == 200
    assert may_operate == (role != "viewer")


def test_a_scope_does_not_raise_what_its_user_may(cast: Cast, clients: dict[str, Client]) -> None:
    made = clients["viewer"].post("/api/v1/tokens/", {"scope": "admin"}, content_type="application/json")
    client = Client(headers={"Authorization": f"Bearer {made.json()['token']}"})
    assert [team["role"] for team in client.get("/api/v1/teams/").json()["results"]] == ["viewer"]
    assert client.post("/api/v1/supervisors/flights/suspend/").status_code == 403


def test_a_scope_takes_the_site_away_from_its_administrator(cast: Cast, clients: dict[str, Client]) -> None:
    made = clients["superuser"].post("/api/v1/tokens/", {"scope": "admin"}, content_type="application/json")
    client = Client(headers={"Authorization": f"Bearer {made.json()['token']}"})
    assert client.get("/api/v1/datasources/flights/").status_code == 200
    for row in TABLE:  # what only the site's administrator may
        if not row.is_page and row.method != "GET" and row.statuses[:4] in ((403,) * 4, (403, 403, 403, 404)):
            answer = ask_by(client, row, cast)
            assert answer.status_code == 403, row
    assert client.post("/api/v1/teams/", {"name": "gamma"}, content_type="application/json").status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        {"scope": "root"},
        {"scope": ""},
        {"days": 366},
        {"name": "a\nb"},
        {"datasources": [""]},
        {"datasources": ["x"] * 101},
    ],
)
def test_a_token_that_can_not_be_is_refused(clients: dict[str, Client], body: dict[str, Any]) -> None:
    before = ApiToken.objects.count()
    assert new_token(clients["owner"], **body).status_code == 400
    assert ApiToken.objects.count() == before


def test_use_is_written_down_once_a_minute(cast: Cast) -> None:
    _, _ = ApiToken.objects.create(user=cast.users["viewer"], name="t")
    token, now = ApiToken.objects.get(name="t"), timezone.now()
    for seconds, kept in ((0, 0), (30, 0), (59, 0), (60, 60)):
        note_use(token, now + timedelta(seconds=seconds))
        token.refresh_from_db()
        assert token.last_used_at == now + timedelta(seconds=kept)


def test_an_expired_token_opens_nothing_however_lately_it_was_used(cast: Cast) -> None:
    client = speaking_as(cast, "viewer")
    assert client.get("/api/v1/teams/").status_code == 200
    ApiToken.objects.filter(user=cast.users["viewer"]).update(expiry=timezone.now() - timedelta(seconds=1))
    assert client.get("/api/v1/teams/").status_code == 401
    assert not ApiToken.objects.filter(user=cast.users["viewer"]).exists()


def test_a_user_s_other_expired_tokens_are_deleted_once_a_minute(cast: Cast) -> None:
    client, viewer = speaking_as(cast, "viewer"), cast.users["viewer"]
    ApiToken.objects.create(user=viewer, name="old", expiry=timedelta(seconds=-1))
    theirs, _ = ApiToken.objects.create(user=cast.users["owner"], name="old", expiry=timedelta(seconds=-1))
    assert client.get("/api/v1/teams/").status_code == 200
    assert ApiToken.objects.filter(user=viewer, name="old").exists()
    ApiToken.objects.filter(user=viewer).update(last_used_at=timezone.now() - NOTE_USE_EVERY)
    assert client.get("/api/v1/teams/").status_code == 200
    assert list(ApiToken.objects.filter(user=viewer).values_list("name", flat=True)) == ["test"]
    assert list(ApiToken.objects.filter(name="old")) == [theirs]


def test_what_an_account_has_submitted_goes_on_when_it_is_deleted(cast: Cast, clients: dict[str, Client]) -> None:
    robot = serving(cast, Scope.ADMIN)
    assert robot.post("/api/v1/supervisors/", spec_for("clicks"), content_type="application/json").status_code == 201
    assert clients["owner"].delete(f"{ACCOUNTS}loader/").status_code == 204
    assert robot.get("/api/v1/teams/").status_code == 401
    supervisor = Supervisor.objects.get(pk="clicks")
    assert (supervisor.terminated_at, supervisor.suspended) == (None, False)


def test_a_team_s_accounts_end_with_it(cast: Cast, clients: dict[str, Client]) -> None:
    clients["outsider"].post("/api/v1/teams/beta/service-accounts/", {"name": "robot"}, content_type="application/json")
    assert User.objects.filter(username="robot@beta").exists()
    assert clients["superuser"].delete("/api/v1/teams/beta/").status_code == 204
    assert not User.objects.filter(username="robot@beta").exists()
