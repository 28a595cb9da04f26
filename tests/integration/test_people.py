"""The site's people: made and turned off by its administrators, with links to choose a password."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.supervisors.models import Supervisor
from controlplane.teams.models import ApiToken, AuditEntry, PasswordLink, User
from tests.support.django_cast import PASSWORD, Cast, browsing_as, speaking_as

PEOPLE = "/api/v1/people/"
NEW = "another horse and its staple"


def make(client: Client, **body: Any) -> Any:
    return client.post(PEOPLE, body, content_type="application/json")


def link_of(client: Client, username: str) -> str:
    answer = client.post(f"{PEOPLE}{username}/password-link/")
    assert answer.status_code == 200, answer.content
    return urlsplit(answer.json()["link"]).path


def choose(path: str, password: str = NEW) -> Any:
    return Client().post(path, {"password": password, "again": password})


def test_somebody_is_made_and_chooses_a_password(clients: dict[str, Client]) -> None:
    superuser = clients["superuser"]
    assert make(superuser, username="ann", email="Ann@Example.org").status_code == 201
    ann = User.objects.get(username="ann")
    assert (ann.email, ann.has_usable_password(), ann.is_superuser) == ("ann@example.org", False, False)
    path = link_of(superuser, "ann")
    assert b"ann" in Client().get(path).content
    assert choose(path)["Location"] == "/login/"
    assert User.objects.get(username="ann").check_password(NEW)
    actions = AuditEntry.objects.filter(target="person", team=None).order_by("id").values_list("username", "action")
    assert list(actions) == [("superuser", "create"), ("superuser", "password_link"), ("ann", "password_set")]


def test_a_password_link_works_once_and_ends_what_was_logged_in(cast: Cast, clients: dict[str, Client]) -> None:
    viewer, session = speaking_as(cast, "viewer"), browsing_as(cast, "viewer")
    path = link_of(clients["superuser"], "viewer")
    assert path.split("/")[2] not in str(list(PasswordLink.objects.values_list()))
    assert choose(path).status_code == 302
    assert choose(path, "yet another staple of horses").status_code == 404
    assert viewer.get("/api/v1/teams/").status_code == 401
    assert session.get("/teams/").status_code == 302
    assert User.objects.get(username="viewer").check_password(NEW)


def _over(cast: Cast, superuser: Client) -> None:
    PasswordLink.objects.update(expires_at=timezone.now())


def _replaced(cast: Cast, superuser: Client) -> None:
    link_of(superuser, "viewer")


def _off(cast: Cast, superuser: Client) -> None:
    assert superuser.post(f"{PEOPLE}viewer/deactivate/").status_code == 204


def _off_and_on(cast: Cast, superuser: Client) -> None:
    _off(cast, superuser)
    assert superuser.post(f"{PEOPLE}viewer/activate/").status_code == 204


def _maker_is_no_admin(cast: Cast, superuser: Client) -> None:
    User.objects.filter(username="superuser").update(is_superuser=False)


@pytest.mark.parametrize("change", [_over, _replaced, _off, _off_and_on, _maker_is_no_admin])
def test_a_password_link_that_is_void_opens_nothing(
    cast: Cast, clients: dict[str, Client], change: Callable[[Cast, Client], None]
) -> None:
    path = link_of(clients["superuser"], "viewer")
    change(cast, clients["superuser"])
    assert Client().get(path).status_code == 404
    assert choose(path).status_code == 404
    assert User.objects.get(username="viewer").check_password(PASSWORD)


def test_it_is_over_after_a_day(clients: dict[str, Client]) -> None:
    before = timezone.now()
    link_of(clients["superuser"], "viewer")
    assert before <= PasswordLink.objects.get().expires_at - timedelta(hours=24) <= timezone.now()


@pytest.mark.parametrize(("password", "again"), [("short", "short"), (NEW, "something else"), ("", "")])
def test_a_bad_password_uses_nothing_up(clients: dict[str, Client], password: str, again: str) -> None:
    path = link_of(clients["superuser"], "viewer")
    assert Client().post(path, {"password": password, "again": again}).status_code == 400
    assert choose(path).status_code == 302


def test_who_is_deactivated_loses_all_and_what_they_made_goes_on(cast: Cast, clients: dict[str, Client]) -> None:
    owner, session = speaking_as(cast, "owner"), browsing_as(cast, "owner")
    before = Supervisor.objects.filter(pk="flights").values("suspended", "terminated_at", "version").get()
    assert clients["superuser"].post(f"{PEOPLE}owner/deactivate/").status_code == 204
    assert owner.get("/api/v1/teams/").status_code == 401
    assert session.get("/teams/").status_code == 302
    assert not ApiToken.objects.filter(user=cast.users["owner"]).exists()
    assert Supervisor.objects.filter(pk="flights").values("suspended", "terminated_at", "version").get() == before
    assert clients["superuser"].post(f"{PEOPLE}owner/activate/").status_code == 204
    assert owner.get("/api/v1/teams/").status_code == 401, "a token that ended stays ended"
    assert speaking_as(cast, "owner").get("/api/v1/teams/").status_code == 200


def test_nobody_turns_themselves_off(clients: dict[str, Client]) -> None:
    assert clients["superuser"].post(f"{PEOPLE}superuser/deactivate/").status_code == 409
    assert User.objects.get(username="superuser").is_active


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"username": "viewer"}, 409),
        ({"username": "a b"}, 400),
        ({"username": "new", "email": "none"}, 400),
        ({"username": "new", "email": "KNOWN@example.org"}, 409),
        ({"username": "x" * 151}, 400),
    ],
)
def test_who_can_not_be_made_is_refused(clients: dict[str, Client], body: dict[str, str], status: int) -> None:
    User.objects.filter(username="viewer").update(email="known@example.org")
    before = User.objects.count()
    assert make(clients["superuser"], **body).status_code == status
    assert User.objects.count() == before


def test_the_list_is_searched_and_has_no_service_accounts(clients: dict[str, Client]) -> None:
    User.objects.filter(username="viewer").update(is_active=False, email="v@example.org")

    def names(**query: str) -> list[str]:
        answer = clients["superuser"].get(PEOPLE, query)
        return [person["username"] for person in answer.json()["results"]]

    assert names() == ["operator", "outsider", "owner", "superuser", "viewer"]
    assert names(search="OPER") == ["operator"]
    assert names(search="v@ex") == ["viewer"]
    assert names(active="false") == ["viewer"]
    assert names(team="beta") == ["outsider"]
    assert clients["superuser"].get(f"{PEOPLE}loader@alpha/").status_code == 404


def test_the_pages_show_the_link_once(cast: Cast) -> None:
    browser = browsing_as(cast, "superuser")
    assert b"/password/" in browser.post("/people/viewer/password-link/").content
    assert b"/password/" not in browser.get("/people/viewer/").content
    assert b"viewer" in browser.get("/people/?team=alpha").content
    assert b"outsider" not in browser.get("/people/?team=alpha").content
    assert b"/people/" not in browsing_as(cast, "owner").get("/teams/").content
