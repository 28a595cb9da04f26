"""Teams are made, renamed and deleted by the site's administrators, and nobody else."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test import Client

from controlplane.common.errors import HeadgateError
from controlplane.datasources.models import Datasource
from controlplane.datasources.services import datasource_for_ingestion
from controlplane.login.provider import Provider
from controlplane.teams.models import AuditEntry, Membership, Team, User
from controlplane.teams.permissions import Action
from controlplane.teams.roles import Scope
from controlplane.teams.teams import delete_team
from tests.support.django_cast import Cast, browsing_as, make_cast, serving, spec_for

TEAMS = "/api/v1/teams/"
ALPHA = f"{TEAMS}alpha/"


def make(client: Client, name: str) -> Any:
    return client.post(TEAMS, {"name": name}, content_type="application/json")


def test_an_administrator_makes_a_team_that_others_do_not_see(clients: dict[str, Client]) -> None:
    answer = make(clients["superuser"], "gamma")
    assert (answer.status_code, answer.json()["member_count"]) == (201, 1)  # who makes it is its admin
    assert clients["superuser"].get(f"{TEAMS}gamma/").status_code == 200
    assert clients["owner"].get(f"{TEAMS}gamma/").status_code == 404
    entry = AuditEntry.objects.get(target="team")
    assert (entry.username, entry.action, entry.target_id) == ("superuser", "create", "gamma")


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("alpha", 409),
        ("", 400),
        ("Gamma", 400),
        ("-", 400),
        ("~1~x", 400),
        ("x" * 64, 400),
        ("a\nb", 400),
        ("gamma\n", 201),
    ],
)
def test_a_name_that_no_team_can_have_is_refused(clients: dict[str, Client], name: str, status: int) -> None:
    answer = make(clients["superuser"], name)  # blanks around it are no part of it
    assert answer.status_code == status, answer.content


def test_a_team_that_owns_something_stays(clients: dict[str, Client], cast: Cast) -> None:
    answer = clients["superuser"].delete(f"{TEAMS}alpha/")
    assert answer.status_code == 409
    assert "1 datasource" in answer.json()["detail"]
    assert "1 connection" in answer.json()["detail"]
    assert cast.alpha.memberships.count() == 3


def test_a_deleted_team_is_gone_and_its_name_is_free(clients: dict[str, Client], cast: Cast) -> None:
    outsider, superuser = clients["outsider"], clients["superuser"]
    assert superuser.delete(f"{TEAMS}beta/").status_code == 204
    for client in (outsider, superuser):
        assert client.get(f"{TEAMS}beta/").status_code == 404
        assert "beta" not in [team["name"] for team in client.get(TEAMS).json()["results"]]
    submitted = outsider.post("/api/v1/supervisors/", spec_for("clicks"), content_type="application/json")
    assert submitted.status_code in (400, 403)
    assert make(superuser, "beta").status_code == 201
    assert clients["outsider"].get(f"{TEAMS}beta/").status_code == 404, "who was in the old one is not in the new one"
    assert Team.objects.filter(pk=cast.beta.pk, deleted_at__isnull=False).exists()
    assert AuditEntry.objects.filter(team=cast.beta, action="delete", target_id="beta").exists()


def test_only_a_team_that_owns_nothing_is_offered_to_be_deleted(cast: Cast) -> None:
    superuser, owner = browsing_as(cast, "superuser"), browsing_as(cast, "owner")
    for tab in ("", "limits/", "about/"):
        assert "Delete team" not in superuser.get(f"/teams/alpha/{tab}").content.decode()
        assert "Delete team" in superuser.get(f"/teams/beta/{tab}").content.decode()
    assert superuser.get("/teams/alpha/delete/confirm/").status_code == 404
    owned = re.findall(r"data-owned>.*?</section>", owner.get("/teams/alpha/about/").content.decode(), re.DOTALL)[0]
    assert "1 datasource<" in owned and 'href="/datasources/flights/"' in owned
    assert "1 connection<" in owned and 'href="/connections/alpha/orders-schemas/"' in owned
    assert "Owned by this team" not in superuser.get("/teams/beta/about/").content.decode()


def test_the_list_and_a_teams_page_show_what_is_ones_own(cast: Cast) -> None:
    viewer, superuser = browsing_as(cast, "viewer"), browsing_as(cast, "superuser")
    assert b"New team" not in viewer.get("/teams/").content
    assert b"/teams/beta/" not in viewer.get("/teams/").content
    page = superuser.get("/teams/").content
    assert b"New team" in page
    assert b"/teams/beta/" in page
    members = viewer.get("/teams/alpha/").content.decode()
    assert [name for name in ("owner", "operator", "viewer") if f'data-member="{name}"' not in members] == []
    assert "Delete team" not in members


def test_a_form_with_a_name_that_is_taken_says_so(cast: Cast) -> None:
    answer = browsing_as(cast, "superuser").post("/teams/-/new/", {"name": "beta"})
    assert answer.status_code == 400
    assert b"There is a team" in answer.content


def test_a_team_has_another_name_and_keeps_what_it_owns(clients: dict[str, Client], cast: Cast) -> None:
    token = serving(cast, Scope.READ)
    refused = clients["owner"].put(ALPHA, {"name": "shop"}, content_type="application/json")
    assert refused.status_code == 403
    assert clients["superuser"].put(ALPHA, {"name": "beta"}, content_type="application/json").status_code == 409
    assert clients["superuser"].put(ALPHA, {"name": "Shop"}, content_type="application/json").status_code == 400
    answer = clients["superuser"].put(ALPHA, {"name": "shop"}, content_type="application/json")
    assert (answer.status_code, answer.json()["name"]) == (200, "shop")
    assert clients["viewer"].get(ALPHA).status_code == 404
    for client in (clients["viewer"], token):
        assert client.get("/api/v1/teams/shop/").status_code == 200
        assert client.get("/api/v1/datasources/flights/").json()["team"] == "shop"
    assert clients["viewer"].get("/api/v1/connections/shop/orders-schemas/").status_code == 200
    accounts = clients["owner"].get("/api/v1/teams/shop/service-accounts/").json()["results"]
    assert [(a["name"], a["username"]) for a in accounts] == [("loader", "loader@shop")]
    entry = AuditEntry.objects.get(action="rename")
    assert (entry.team, entry.target_id, entry.detail) == (cast.alpha, "shop", {"before": "alpha"})
    made = clients["superuser"].post("/api/v1/teams/", {"name": "alpha"}, content_type="application/json")
    assert made.status_code == 201, "the name is free"


def test_groups_of_a_provider_are_not_left_to_whoever_has_the_name_next(
    clients: dict[str, Client], cast: Cast, settings: Any
) -> None:
    settings.OIDC = Provider("https://id.example.org", "id", "secret", teams={"leads": (("alpha", "admin"),)})
    answer = clients["superuser"].put(ALPHA, {"name": "shop"}, content_type="application/json")
    assert (answer.status_code, "HEADGATE_OIDC_TEAMS" in answer.json()["detail"]) == (409, True)
    both = {"leads": (("alpha", "admin"), ("shop", "admin"))}
    settings.OIDC = Provider("https://id.example.org", "id", "secret", teams=both)
    assert clients["superuser"].put(ALPHA, {"name": "shop"}, content_type="application/json").status_code == 200


def test_its_admins_say_what_a_team_is_about(clients: dict[str, Client], cast: Cast) -> None:
    text = "Streams of the <shop>"
    assert clients["operator"].put(ALPHA, {"description": text}, content_type="application/json").status_code == 403
    for bad in ({}, {"description": "a\nb"}, {"description": "x" * 501}, {"colour": "red"}):
        assert clients["owner"].put(ALPHA, bad, content_type="application/json").status_code == 400, bad
    answer = clients["owner"].put(ALPHA, {"description": text}, content_type="application/json")
    assert answer.json()["description"] == text
    assert "Streams of the &lt;shop&gt;" in browsing_as(cast, "viewer").get("/teams/alpha/").content.decode()
    assert browsing_as(cast, "owner").post("/teams/alpha/about/", {"description": ""}).status_code == 302
    assert browsing_as(cast, "owner").post("/teams/alpha/about/", {"name": "shop"}).status_code == 302
    cast.alpha.refresh_from_db()
    assert (cast.alpha.name, cast.alpha.description) == ("alpha", ""), "a name is for the site's administrators"
    assert [e.detail["text"] for e in AuditEntry.objects.filter(action="describe").order_by("id")] == [text, ""]


def test_an_admin_who_is_deactivated_is_no_admin_who_stays(clients: dict[str, Client], cast: Cast) -> None:
    Membership.objects.filter(user=cast.users["viewer"]).update(role="admin")
    User.objects.filter(username="viewer").update(is_active=False)
    assert clients["owner"].delete(f"{ALPHA}members/owner/").status_code == 409, "nobody could log in as its admin"
    assert clients["owner"].delete(f"{ALPHA}members/viewer/").status_code == 204
    User.objects.filter(username="owner").update(is_active=False)
    assert clients["superuser"].delete(f"{ALPHA}members/owner/").status_code == 204


def test_nothing_comes_to_a_team_that_is_being_deleted(transactional_db: None) -> None:
    cast = make_cast()
    team = Team.objects.create(name="empty")
    looked, admin = threading.Event(), cast.users["superuser"]

    def make() -> str:
        try:
            with transaction.atomic():
                looked.wait()
                datasource_for_ingestion(user=admin, name="late", team_name="empty", action=Action.ADMINISTER)
            return "made"
        except HeadgateError as error:
            return error.detail
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            delete_team(user=admin, team=team)
            made = pool.submit(make)
            looked.set()
            _until_somebody_waits()
        assert made.result() == "Team 'empty' no longer exists."
    assert not Datasource.objects.filter(name="late").exists()


def _until_somebody_waits() -> None:
    end = time.monotonic() + 20
    while True:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
        assert time.monotonic() < end, "nobody waits for the team"
        time.sleep(0.02)
