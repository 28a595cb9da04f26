"""A team's pages: what roles may do is said where they are given, and what can't be had back is asked first."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from controlplane.teams.models import ApiToken, Membership
from controlplane.teams.roles import Role, Scope
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed


@pytest.fixture
def owner_page(cast: Cast) -> Client:
    return browsing_as(cast, "owner")


def role_of(username: str) -> str:
    return Membership.objects.get(user__username=username).role


@pytest.mark.parametrize("role", list(Role))
def test_each_role_says_what_it_may_where_it_is_given(owner_page: Client, role: Role) -> None:
    page = parsed(owner_page.get("/teams/alpha/"))
    assert f"{role.value} {role.description}" in page.one("dl", data_roles="").text
    for name in ("invite-role", "link-role"):
        options = page.one("select", id=name).all("option")
        assert f"{role.value}: {role.description}" in [option.text for option in options]


@pytest.mark.parametrize("address", ["/account/", "/teams/alpha/service-accounts/loader/"])
def test_each_scope_says_what_it_may_where_it_is_given(owner_page: Client, address: str) -> None:
    shown = [option.text for option in parsed(owner_page.get(address)).one("select", name="scope").all("option")]
    assert [f"{scope.value}: {scope.role.description}" for scope in Scope] == shown[-3:]


def test_ones_own_role_asks_first(cast: Cast, owner_page: Client) -> None:
    Membership.objects.filter(user=cast.users["operator"]).update(role=Role.ADMIN)
    address = "/teams/alpha/members/owner/role/"
    asked = owner_page.post(address, {"role": "viewer"})
    text = parsed(asked).text
    assert (asked.status_code, role_of("owner")) == (200, "admin")
    assert "Change your own role in team alpha to viewer?" in text
    assert "only another admin can give it back to you" in text
    fields = {
        field.attributes.get("name", ""): field.attributes.get("value", "") for field in parsed(asked).all("input")
    }
    answer = owner_page.post(address, {name: fields[name] for name in ("role", "sure")})
    assert (answer.status_code, role_of("owner")) == (302, "viewer")


def test_anothers_role_does_not(owner_page: Client) -> None:
    assert owner_page.post("/teams/alpha/members/viewer/role/", {"role": "operator"}).status_code == 302
    assert role_of("viewer") == "operator"


def revocable(cast: Cast, user: str, address: str) -> Any:
    scope = {"scope": "read"} if user == "service" else {}
    token, _ = ApiToken.objects.create(user=cast.users[user], name="nightly", **scope)
    return token, address.replace("TOKEN", token.token_key)


@pytest.mark.parametrize(
    ("user", "address"),
    [
        ("owner", "/account/tokens/TOKEN/revoke/"),
        ("viewer", "/teams/alpha/tokens/viewer/TOKEN/"),
        ("service", "/teams/alpha/service-accounts/loader/revoke/TOKEN/"),
    ],
)
def test_a_token_is_revoked_after_a_question(cast: Cast, owner_page: Client, user: str, address: str) -> None:
    token, place = revocable(cast, user, address)
    asked = owner_page.post(place)
    assert asked.status_code == 200
    assert f"Revoke the token {token.token_key} nightly?" in parsed(asked).text
    assert ApiToken.objects.filter(pk=token.pk).exists()
    [sure] = [f.attributes["value"] for f in parsed(asked).all("input") if f.attributes.get("name") == "sure"]
    assert owner_page.post(place, {"sure": sure}).status_code == 302
    assert not ApiToken.objects.filter(pk=token.pk).exists()
    assert owner_page.post(place).status_code == 404


def test_a_member_leaves_on_the_teams_page(cast: Cast) -> None:
    viewer = browsing_as(cast, "viewer")
    page = parsed(viewer.get("/teams/alpha/"))
    assert "Leave team alpha?" in page.one("dialog", id="ask-leave").text
    question = parsed(viewer.get("/teams/alpha/leave/confirm/")).one("form", action="/teams/alpha/leave/")
    assert viewer.post(question.attributes["action"]).status_code == 302
    assert not Membership.objects.filter(user=cast.users["viewer"]).exists()


def test_who_is_no_member_leaves_nothing(cast: Cast) -> None:
    page = parsed(browsing_as(cast, "superuser").get("/teams/alpha/"))
    assert page.all("dialog", id="ask-leave") == []
